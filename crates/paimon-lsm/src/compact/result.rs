//! What a compaction did.

use std::sync::Arc;

use paimon_format::meta::DataFileMeta;

/// Files that a compaction consumed and made. An upgraded file is in both lists, with its old and its new level; a file that was
/// left as it is, is in neither.
///
/// Source: `org.apache.paimon.compact.CompactResult`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactResult {
    /// Consumed, as they were.
    pub before: Vec<Arc<DataFileMeta>>,
    /// In their place.
    pub after: Vec<Arc<DataFileMeta>>,
    /// New changelog files.
    pub changelog: Vec<Arc<DataFileMeta>>,
}

impl CompactResult {
    /// Appends the lists of another result.
    pub fn merge(&mut self, other: Self) {
        self.before.extend(other.before);
        self.after.extend(other.after);
        self.changelog.extend(other.changelog);
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.changelog.is_empty()
    }
}
