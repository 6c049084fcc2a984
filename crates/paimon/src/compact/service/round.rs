//! One round: look, weigh, compact, commit.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use futures::{StreamExt, stream};
use paimon_format::ErrorKind;
use paimon_format::env::{Env, StopSignal};
use paimon_format::meta::CommitMessage;

use super::report::{BucketFailure, RoundBucket, RoundReport};
use super::source::TableSource;
use super::watched::{BucketKey, WatchedTable, failure, key};
use super::{CompactService, metrics};
use crate::catalog::Catalog;
use crate::compact::job::BucketJob;
use crate::error::{Error, Result};

/// Buckets that a round takes, for each that is compacted at a time.
const BUCKETS_A_JOB: usize = 16;

/// A bucket in the queue of a round.
#[derive(Debug)]
pub(super) struct Queued {
    table: String,
    job: BucketJob,
}

/// A bucket whose compaction has ended.
struct Ended {
    bucket: RoundBucket,
    key: BucketKey,
    outcome: Result<Option<CommitMessage>>,
}

impl Queued {
    /// What will be done.
    pub(super) fn report(&self) -> RoundBucket {
        RoundBucket {
            table: self.table.clone(),
            runs: self.job.bucket().runs().len(),
            report: self.job.report(),
            snapshot: None,
        }
    }

    async fn run(self, stop: StopSignal) -> Ended {
        Ended {
            bucket: self.report(),
            key: key(&self.job),
            outcome: self.job.run(&stop).await,
        }
    }
}

impl CompactService {
    pub(super) fn env(&self) -> &Env {
        self.source.context().env()
    }

    /// Looks, compacts and commits.
    pub(super) async fn round(&mut self) -> Result<RoundReport> {
        let clock = Arc::clone(&self.env().clock);
        let start_ms = clock.now_ms();
        let (queue, mut report) = self.queue(false).await?;
        let jobs = self.settings.jobs.max(1);
        let stop = self.stop.clone();
        let work = stream::iter(queue).map(|queued| queued.run(stop.clone()));
        // What has ended while others were committed is committed together.
        let mut ended = work.buffer_unordered(jobs).ready_chunks(jobs);
        while let Some(ended) = ended.next().await {
            self.commit(ended, &mut report).await;
        }
        report.milliseconds = clock.now_ms().saturating_sub(start_ms);
        metrics::round(&report);
        Ok(report)
    }

    /// The buckets to be compacted, most debt first, and the report so far. Unless it is a dry run, rows without a bucket get one first.
    pub(super) async fn queue(&mut self, dry_run: bool) -> Result<(Vec<Queued>, RoundReport)> {
        self.rounds += 1;
        let mut report = RoundReport {
            round: self.rounds,
            ..RoundReport::default()
        };
        self.find_tables(&mut report.failures).await?;
        report.tables = self.tables.len();
        let scope = self.scope();
        let clock = Arc::clone(&self.env().clock);
        let mut queue = Vec::new();
        for (location, table) in &mut self.tables {
            table.refresh_metrics();
            table.remove_idle();
            let now_ms = clock.now_ms();
            if self.stop.is_asked() || !table.is_due(now_ms) {
                continue;
            }
            match table.look(&scope, now_ms, dry_run, &self.stop).await {
                Ok(None) => {}
                Ok(Some(found)) => {
                    metrics::waiting(location, &found.jobs);
                    report.tables_looked_at += 1;
                    report.buckets_looked_at += found.buckets;
                    report.failures.extend(found.failures);
                    queue.extend(found.jobs.into_iter().map(|job| Queued {
                        table: location.clone(),
                        job,
                    }));
                }
                Err(error) if is_final(&self.source, &error) => return Err(error),
                Err(error) => report.failures.push(table.failed(&error)),
            }
        }
        let bytes = queue
            .iter()
            .map(|queued| queued.job.debt().1)
            .fold(0, u64::saturating_add);
        report.waiting = (queue.len(), bytes);
        // Most runs first, then most bytes; the order of names makes equals come the same way every time.
        queue.sort_by_cached_key(|queued| Reverse(queued.job.debt()));
        queue.truncate(self.settings.jobs.max(1).saturating_mul(BUCKETS_A_JOB));
        Ok((queue, report))
    }

