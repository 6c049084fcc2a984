//! The buckets of one partition by key hash.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use paimon_format::meta::IndexFileMeta;
use paimon_format::row::BinaryRow;

use crate::options::{DynamicBucketSettings, MAX_DYNAMIC_BUCKETS};

/// Which bucket of one partition each key hash is in. A key stays where it is; a new one goes to the first bucket that is not full, else to
/// a new bucket, else, when there may be no more buckets, to any: which one, its hash says, so that two writers that start from the same
/// index agree.
///
/// With several initial buckets the keys are cut into as many classes by their hash, and each class fills buckets of its own (those whose
/// number leaves the class as remainder), as that many assigners of Java would. Two keys of equal hash share a bucket.
///
/// Memory: 16 to 30 bytes a key.
///
/// Source: `org.apache.paimon.index.{PartitionIndex, HashBucketAssigner, DynamicBucketIndexMaintainer}`.
#[derive(Debug)]
pub(super) struct PartitionIndex {
    settings: DynamicBucketSettings,
    partition_hash: i32,
    bucket_of: HashMap<i32, u16, BuildHasherDefault<SpreadHash>>,
    buckets: BTreeMap<u16, IndexedBucket>,
    classes: Vec<Class>,
}

/// One bucket's keys.
#[derive(Debug, Default)]
pub(super) struct IndexedBucket {
    /// The hashes of its keys, each once.
    pub(super) hashes: Vec<i32>,
    /// The newest file that holds them, without those that came later.
    pub(super) file: Option<IndexFileMeta>,
    /// Keys came since the file was written.
    pub(super) grown: bool,
}

/// The buckets that keys of some hashes go to.
#[derive(Debug, Default)]
struct Class {
    /// All of them.
    buckets: Vec<u16>,
    /// Those that may not be full, ascending.
    open: VecDeque<u16>,
    /// No bucket below it is free.
    next: u16,
}

impl PartitionIndex {
    /// For a partition whose index files hold these hashes, by bucket.
    pub(super) fn new(
        settings: DynamicBucketSettings,
        partition: &BinaryRow,
        there: BTreeMap<u16, (IndexFileMeta, Vec<i32>)>,
    ) -> Self {
        let count = settings.initial_buckets;
        let mut index = Self {
            settings,
            partition_hash: partition.hash_code(),
            bucket_of: HashMap::default(),
            buckets: BTreeMap::new(),
            classes: (0..count)
                .map(|first| Class {
                    next: first,
                    ..Class::default()
                })
                .collect(),
        };
        for (bucket, (file, hashes)) in there {
            index.bucket_of.extend(hashes.iter().map(|&hash| (hash, bucket)));
            if let Some(class) = index.classes.get_mut(usize::from(bucket % count)) {
                class.buckets.push(bucket);
                class.open.push_back(bucket);
            }
            let bucket_index = IndexedBucket {
                hashes,
                file: Some(file),
                grown: false,
            };
            index.buckets.insert(bucket, bucket_index);
        }
        index
    }

    /// The bucket of a key with this hash. `None`: it is new, and all buckets that there can be are full.
    pub(super) fn assign(&mut self, hash: i32) -> Option<u16> {
        if let Some(&bucket) = self.bucket_of.get(&hash) {
            return Some(bucket);
        }
        let bucket = self.bucket_of_new(hash)?;
        let there = self.buckets.entry(bucket).or_default();
        there.hashes.push(hash);
        there.grown = true;
        self.bucket_of.insert(hash, bucket);
        Some(bucket)
    }

    /// The buckets that have got new keys since their file was written.
    pub(super) fn grown(&mut self) -> impl Iterator<Item = (u16, &mut IndexedBucket)> {
        let buckets = self.buckets.iter_mut().filter(|(_, bucket)| bucket.grown);
        buckets.map(|(&number, bucket)| (number, bucket))
    }

