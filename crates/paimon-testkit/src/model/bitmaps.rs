//! Bitmaps as sorted sets, in the simplest bytes of their formats: sorted arrays, no runs and no bits.
//!
//! Writers choose runs where they are shorter, so sets here have no neighbours, and few numbers.

use std::collections::{BTreeMap, BTreeSet};

use paimon_format::types::Datum;

/// Which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bitmap {
    /// `rbm32`: the portable format of 32-bit Roaring bitmaps.
    Portable32,
    /// `rbm64`: that of Java's `Roaring64Bitmap`, of numbers below 65,536, which are one leaf of its tree.
    Tree64,
}

/// Says that no container of a portable bitmap has runs.
const NO_RUNS: u32 = 12346;
/// Type of a node: a leaf.
const LEAF: u8 = 4;
/// An array of containers that was not cut to its entries.
const NOT_TRIMMED: u8 = 0xFE;
/// Type of a container: sorted numbers.
const SORTED: u8 = 2;

impl Bitmap {
    /// The bytes of a set.
    ///
    /// Panics on a set that is not of the kind this module is about.
    pub fn bytes(self, set: &BTreeSet<u64>) -> Vec<u8> {
        let neighbours = set.iter().zip(set.iter().skip(1)).any(|(a, b)| a + 1 == *b);
        let limit = match self {
            Self::Portable32 => 1 << 32,
            Self::Tree64 => 1 << 16,
        };
        let fits = set.last().is_none_or(|last| *last < limit);
        assert!(!neighbours && fits && set.len() < 1000, "{set:?}");
        match self {
            Self::Portable32 => portable(set),
            Self::Tree64 => tree(set),
        }
    }

    /// The set in bytes that [`bytes`](Self::bytes) made.
    pub(super) fn set(self, bytes: &[u8]) -> Result<BTreeSet<u64>, String> {
        let bytes = &mut Bytes(bytes);
        match self {
            Self::Portable32 => read_portable(bytes),
            Self::Tree64 => read_tree(bytes),
        }
    }

    /// The union of two values.
    pub(super) fn union(self, acc: &Datum, value: &Datum) -> Result<Datum, String> {
        let set = |value: &Datum| match value {
            Datum::Bytes(bytes) => self.set(bytes),
            other => Err(format!("{other:?} is no bitmap")),
        };
        Ok(Datum::Bytes(self.bytes(&(&set(acc)? | &set(value)?))))
    }
}

fn portable(set: &BTreeSet<u64>) -> Vec<u8> {
    let mut containers: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for number in set {
        containers
            .entry((number >> 16) as u16)
            .or_default()
            .push(*number as u16);
    }
    let mut bytes = NO_RUNS.to_le_bytes().to_vec();
    bytes.extend((containers.len() as u32).to_le_bytes());
    for (key, numbers) in &containers {
        bytes.extend(key.to_le_bytes());
        bytes.extend((numbers.len() as u16 - 1).to_le_bytes());
    }
    let mut offset = bytes.len() + 4 * containers.len();
    for numbers in containers.values() {
        bytes.extend((offset as u32).to_le_bytes());
        offset += 2 * numbers.len();
    }
    bytes.extend(containers.values().flatten().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn read_portable(bytes: &mut Bytes<'_>) -> Result<BTreeSet<u64>, String> {
    bytes.expect(&NO_RUNS.to_le_bytes())?;
    let containers = bytes.number(4)?;
    let mut heads = Vec::new();
    for _ in 0..containers {
        heads.push((bytes.number(2)?, bytes.number(2)? + 1));
    }
    for _ in 0..containers {
        bytes.number(4)?;
    }
    let mut set = BTreeSet::new();
    for (key, count) in heads {
        for _ in 0..count {
            set.insert(key << 16 | bytes.number(2)?);
        }
    }
    Ok(set)
}

fn tree(set: &BTreeSet<u64>) -> Vec<u8> {
    if set.is_empty() {
        return vec![0];
    }
    let mut bytes = tree_head();
    bytes.extend((set.len() as u32).to_le_bytes());
    for &number in set {
        bytes.extend((number as u16).to_le_bytes());
    }
    // One container, in the first entry of the first array.
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// Up to the count of the only container.
fn tree_head() -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend(1_u64.to_le_bytes());
    bytes.extend([LEAF, 0, 0, 0]);
    // The key, and where its container is.
    bytes.extend([0; 6 + 8]);
    bytes.extend(1_u32.to_le_bytes());
    bytes.push(NOT_TRIMMED);
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend([1, SORTED]);
    bytes
}

fn read_tree(bytes: &mut Bytes<'_>) -> Result<BTreeSet<u64>, String> {
    if bytes.0 == [0] {
        return Ok(BTreeSet::new());
    }
    bytes.expect(&tree_head())?;
    let count = bytes.number(4)?;
    (0..count).map(|_| bytes.number(2)).collect()
}

/// Bytes that are still to be read.
struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn expect(&mut self, head: &[u8]) -> Result<(), String> {
        let rest = self.0.strip_prefix(head);
        self.0 = rest.ok_or_else(|| format!("{:?} does not begin with {head:?}", self.0))?;
        Ok(())
    }

    /// Little-endian, of so many bytes.
    fn number(&mut self, length: usize) -> Result<u64, String> {
        let (head, rest) = self.0.split_at_checked(length).ok_or("the bytes end too early")?;
        self.0 = rest;
        Ok(head.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_what_they_were() {
        for format in [Bitmap::Portable32, Bitmap::Tree64] {
            for set in [vec![], vec![0], vec![3, 9, 65_535]] {
                let set = BTreeSet::from_iter(set);
                assert_eq!(format.set(&format.bytes(&set)), Ok(set));
            }
        }
        let far = BTreeSet::from([1, 65_536, 4_000_000_000]);
        assert_eq!(Bitmap::Portable32.set(&Bitmap::Portable32.bytes(&far)), Ok(far));
    }
}
