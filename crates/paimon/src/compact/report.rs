//! What compactions did.

use std::sync::Arc;

use paimon_format::meta::{CommitMessage, DataFileMeta};
use paimon_lsm::compact::{CompactResult, CompactTask};
use paimon_lsm::levels::file_bytes;
use paimon_lsm::pick::PickReason;

use crate::postpone::DistributedPartition;

/// What a compaction did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Selected buckets that have files.
    pub buckets_looked_at: usize,
    /// Those that were compacted. Empty: nothing to do.
    pub buckets: Vec<BucketReport>,
    /// Partitions whose rows waited for a bucket and got one, in a snapshot before that of the compaction.
    pub distributed: Vec<DistributedPartition>,
    /// The snapshot that was made; `None`: nothing to do, a dry run, or it was stopped before.
    pub snapshot: Option<i64>,
    /// It was asked to stop before all was done: what stands here is committed, and nothing else of it is left.
    pub stopped: bool,
    /// How long it took.
    pub milliseconds: i64,
}

/// One bucket's compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketReport {
    /// The bucket's directory, relative to the table.
    pub bucket: String,
    /// The rule that picked its files.
    pub reason: PickReason,
    /// Where they went.
    pub output_level: i32,
    /// Files that were taken.
    pub input: FileTotals,
    /// Files in their place. A file that only changed its level counts on both sides. Zero in a dry run.
    pub output: FileTotals,
    /// Changelog files. Zero in a dry run.
    pub changelog: FileTotals,
}

/// Sums over data files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTotals {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
    /// Rows, deletes included.
    pub rows: u64,
}

impl FileTotals {
    pub(crate) fn of(files: &[Arc<DataFileMeta>]) -> Self {
        files.iter().fold(Self::default(), |sum, file| {
            sum.plus(Self {
                files: 1,
                bytes: file_bytes(file),
                rows: u64::try_from(file.row_count).unwrap_or(0),
            })
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_add(other.files),
            bytes: self.bytes.saturating_add(other.bytes),
            rows: self.rows.saturating_add(other.rows),
        }
    }
}

impl BucketReport {
    /// Of a compaction that is to come.
    pub(super) fn planned(bucket: &str, task: &CompactTask) -> Self {
        Self {
            bucket: bucket.to_owned(),
            reason: task.reason,
            output_level: task.output_level,
            input: FileTotals::of(&task.files),
            output: FileTotals::default(),
            changelog: FileTotals::default(),
        }
    }

    /// Of a compaction that was run.
    pub(super) fn of(bucket: &str, reason: PickReason, output_level: i32, result: &CompactResult) -> Self {
        Self {
            bucket: bucket.to_owned(),
            reason,
            output_level,
            input: FileTotals::of(&result.before),
            output: FileTotals::of(&result.after),
            changelog: FileTotals::of(&result.changelog),
        }
    }

    /// The same compaction, with what came of it.
    pub(super) fn done(self, message: &CommitMessage) -> Self {
        let compact = &message.increment.compact;
        Self {
            input: FileTotals::of(&compact.compact_before),
            output: FileTotals::of(&compact.compact_after),
            changelog: FileTotals::of(&compact.changelog_files),
            ..self
        }
    }

    /// Files in and out of several buckets.
    pub fn totals<'a>(buckets: impl IntoIterator<Item = &'a Self>) -> (FileTotals, FileTotals) {
        let start = (FileTotals::default(), FileTotals::default());
        buckets.into_iter().fold(start, |(input, output), bucket| {
            (input.plus(bucket.input), output.plus(bucket.output))
        })
    }
}

impl CompactReport {
    /// Files in and out, over all buckets.
    pub fn totals(&self) -> (FileTotals, FileTotals) {
        BucketReport::totals(&self.buckets)
    }
}
