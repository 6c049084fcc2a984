//! One compaction: the buckets of a table, side by side, one commit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use paimon_format::ErrorKind;
use paimon_format::env::StopSignal;
use paimon_format::meta::CommitMessage;

use super::job::BucketJob;
use super::look::{Scope, look};
use super::report::CompactReport;
use super::task::{CompactionTask, tasks_of};
use crate::bucket::BucketStores;
use crate::error::Result;
use crate::partition::Selection;
use crate::postpone::distribute;
use crate::table::Table;

/// How often a compaction is planned anew after another one took its files.
const ATTEMPTS: usize = 3;

/// Buckets side by side when the caller does not say: enough to overlap reading with merging.
pub(super) const DEFAULT_JOBS: usize = 4;

/// Called with the buckets done and all of them.
type Progress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// Compacts a table, or part of it, whatever its `write-only` says.
///
/// Source: `org.apache.paimon.flink.action.CompactAction` in batch mode.
#[derive(Clone)]
pub struct CompactBuilder {
    table: Table,
    scope: Scope,
    dry_run: bool,
    jobs: usize,
    progress: Option<Progress>,
    stop: StopSignal,
}

impl CompactBuilder {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            scope: Scope::default(),
            dry_run: false,
            jobs: DEFAULT_JOBS,
            progress: None,
            stop: StopSignal::never(),
        }
    }

    /// Makes one sorted run of each bucket, at the top level; otherwise each bucket gets one pick of the strategy.
    #[must_use]
    pub fn full(self, full: bool) -> Self {
        let scope = Scope { full, ..self.scope };
        Self { scope, ..self }
    }

    /// Only looks what would be compacted.
    #[must_use]
    pub fn dry_run(self, dry_run: bool) -> Self {
        Self { dry_run, ..self }
    }

    /// How many buckets are compacted side by side, at least 1; 4 when not set.
    #[must_use]
    pub fn jobs(self, jobs: usize) -> Self {
        Self {
            jobs: jobs.max(1),
            ..self
        }
    }

    /// Only these partitions and buckets.
    #[must_use]
    pub fn select(self, selection: Selection) -> Self {
        let scope = Scope {
            selection,
            ..self.scope
        };
        Self { scope, ..self }
    }

    /// Only partitions into which nothing was written for so long.
    #[must_use]
    pub fn idle(self, idle: Duration) -> Self {
        let scope = Scope {
            idle: Some(idle),
            ..self.scope
        };
        Self { scope, ..self }
    }

    /// Tells how many buckets are done, of how many.
    #[must_use]
    pub fn on_progress(self, progress: impl Fn(usize, usize) + Send + Sync + 'static) -> Self {
        Self {
            progress: Some(Arc::new(progress)),
            ..self
        }
    }

    /// Ends early, and cleanly, when it is asked to: running compactions are taken back, those that have ended are committed.
    #[must_use]
    pub fn stop_on(self, stop: StopSignal) -> Self {
        Self { stop, ..self }
    }

    /// Compacts, and commits all buckets at once. Writers may append meanwhile; a bucket that another compaction took first is
    /// planned anew, up to three times. Rows that wait for a bucket (`bucket` = -2) get one first, in a snapshot of their own.
    ///
    /// Errors: `Conflict` when others kept being first; `Unavailable`, whose message says whether the commit may be there all the
    /// same; `Unsupported` or `Invalid`, naming an option; `Invalid` or `Corrupt`, naming a bucket that cannot be compacted: then none is, unless it is
    /// left out by [`select`](Self::select). Except after `Unavailable` the files written are removed.
    pub async fn run(&self) -> Result<CompactReport> {
        let table = self.table.for_compaction()?;
        let clock = &table.context().env().clock;
        let start_ms = clock.now_ms();
        let Some(distributed) = distribute(&table, &self.scope, self.dry_run, &self.stop).await? else {
            return Ok(CompactReport {
                stopped: true,
                milliseconds: clock.now_ms() - start_ms,
                ..CompactReport::default()
            });
        };
        let mut attempt = 1;
        loop {
            match self.run_once(&table).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => {
                    tracing::info!(%error, attempt, "another compaction was first: planning anew");
                    attempt += 1;
                }
                Ok(report) => {
                    return Ok(CompactReport {
                        distributed,
                        milliseconds: clock.now_ms() - start_ms,
                        ..report
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same compactions as data: a task a bucket, or, with `part_bytes`, several of about so many bytes. Each can be run by another process
    /// ([`CompactionTask::run`]); [`Table::commit_compaction`] commits all results. Nothing is changed, and rows
    /// that wait for a bucket go on waiting; empty: nothing to do.
    ///
    /// Errors: those of looking at the table.
    pub async fn plan(&self, part_bytes: Option<u64>) -> Result<Vec<CompactionTask>> {
        let table = self.table.for_compaction()?;
        let look = look(&BucketStores::new(&table)?, &self.scope).await?;
        let buckets = look.into_jobs()?.into_iter().map(|job| job.into_parts(part_bytes));
        Ok(tasks_of(&table, buckets.collect::<Result<_>>()?))
    }

    async fn run_once(&self, table: &Table) -> Result<CompactReport> {
        let look = look(&BucketStores::new(table)?, &self.scope).await?;
        let buckets_looked_at = look.buckets;
        let jobs = look.into_jobs()?;
        let report = CompactReport {
            buckets_looked_at,
            buckets: jobs.iter().map(BucketJob::report).collect(),
            ..CompactReport::default()
        };
        if self.dry_run || jobs.is_empty() {
            return Ok(report);
        }
        self.compact(table, jobs, report).await
    }

    async fn compact(&self, table: &Table, jobs: Vec<BucketJob>, report: CompactReport) -> Result<CompactReport> {
        let commit = table.write_builder().new_commit()?;
        let (done, all) = (AtomicUsize::new(0), jobs.len());
        let done = &done;
        let work = jobs.into_iter().map(|job| async move {
            let message = job.run(&self.stop).await;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = &self.progress {
                progress(done, all);
            }
            message
        });
        // All tasks end, so that none leaves files behind when another one fails.
        let results: Vec<Result<Option<CommitMessage>>> =
            futures::stream::iter(work).buffered(self.jobs).collect().await;
        let mut messages = Vec::with_capacity(all);
        let mut buckets = Vec::with_capacity(all);
        let (mut failed, mut stopped) = (None, false);
        for (result, bucket) in results.into_iter().zip(report.buckets) {
            match result {
                Ok(Some(message)) => {
                    buckets.push(bucket.done(&message));
                    messages.push(message);
                }
                Ok(None) => stopped = true,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            commit.abort(&messages).await?;
            return Err(error);
        }
        let snapshots = match messages.is_empty() {
            // All were stopped: also a table that wants empty snapshots gets none.
            true => Vec::new(),
            false => commit.commit_or_abort(messages).await?,
        };
        Ok(CompactReport {
            buckets,
            stopped,
            snapshot: snapshots.last().copied(),
            ..report
        })
    }
}

impl fmt::Debug for CompactBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactBuilder")
            .field("table", &self.table.location())
            .field("scope", &self.scope)
            .field("dry_run", &self.dry_run)
            .field("jobs", &self.jobs)
            .finish_non_exhaustive()
    }
}
