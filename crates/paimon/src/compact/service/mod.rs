//! Compaction for good: a service over one table or many.

mod backoff;
mod metrics;
mod report;
mod round;
mod source;
mod watched;

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::{Either, select};
use paimon_format::env::StopSignal;

use super::builder::DEFAULT_JOBS;
use super::look::Scope;
use crate::error::Result;
use crate::partition::Selection;
use backoff::BackOff;
use round::Queued;
use watched::WatchedTable;

pub use report::{BucketFailure, RoundBucket, RoundReport};
pub use source::{TablePattern, TableSource};

/// What a service compacts, and how hard it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSettings {
    /// Only these partitions and buckets.
    pub selection: Selection,
    /// Everything into one run a bucket, at the top level; otherwise what the strategy picks. Wise for idle partitions only: every
    /// commit of a writer asks for another full compaction.
    pub full: bool,
    /// Only partitions into which nothing was written for so long.
    pub idle: Option<Duration>,
    /// Buckets side by side, of all tables together; at least 1.
    pub jobs: usize,
    /// The pause after a round in which nothing was compacted.
    pub interval: Duration,
}

impl Default for ServiceSettings {
    /// All buckets, four side by side, a look every ten seconds.
    fn default() -> Self {
        Self {
            selection: Selection::all(),
            full: false,
            idle: None,
            jobs: DEFAULT_JOBS,
            interval: Duration::from_secs(10),
        }
    }
}

/// Compacts tables as they are written to, in rounds: looks at every table that has changed, takes the buckets with most debt, runs
/// them side by side and commits each as soon as it is done.
///
/// *Debt* is the number of sorted runs of a bucket; among equals, the bytes that its pick would read. A round takes at most sixteen
/// buckets a job, so that debts are weighed anew before long. Memory and disk are the budgets of the context's
/// [`Env`](paimon_format::env::Env), shared by all buckets.
///
/// A bucket that another compaction took first, or that failed, is left alone for a second, then two, up to five minutes, and planned
/// anew; so is a table that cannot be looked at. Nothing is remembered on disk: started again it looks at the tables and goes on. Two
/// services on one table do no harm, but some of their work is in vain.
///
/// Source: `org.apache.paimon.flink.action.{CompactAction, CompactDatabaseAction}` in streaming mode.
#[derive(Debug)]
pub struct CompactService {
    source: TableSource,
    settings: ServiceSettings,
    stop: StopSignal,
    /// By location, or by name where they come from a catalog.
    tables: BTreeMap<String, WatchedTable>,
    /// Tables of the catalog that could not be opened.
    closed: BTreeMap<String, BackOff>,
    rounds: u64,
    /// The round before compacted nothing.
    idle: bool,
}

impl CompactService {
    /// A service that ends when `stop` says so.
    pub fn new(source: TableSource, settings: ServiceSettings, stop: StopSignal) -> Self {
        Self {
            source,
            settings,
            stop,
            tables: BTreeMap::new(),
            closed: BTreeMap::new(),
            rounds: 0,
            idle: false,
        }
    }

    /// The next round, after a pause when the one before compacted nothing. `None`: it was asked to stop. A round that is stopped takes
    /// its running compactions back (no file of them is left), commits those that are done, and is reported.
    ///
    /// Errors: of a service over one table, that it cannot be looked at and never will be: all kinds but `Conflict`, `NotFound` and `Unavailable`.
    /// Other failures are in the report. Dropped in between, running compactions are cancelled.
    pub async fn next_round(&mut self) -> Result<Option<RoundReport>> {
        if self.idle {
            let pause = self.env().runtime.sleep(self.settings.interval);
            if let Either::Left(_) = select(self.stop.asked(), pause).await {
                return Ok(None);
            }
        }
        if self.stop.is_asked() {
            return Ok(None);
        }
        let report = self.round().await?;
        self.idle = report.buckets.is_empty();
        Ok(Some(report))
    }

    /// What the next round would do, in its order; nothing is changed. Errors: as [`next_round`](Self::next_round).
    pub async fn dry_run(&mut self) -> Result<RoundReport> {
        let (jobs, mut report) = self.queue(true).await?;
        report.buckets = jobs.iter().map(Queued::report).collect();
        Ok(report)
    }

    fn scope(&self) -> Scope {
        Scope {
            selection: self.settings.selection.clone(),
            full: self.settings.full,
            idle: self.settings.idle,
        }
    }
}
