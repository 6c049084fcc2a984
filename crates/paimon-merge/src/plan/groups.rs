//! A block of keys with their versions, as positions.

use std::ops::Range;

use paimon_format::kv::KvBatch;

/// One row of one of the source batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef {
    /// Index into [`KeyGroups::sources`].
    pub batch: u32,
    /// Row of that batch.
    pub row: u32,
}

/// A block of consecutive keys. Group `g` is `rows[ends[g - 1]..ends[g]]`, oldest version first, and never empty. Rows point into
/// `sources`; nothing is copied.
#[derive(Clone, Copy, Debug)]
pub struct KeyGroups<'a> {
    /// The batches that rows point into.
    pub sources: &'a [KvBatch],
    /// All versions of all keys of the block.
    pub rows: &'a [RowRef],
    /// Where each group ends in `rows`.
    pub ends: &'a [u32],
    /// The last group goes on as the first group of the next call (a key with a million versions in one write buffer): the kernel
    /// keeps its state and writes nothing for it yet.
    pub open: bool,
}

impl<'a> KeyGroups<'a> {
    /// Groups, the open one included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Where a group begins in `rows`; for `len()`, where the last one ends.
    pub fn start(&self, group: usize) -> usize {
        match group.checked_sub(1) {
            Some(before) => self.ends.get(before).map_or(self.rows.len(), |&end| end as usize),
            None => 0,
        }
    }

    /// The versions of each group, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [RowRef]> + use<'a> {
        let (rows, ends) = (self.rows, self.ends);
        let mut start = 0;
        ends.iter().map(move |&end| {
            let range: Range<usize> = start..end as usize;
            start = end as usize;
            rows.get(range).unwrap_or_default()
        })
    }
}
