//! Where each key of a table is.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

use paimon_format::row::BinaryRow;

/// Number of a partition in a [`KeyIndex`].
pub(super) type PartitionId = u32;

/// The partition and bucket of every key of a table, and how many keys each bucket has.
///
/// A key is known by 128 bits of SipHash of its bytes: that two of ten billion keys share them has a chance below one in 10^18. Memory: 30 to 60
/// bytes a key, whatever its length; twice that for a moment while the map grows.
#[derive(Debug, Default)]
pub(super) struct KeyIndex {
    places: HashMap<Digest, Place, BuildHasherDefault<FirstHalf>>,
    partitions: Vec<IndexedPartition>,
    ids: HashMap<BinaryRow, PartitionId>,
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) partition: PartitionId,
    pub(super) bucket: i32,
}

/// A partition with the keys of its buckets.
#[derive(Debug)]
struct IndexedPartition {
    row: BinaryRow,
    keys: BTreeMap<i32, u64>,
}

/// 128 bits of a key's hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Digest(u64, u64);

impl Digest {
    pub(super) fn of(key: &[u8]) -> Self {
        let half = |salt: u8| {
            let mut hasher = BuildHasherDefault::<DefaultHasher>::default().build_hasher();
            hasher.write_u8(salt);
            hasher.write(key);
            hasher.finish()
        };
        Self(half(0), half(1))
    }
}

/// Takes the first half of a digest for the hash that it is.
#[derive(Debug, Default)]
struct FirstHalf(Option<u64>);

impl Hasher for FirstHalf {
    fn finish(&self) -> u64 {
        self.0.unwrap_or_default()
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, half: u64) {
        self.0.get_or_insert(half);
    }
}

impl KeyIndex {
    /// The number of a partition, old or new. `None`: there are too many.
    pub(super) fn id(&mut self, partition: &BinaryRow) -> Option<PartitionId> {
        if let Some(&id) = self.ids.get(partition) {
            return Some(id);
        }
        let id = PartitionId::try_from(self.partitions.len()).ok()?;
        self.ids.insert(partition.clone(), id);
        self.partitions.push(IndexedPartition {
            row: partition.clone(),
            keys: BTreeMap::new(),
        });
        Some(id)
    }

    /// The partition with this number.
    pub(super) fn partition(&self, id: PartitionId) -> Option<&BinaryRow> {
        self.partitions.get(id as usize).map(|partition| &partition.row)
    }

    /// Where a key is.
    pub(super) fn get(&self, key: Digest) -> Option<Place> {
        self.places.get(&key).copied()
    }

    /// Notes that the table has a key. `false`: it is there already.
    pub(super) fn restore(&mut self, key: Digest, place: Place) -> bool {
        let is_new = self.places.insert(key, place).is_none();
        if is_new {
            self.count(place, |keys| keys + 1);
        }
        is_new
    }

    /// Puts a key into a partition: into the first bucket with fewer than `target` keys, else into a new one. It leaves the place where it was.
    ///
    /// Source: `org.apache.paimon.crosspartition.BucketAssigner`.
    pub(super) fn put(&mut self, key: Digest, partition: PartitionId, target: u64) -> Place {
        if let Some(old) = self.get(key) {
            self.count(old, |keys| keys.saturating_sub(1));
        }
        let bucket = self.partitions.get(partition as usize).map_or(0, |partition| {
            let not_full = partition.keys.iter().find(|&(_, &keys)| keys < target);
            let unused = || (0..).find(|bucket| !partition.keys.contains_key(bucket)).unwrap_or(0);
            not_full.map_or_else(unused, |(&bucket, _)| bucket)
        });
        let place = Place { partition, bucket };
        self.places.insert(key, place);
        self.count(place, |keys| keys + 1);
        place
    }

    fn count(&mut self, place: Place, change: impl FnOnce(u64) -> u64) {
        if let Some(partition) = self.partitions.get_mut(place.partition as usize) {
            let keys = partition.keys.entry(place.bucket).or_default();
            *keys = change(*keys);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fill_buckets_and_leave_room_behind() {
        let mut index = KeyIndex::default();
        let partition = index.id(&BinaryRow::empty()).unwrap();
        let key = |name: &str| Digest::of(name.as_bytes());
        let place = |bucket| Place { partition, bucket };
        assert!(index.restore(key("a"), place(1)));
        assert!(!index.restore(key("a"), place(1)));
        assert_eq!(index.put(key("b"), partition, 2), place(1));
        assert_eq!(index.put(key("c"), partition, 2), place(0));
        assert_eq!(index.put(key("d"), partition, 2), place(0));
        assert_eq!(index.put(key("e"), partition, 2), place(2));
        assert_eq!(index.put(key("a"), partition, 2), place(1));
        assert_eq!(index.get(key("c")), Some(place(0)));
        assert_eq!(index.get(key("x")), None);
    }

    #[test]
    fn an_entry_is_as_large_as_the_docs_say() {
        assert_eq!(size_of::<(Digest, Place)>(), 24);
    }
}
