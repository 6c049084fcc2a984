//! A block of keys with their versions, as positions.

use paimon_format::kv::KvBatch;

/// One row of one of the source batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef {
    /// Index into [`KeyGroups::sources`].
    pub batch: u32,
    /// Row of that batch.
    pub row: u32,
}

/// A block of consecutive keys. Group `g` is `rows[ends[g - 1]..ends[g]]`, oldest version first. Rows point into `sources`;
/// nothing is copied.
#[derive(Clone, Copy, Debug)]
pub struct KeyGroups<'a> {
    /// The batches that rows point into.
    pub sources: &'a [KvBatch],
    /// All versions of all keys of the block.
    pub rows: &'a [RowRef],
    /// Where each group ends in `rows`.
    pub ends: &'a [u32],
    /// The last group goes on in the next call (a key with a million versions in one write buffer): the kernel keeps its state
    /// and writes nothing for it yet.
    pub open: bool,
}
