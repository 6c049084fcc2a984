//! The compaction of one bucket.

use paimon_format::env::StopSignal;
use paimon_format::meta::{CommitIncrement, CommitMessage, CompactIncrement};
use paimon_lsm::compact::{CompactResult, CompactTask, RunningCompaction};
use paimon_lsm::levels::total_bytes;

use super::report::BucketReport;
use super::task::BucketPlan;
use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::levels::BucketLevels;

/// A bucket with the compaction that was picked for it.
#[derive(Debug)]
pub(crate) struct BucketJob {
    stores: BucketStores,
    bucket: BucketLevels,
    task: CompactTask,
}

impl BucketJob {
    pub(crate) fn new(stores: BucketStores, bucket: BucketLevels, task: CompactTask) -> Self {
        Self { stores, bucket, task }
    }

    pub(crate) fn bucket(&self) -> &BucketLevels {
        &self.bucket
    }

    /// What it will do.
    pub(crate) fn report(&self) -> BucketReport {
        BucketReport::planned(self.bucket.name(), &self.task)
    }

    /// Sorted runs of the bucket, and bytes that will be read: what is compacted first.
    pub(crate) fn debt(&self) -> (usize, u64) {
        (self.bucket.runs().len(), total_bytes(&self.task.files))
    }

    /// Its parts of about so many bytes; one part without a limit.
    ///
    /// Errors: `Invalid`, `Unsupported`, `Corrupt`, naming the bucket.
    pub(super) fn into_parts(self, part_bytes: Option<u64>) -> Result<BucketPlan> {
        let Self { stores, bucket, task } = self;
        let parts = match part_bytes {
            None => vec![task],
            Some(bytes) => {
                let rewriter = stores.rewriter(bucket.partition.row(), bucket.bucket)?;
                let parts = rewriter.split(&task, bytes);
                parts.map_err(|error| Error::from(error).in_bucket(bucket.name()))?
            }
        };
        Ok(BucketPlan { bucket, parts })
    }

    /// Does it. `None`: it was stopped. Then, and after an error, no file of it is left.
    ///
    /// Errors: those of merging and of files, naming the bucket.
    pub(crate) async fn run(self, stop: &StopSignal) -> Result<Option<CommitMessage>> {
        let Self { stores, bucket, task } = self;
        let message = run(&stores, &bucket, task, stop).await;
        message.map_err(|error| error.in_bucket(bucket.name()))
    }
}

async fn run(
    stores: &BucketStores,
    bucket: &BucketLevels,
    task: CompactTask,
    stop: &StopSignal,
) -> Result<Option<CommitMessage>> {
    if stop.is_asked() {
        return Ok(None);
    }
    let rewriter = stores.rewriter(bucket.partition.row(), bucket.bucket)?;
    let mut running = RunningCompaction::start(&rewriter, task);
    let Some(result) = running.finished_or_stopped(stop).await? else {
        return Ok(None);
    };
    match message(bucket, &result).await {
        Ok(message) => {
            let kept = &result.after;
            rewriter.dropped(&result, |file| {
                !kept.iter().any(|kept| kept.file_name == file.file_name)
            });
            Ok(Some(message))
        }
        Err(error) => {
            rewriter.discard(&result).await;
            Err(error)
        }
    }
}

/// What is committed of a bucket's compaction: writes its deletion vectors, if they have changed.
///
/// Errors: `Unavailable`, `Corrupt` when the files do not fit in; the files of the result are still there.
pub(crate) async fn message(bucket: &BucketLevels, result: &CompactResult) -> Result<CommitMessage> {
    let (mut new_index_files, mut deleted_index_files) = (Vec::new(), Vec::new());
    if let Some(vectors) = bucket.vectors() {
        let mut vectors = vectors.clone();
        result.apply_deletions(&mut vectors)?;
        if let Some(written) = vectors.write_deletion_vectors_index().await.map_err(Error::from)? {
            new_index_files.push(written.file);
            deleted_index_files = written.replaced;
        }
    }
    let mut levels = bucket.levels().clone();
    levels.update(&result.before, &result.after)?;
    Ok(CommitMessage {
        partition: bucket.partition.row().clone(),
        bucket: bucket.bucket,
        total_buckets: Some(bucket.total_buckets),
        increment: CommitIncrement {
            compact: CompactIncrement {
                compact_before: result.before.clone(),
                compact_after: result.after.clone(),
                changelog_files: result.changelog.clone(),
                new_index_files,
                deleted_index_files,
                upper_files: Some(levels.upper_files()),
            },
            ..CommitIncrement::default()
        },
    })
}