    fn bucket_of_new(&mut self, hash: i32) -> Option<u16> {
        let count = self.settings.initial_buckets;
        let remainder = |hash: i32| hash.unsigned_abs() % u32::from(count);
        let class = (remainder(self.partition_hash) + remainder(hash)) % u32::from(count);
        let class = self.classes.get_mut(class as usize)?;
        while let Some(&bucket) = class.open.front() {
            let keys = self.buckets.get(&bucket).map_or(0, |bucket| bucket.hashes.len() as u64);
            if keys < self.settings.target_rows {
                return Some(bucket);
            }
            class.open.pop_front();
        }
        let limit = self.settings.max_buckets.unwrap_or(MAX_DYNAMIC_BUCKETS);
        while class.next < limit && self.buckets.contains_key(&class.next) {
            class.next = class.next.saturating_add(count);
        }
        if class.next < limit {
            // In order, as they come from an index that is read again.
            let at = class.buckets.partition_point(|&bucket| bucket < class.next);
            class.buckets.insert(at, class.next);
            class.open.push_back(class.next);
            return Some(class.next);
        }
        self.settings.max_buckets?;
        let any = hash.unsigned_abs() as usize % class.buckets.len().max(1);
        class.buckets.get(any).copied()
    }
}

/// Spreads a hash that is one already over all bits.
#[derive(Debug, Default)]
pub(super) struct SpreadHash(u64);

impl Hasher for SpreadHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_i32(&mut self, hash: i32) {
        self.write_u64(u64::from(hash.cast_unsigned()));
    }

    fn write_u64(&mut self, part: u64) {
        // The golden ratio, by which Fibonacci hashing multiplies.
        self.0 = (self.0.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(target_rows: u64, initial_buckets: u16, max_buckets: Option<u16>) -> DynamicBucketSettings {
        DynamicBucketSettings {
            target_rows,
            initial_buckets,
            max_buckets,
        }
    }

    fn index(settings: DynamicBucketSettings, there: &[(u16, &[i32])]) -> PartitionIndex {
        let file = |bucket: u16| IndexFileMeta {
            index_type: "HASH".to_owned(),
            file_name: format!("index-{bucket}"),
            file_size: 0,
            row_count: 0,
            dv_ranges: None,
            external_path: None,
            global_index: None,
        };
        let there = there
            .iter()
            .map(|(bucket, hashes)| (*bucket, (file(*bucket), hashes.to_vec())));
        PartitionIndex::new(settings, &BinaryRow::empty(), there.collect())
    }

    fn assign(index: &mut PartitionIndex, hashes: impl IntoIterator<Item = i32>) -> Vec<Option<u16>> {
        hashes.into_iter().map(|hash| index.assign(hash)).collect()
    }

    #[test]
    fn buckets_are_filled_in_order_and_keys_stay() {
        let mut index = index(settings(2, 1, None), &[]);
        let found = assign(&mut index, [10, 11, 12, 10, 13, 14, 11]);
        assert_eq!(found, [0, 0, 1, 0, 1, 2, 0].map(Some));
        let grown: Vec<_> = index
            .grown()
            .map(|(bucket, index)| (bucket, index.hashes.clone()))
            .collect();
        assert_eq!(grown, [(0, vec![10, 11]), (1, vec![12, 13]), (2, vec![14])]);
    }

    #[test]
    fn a_restored_index_goes_on_in_gaps() {
        let mut index = index(settings(2, 1, None), &[(0, &[10, 11]), (2, &[12])]);
        assert_eq!(assign(&mut index, [12, 13, 14, 15, 16]), [2, 2, 1, 1, 3].map(Some));
        assert_eq!(index.grown().map(|(bucket, _)| bucket).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn classes_fill_buckets_of_their_own() {
        let mut index = index(settings(1, 3, None), &[]);
        let first = i32::try_from(BinaryRow::empty().hash_code().unsigned_abs() % 3).unwrap();
        let buckets = assign(&mut index, 0..6);
        let class = |bucket: Option<u16>| i32::from(bucket.unwrap()) % 3;
        let expected: Vec<i32> = (0..6).map(|hash| (first + hash) % 3).collect();
        assert_eq!(
            buckets.iter().map(|&bucket| class(bucket)).collect::<Vec<_>>(),
            expected
        );
        let mut all: Vec<_> = buckets.into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn beyond_the_limit_the_hash_chooses() {
        let mut index = index(settings(1, 1, Some(2)), &[]);
        assert_eq!(assign(&mut index, [7, 8, 4, 5, -5, 4]), [0, 1, 0, 1, 1, 0].map(Some));
    }

    #[test]
    fn there_are_only_so_many_buckets() {
        let mut index = index(settings(1, 1, None), &[]);
        let last = i32::from(MAX_DYNAMIC_BUCKETS) - 1;
        assert_eq!(
            assign(&mut index, 0..=last).last(),
            Some(&Some(MAX_DYNAMIC_BUCKETS - 1))
        );
        assert_eq!(index.assign(last + 1), None);
        assert_eq!(index.assign(0), Some(0));
    }
}
