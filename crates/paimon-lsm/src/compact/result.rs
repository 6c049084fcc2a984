//! What a compaction did.

use std::collections::BTreeMap;
use std::sync::Arc;

use paimon_format::dv::{BucketDvMaintainer, DeletionVector};
use paimon_format::meta::DataFileMeta;
use serde::{Deserialize, Serialize};

use crate::LsmError;

/// Files that a compaction consumed and made. An upgraded file is in both lists, with its old and its new level; a file that was
/// left as it is, is in neither.
///
/// Source: `org.apache.paimon.compact.CompactResult`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactResult {
    /// Consumed, as they were.
    pub before: Vec<Arc<DataFileMeta>>,
    /// In their place.
    pub after: Vec<Arc<DataFileMeta>>,
    /// New changelog files.
    pub changelog: Vec<Arc<DataFileMeta>>,
    /// Rows of older files that the outputs replace, by file name.
    pub deletions: BTreeMap<String, DeletionVector>,
    /// Names of files whose rows were written anew: their deletion vectors go.
    pub rewritten: Vec<String>,
}

impl CompactResult {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty() && self.changelog.is_empty()
    }

    /// Notes in the bucket's deletion vectors which rows the outputs replace, and forgets those of files that were rewritten.
    ///
    /// Errors: `Invalid` for a row that no vector of the table's kind can hold.
    pub fn apply_deletions(&self, vectors: &mut BucketDvMaintainer) -> Result<(), LsmError> {
        for (file, rows) in &self.deletions {
            vectors.merge_new_deletion(file, rows)?;
        }
        for file in &self.rewritten {
            vectors.remove_deletion_vector_of(file);
        }
        Ok(())
    }
}
