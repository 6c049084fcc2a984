//! Dedicated compaction: the buckets of a table, side by side, one commit.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use paimon_format::ErrorKind;
use paimon_format::meta::{CommitIncrement, CommitMessage, CompactIncrement, DataFileMeta};
use paimon_format::options::Options;
use paimon_lsm::pick::PickReason;
use paimon_manifest::snapshot::TimeTravel;

use crate::bucket::BucketStores;
use crate::error::Result;
use crate::levels::{BucketLevels, file_bytes};
use crate::partition::Selection;
use crate::table::Table;
use crate::write::{BATCH_IDENTIFIER, TableCommit, certainly_not_committed};

/// How often a compaction is planned anew after another one took its files.
const ATTEMPTS: usize = 3;

/// Buckets side by side when the caller does not say: enough to overlap reading with merging.
const DEFAULT_JOBS: usize = 4;

/// Called with the buckets done and all of them.
type Progress = Arc<dyn Fn(usize, usize) + Send + Sync>;

/// Compacts a table, or part of it, whatever its `write-only` says.
///
/// Source: `org.apache.paimon.flink.action.CompactAction` in batch mode.
#[derive(Clone)]
pub struct CompactBuilder {
    table: Table,
    full: bool,
    dry_run: bool,
    jobs: usize,
    selection: Selection,
    progress: Option<Progress>,
}

/// What a compaction did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactReport {
    /// Selected buckets that have files.
    pub buckets_looked_at: usize,
    /// Those that were compacted. Empty: nothing to do.
    pub buckets: Vec<BucketReport>,
    /// The snapshot that was made; `None`: nothing to do, or a dry run.
    pub snapshot: Option<i64>,
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
    fn of(files: &[Arc<DataFileMeta>]) -> Self {
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
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            rows: self.rows + other.rows,
        }
    }
}

impl CompactReport {
    /// Files in and out, over all buckets.
    pub fn totals(&self) -> (FileTotals, FileTotals) {
        let start = (FileTotals::default(), FileTotals::default());
        self.buckets.iter().fold(start, |(input, output), bucket| {
            (input.plus(bucket.input), output.plus(bucket.output))
        })
    }
}

