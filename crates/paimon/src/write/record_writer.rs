//! The writer of one bucket, whatever the bucket is.

use arrow_array::RecordBatch;
use paimon_format::meta::CommitIncrement;
use paimon_format::types::RowKind;
use paimon_lsm::write::{MergeTreeWriter, WaitCompaction};

use crate::error::Result;
use crate::postpone::PostponeBucketWriter;

/// The writer of one bucket.
///
/// Source: `org.apache.paimon.utils.RecordWriter`.
#[derive(Debug)]
pub(super) enum RecordWriter {
    /// Of a bucket with a merge tree.
    Tree(Box<MergeTreeWriter>),
    /// Of rows that have no bucket yet.
    Postponed(Box<PostponeBucketWriter>),
}

impl RecordWriter {
    pub(super) async fn write(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<()> {
        match self {
            Self::Tree(tree) => Ok(tree.write(values, kinds).await?),
            Self::Postponed(postponed) => postponed.write(values, kinds).await,
        }
    }

    /// What [`flush_memory`](Self::flush_memory) would free.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Tree(tree) => tree.memory_bytes(),
            Self::Postponed(postponed) => postponed.memory_bytes(),
        }
    }

    pub(super) async fn flush_memory(&mut self) -> Result<()> {
        match self {
            Self::Tree(tree) => Ok(tree.flush_memory().await?),
            Self::Postponed(postponed) => postponed.flush_memory().await,
        }
    }

    pub(super) async fn compact(&mut self, full: bool) -> Result<()> {
        match self {
            Self::Tree(tree) => Ok(tree.compact(full).await?),
            Self::Postponed(_) => Ok(()),
        }
    }

    pub(super) async fn flush(&mut self, wait: WaitCompaction) -> Result<()> {
        match self {
            Self::Tree(tree) => Ok(tree.flush(wait).await?),
            Self::Postponed(postponed) => postponed.flush_memory().await,
        }
    }

    pub(super) async fn settle(&mut self, wait: WaitCompaction) -> Result<()> {
        match self {
            Self::Tree(tree) => Ok(tree.settle(wait).await?),
            Self::Postponed(_) => Ok(()),
        }
    }

    /// What was flushed since the last call.
    pub(super) fn drain_increment(&mut self) -> Result<CommitIncrement> {
        match self {
            Self::Tree(tree) => Ok(tree.drain_increment()?),
            Self::Postponed(postponed) => postponed.drain_increment(),
        }
    }

    pub(super) fn compact_not_completed(&mut self) -> Result<bool> {
        match self {
            Self::Tree(tree) => Ok(tree.compact_not_completed()?),
            Self::Postponed(_) => Ok(false),
        }
    }

    pub(super) async fn close(self) {
        match self {
            Self::Tree(tree) => tree.close().await,
            Self::Postponed(postponed) => postponed.close().await,
        }
    }
}