    /// Opens the tables that are new, and forgets those that are gone.
    async fn find_tables(&mut self, failures: &mut Vec<BucketFailure>) -> Result<()> {
        match &self.source {
            TableSource::One(table) => {
                if let Entry::Vacant(new) = self.tables.entry(table.location().to_owned()) {
                    let watched = WatchedTable::new(table.location(), table)?;
                    new.insert(watched);
                }
            }
            TableSource::Matching {
                catalog,
                pattern,
                options,
                context,
            } => {
                let catalog: &dyn Catalog = &**catalog;
                let identifiers = match TableSource::identifiers(catalog, pattern).await {
                    Ok(identifiers) => identifiers,
                    // Those that are known go on.
                    Err(error) => {
                        let pause_ms = i64::try_from(self.settings.interval.as_millis()).unwrap_or(i64::MAX);
                        failures.push(failure(&pattern.to_string(), None, &error, pause_ms));
                        return Ok(());
                    }
                };
                let env = context.env();
                let mut tables = BTreeMap::new();
                let mut closed = BTreeMap::new();
                for identifier in identifiers {
                    let name = identifier.to_string();
                    if let Some(table) = self.tables.remove(&name) {
                        tables.insert(name, table);
                        continue;
                    }
                    let mut back_off = self.closed.remove(&name).unwrap_or_default();
                    if back_off.is_due(env.clock.now_ms()) {
                        let opened = catalog.get_table(&identifier, options.clone()).await;
                        match opened.and_then(|table| WatchedTable::new(&name, &table)) {
                            Ok(table) => {
                                tables.insert(name, table);
                                continue;
                            }
                            Err(error) => failures.push(failure(&name, None, &error, back_off.failed(env))),
                        }
                    }
                    closed.insert(name, back_off);
                }
                (self.tables, self.closed) = (tables, closed);
            }
        }
        Ok(())
    }

    /// Commits what has ended, table by table.
    async fn commit(&mut self, ended: Vec<Ended>, report: &mut RoundReport) {
        let mut by_table: BTreeMap<String, Vec<(RoundBucket, BucketKey, CommitMessage)>> = BTreeMap::new();
        for Ended { bucket, key, outcome } in ended {
            match outcome {
                // Stopped.
                Ok(None) => {}
                Ok(Some(message)) => {
                    let of_table = by_table.entry(bucket.table.clone()).or_default();
                    of_table.push((bucket, key, message));
                }
                Err(error) => {
                    if let Some(table) = self.tables.get_mut(&bucket.table) {
                        let failure = table.bucket_failed(key, &bucket.report.bucket, &error);
                        report.failures.push(failure);
                    }
                }
            }
        }
        for (location, done) in by_table {
            let Some(table) = self.tables.get_mut(&location) else {
                continue;
            };
            let messages = done.iter().map(|(_, _, message)| message.clone()).collect();
            let outcomes = table.commit(messages).await;
            for ((bucket, key, message), outcome) in done.into_iter().zip(outcomes) {
                match outcome {
                    Ok(snapshot) => {
                        table.succeeded(&key);
                        report.buckets.push(RoundBucket {
                            report: bucket.report.done(&message),
                            snapshot: Some(snapshot),
                            ..bucket
                        });
                    }
                    Err(error) => {
                        let failure = table.bucket_failed(key, &bucket.report.bucket, &error);
                        report.failures.push(failure);
                    }
                }
            }
        }
    }
}

/// Whether a service over one table need not go on: no later try can end otherwise. (A snapshot that is not found has just expired.)
fn is_final(source: &TableSource, error: &Error) -> bool {
    let passing = [ErrorKind::Conflict, ErrorKind::Unavailable, ErrorKind::NotFound];
    matches!(source, TableSource::One(_)) && !passing.contains(&error.kind())
}
