//! Handing a bucket over to another writer.

use std::sync::Arc;

use paimon_format::meta::{CommitIncrement, DataFileMeta};

/// What a new writer needs to go on where another one stopped.
///
/// Source: `org.apache.paimon.operation.AbstractFileStoreWrite.State`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriterState {
    /// All files of the bucket, levels included; the uncommitted ones too.
    pub files: Vec<Arc<DataFileMeta>>,
    /// The number of the next record. Not the files' maximum: numbers may have been given to records that were merged away.
    pub next_sequence: i64,
    /// What no commit has got yet.
    pub increment: CommitIncrement,
}

impl WriterState {
    /// The state of a bucket as a snapshot shows it.
    pub fn restored(files: Vec<Arc<DataFileMeta>>) -> Self {
        let newest = files.iter().map(|file| file.max_sequence_number).max();
        Self {
            files,
            next_sequence: newest.map_or(0, |newest| newest.saturating_add(1)),
            increment: CommitIncrement::default(),
        }
    }
}