impl CompactBuilder {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            table,
            full: false,
            dry_run: false,
            jobs: DEFAULT_JOBS,
            selection: Selection::all(),
            progress: None,
        }
    }

    /// Makes one sorted run of each bucket, at the top level; otherwise each bucket gets one pick of the strategy.
    #[must_use]
    pub fn full(self, full: bool) -> Self {
        Self { full, ..self }
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
        Self { selection, ..self }
    }

    /// Tells how many buckets are done, of how many.
    #[must_use]
    pub fn on_progress(self, progress: impl Fn(usize, usize) + Send + Sync + 'static) -> Self {
        Self {
            progress: Some(Arc::new(progress)),
            ..self
        }
    }

    /// Compacts, and commits all buckets at once. Writers may append meanwhile; a bucket that another compaction took first is
    /// planned anew, up to three times.
    ///
    /// Errors: `Conflict` when others kept being first; `Unavailable`, whose message says whether the commit may be there all the
    /// same; `Unsupported` or `Invalid`, naming an option. Except after `Unavailable` the files written are removed.
    pub async fn run(&self) -> Result<CompactReport> {
        let forced: Options = [("write-only", "false")].into_iter().collect();
        let table = self.table.with_options(&forced)?;
        table.check_writable()?;
        let clock = &table.context().env().clock;
        let start_ms = clock.now_ms();
        let mut attempt = 1;
        loop {
            match self.run_once(&table).await {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => {
                    tracing::info!(%error, attempt, "another compaction was first: planning anew");
                    attempt += 1;
                }
                Ok(report) => {
                    return Ok(CompactReport {
                        milliseconds: clock.now_ms() - start_ms,
                        ..report
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn run_once(&self, table: &Table) -> Result<CompactReport> {
        let buckets = table.buckets(&TimeTravel::Latest, &self.selection).await?;
        // Rows without a bucket wait for a job that gives them one.
        let buckets: Vec<BucketLevels> = buckets.into_iter().filter(|bucket| bucket.bucket >= 0).collect();
        let buckets_looked_at = buckets.len();
        let mut picked = Vec::new();
        let mut reports = Vec::new();
        for bucket in buckets {
            let states = table.check_states_of(&bucket.levels().all_files()).await;
            states.map_err(|error| error.in_bucket(bucket.name()))?;
            let pick = table.explain(&bucket, self.full)?;
            if let Some(unit) = pick.unit {
                reports.push(BucketReport {
                    bucket: bucket.name().to_owned(),
                    reason: unit.reason,
                    output_level: unit.output_level,
                    input: FileTotals::of(&unit.files),
                    output: FileTotals::default(),
                    changelog: FileTotals::default(),
                });
                picked.push(bucket);
            }
        }
        let report = CompactReport {
            buckets_looked_at,
            buckets: reports,
            ..CompactReport::default()
        };
        if self.dry_run || picked.is_empty() {
            return Ok(report);
        }
        self.compact(table, picked, report).await
    }

    async fn compact(
        &self,
        table: &Table,
        picked: Vec<BucketLevels>,
        mut report: CompactReport,
    ) -> Result<CompactReport> {
        let stores = BucketStores::new(table)?;
        let commit = TableCommit::new(table, &table.context().env().ids.uuid())?;
        let (done, all) = (AtomicUsize::new(0), picked.len());
        let (stores, done) = (&stores, &done);
        let tasks = picked.into_iter().map(|bucket| async move {
            let message = self.compact_bucket(stores, &bucket).await;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = &self.progress {
                progress(done, all);
            }
            message
        });
        // All tasks end, so that none leaves files behind when another one fails.
        let results: Vec<Result<CommitMessage>> = futures::stream::iter(tasks).buffered(self.jobs).collect().await;
        let mut messages = Vec::with_capacity(all);
        let mut failed = None;
        for result in results {
            match result {
                Ok(message) => messages.push(message),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            commit.abort(&messages).await?;
            return Err(error);
        }
        for (bucket, message) in report.buckets.iter_mut().zip(&messages) {
            bucket.input = FileTotals::of(&message.increment.compact.compact_before);
            bucket.output = FileTotals::of(&message.increment.compact.compact_after);
            bucket.changelog = FileTotals::of(&message.increment.compact.changelog_files);
        }
        match commit.commit(BATCH_IDENTIFIER, messages.clone()).await {
            Ok(snapshots) => {
                report.snapshot = snapshots.last().copied();
                Ok(report)
            }
            Err(error) => {
                if certainly_not_committed(&error) {
                    commit.abort(&messages).await?;
                }
                Err(error)
            }
        }
    }

    async fn compact_bucket(&self, stores: &BucketStores, bucket: &BucketLevels) -> Result<CommitMessage> {
        let compact = self.compact_files(stores, bucket).await;
        let compact = compact.map_err(|error| error.in_bucket(bucket.name()))?;
        Ok(CommitMessage {
            partition: bucket.partition.row().clone(),
            bucket: bucket.bucket,
            total_buckets: Some(bucket.total_buckets),
            increment: CommitIncrement {
                compact,
                ..CommitIncrement::default()
            },
        })
    }

    async fn compact_files(&self, stores: &BucketStores, bucket: &BucketLevels) -> Result<CompactIncrement> {
        let mut compactor = stores.compactor(bucket)?;
        compactor.trigger_compaction(self.full)?;
        let result = compactor.result(true).await?.unwrap_or_default();
        let vectors = compactor.write_deletion_vectors().await?;
        Ok(CompactIncrement {
            compact_before: result.before,
            compact_after: result.after,
            changelog_files: result.changelog,
            new_index_files: vectors.into_iter().collect(),
            ..CompactIncrement::default()
        })
    }
}

impl fmt::Debug for CompactBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactBuilder")
            .field("table", &self.table.location())
            .field("full", &self.full)
            .field("dry_run", &self.dry_run)
            .field("jobs", &self.jobs)
            .field("selection", &self.selection)
            .finish_non_exhaustive()
    }
}
