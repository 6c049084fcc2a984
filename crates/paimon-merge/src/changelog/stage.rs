//! The seam between compaction and what it makes of a block.

use paimon_format::types::RowKind;

use super::Hits;
use crate::MergeError;
use crate::kernel::MergedRows;
use crate::plan::{KeyGroups, RowRef};

/// Changes in key order, as positions: `batch < sources.len()` is a source of the block, `sources.len()` a row of
/// [`MergedRows::made`], `sources.len() + 1` a row of [`Hits::rows`]. -U stands directly before its +U.
#[derive(Clone, Debug, Default)]
pub struct ChangelogRows {
    /// The rows: key, sequence number and values are theirs.
    pub rows: Vec<RowRef>,
    /// The kind of each.
    pub kinds: Vec<RowKind>,
}

impl ChangelogRows {
    /// Appends a change.
    #[inline]
    pub(crate) fn push(&mut self, row: RowRef, kind: RowKind) {
        self.rows.push(row);
        self.kinds.push(kind);
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.kinds.clear();
    }
}

/// What a stage makes of a block.
#[derive(Debug, Default)]
pub struct StageOutput {
    /// The surviving rows. A row of batch `sources.len() + 1` is a looked-up one.
    pub merged: MergedRows,
    /// What changed; empty where no changelog is made.
    pub changelog: ChangelogRows,
}

impl StageOutput {
    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.merged.clear();
        self.changelog.clear();
    }
}

/// One block of keys after another: look-ups that are needed, the merge, and the difference.
///
/// Source: `org.apache.paimon.mergetree.compact.MergeFunctionWrapper`, by the block.
pub trait MergeStage: Send {
    /// Whether a key whose only version lies on this level needs neither merging nor changelog nor look-up.
    fn passes(&self, level: i32) -> bool;

    /// Whether blocks must have all versions of their keys: [`PlanOptions::cut_keys`](crate::plan::PlanOptions::cut_keys) is off.
    /// Stages that ask for it answer a block with an open group with an `Internal` error.
    fn whole_keys(&self) -> bool;

    /// Groups whose old row must be looked up, ascending; empty for stages that never look up.
    fn missing(&self, groups: &KeyGroups<'_>) -> Vec<u32>;

    /// Merges every group of the block into `out`, which comes empty. `hits` has one entry for each group that
    /// [`missing`](Self::missing) named, in that order.
    ///
    /// Errors leave `out` and the stage's state unspecified; nothing outside is changed.
    fn merge(&mut self, groups: &KeyGroups<'_>, hits: &Hits, out: &mut StageOutput) -> Result<(), MergeError>;
}
