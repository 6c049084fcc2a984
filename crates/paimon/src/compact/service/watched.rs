//! A table that a service watches.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::ErrorKind;
use paimon_format::env::StopSignal;
use paimon_format::meta::CommitMessage;
use paimon_format::row::BinaryRow;
use paimon_manifest::ManifestError;

use super::backoff::BackOff;
use super::report::BucketFailure;
use crate::bucket::BucketStores;
use crate::compact::job::BucketJob;
use crate::compact::look::{Scope, look};
use crate::error::{Error, Result};
use crate::postpone::distribute;
use crate::table::Table;
use crate::write::TableCommit;

/// A table without news is looked at all the same so often: what is due may hang on the time.
const LOOK_AGAIN_MS: i64 = 60_000;

/// A bucket of a table.
pub(super) type BucketKey = (BinaryRow, i32);

/// What a service knows of a table.
#[derive(Debug)]
pub(super) struct WatchedTable {
    /// Its location, or its name where it comes from a catalog.
    name: String,
    /// Opened for compaction, at the schema of the last look.
    stores: BucketStores,
    commit: TableCommit,
    next_identifier: i64,
    /// The snapshot that had nothing to do, and when.
    settled: Option<(Option<i64>, i64)>,
    back_off: BackOff,
    buckets: HashMap<BucketKey, BackOff>,
}

/// What a look found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) buckets: usize,
    pub(super) jobs: Vec<BucketJob>,
    pub(super) failures: Vec<BucketFailure>,
}

impl WatchedTable {
    /// Errors: `Unsupported` or `Invalid`, naming the option.
    pub(super) fn new(name: &str, table: &Table) -> Result<Self> {
        let table = table.for_compaction()?;
        Ok(Self {
            name: name.to_owned(),
            stores: BucketStores::new(&table)?,
            commit: table.write_builder().new_commit()?,
            next_identifier: 1,
            settled: None,
            back_off: BackOff::default(),
            buckets: HashMap::new(),
        })
    }

    /// Tells how busy its compactions were until now.
    pub(super) fn refresh_metrics(&self) {
        self.stores.table().compaction_metrics().refresh();
    }

    /// Lets go of what is cached of it and was not used for long.
    pub(super) fn remove_idle(&self) {
        self.stores.remove_idle_lookups();
    }

    /// Whether it is not left alone after a failure.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        self.back_off.is_due(now_ms)
    }

    /// What there is to do. `None`: nothing has changed since there was nothing, or it was stopped. Unless it is a dry run, rows without
    /// a bucket get one first.
    pub(super) async fn look(
        &mut self,
        scope: &Scope,
        now_ms: i64,
        dry_run: bool,
        stop: &StopSignal,
    ) -> Result<Option<Found>> {
        let latest = self.stores.table().snapshot_store().latest_id().await?;
        if let Some((snapshot, at_ms)) = self.settled
            && snapshot == latest
            && now_ms.saturating_sub(at_ms) < LOOK_AGAIN_MS
        {
            return Ok(None);
        }
        self.refresh().await?;
        let Some(distributed) = distribute(self.stores.table(), scope, dry_run, stop).await? else {
            return Ok(None);
        };
        for got in distributed {
            tracing::info!(table = self.name, partition = %got.partition, rows = got.rows, buckets = got.buckets, dry_run, "rows get buckets");
        }
        let look = look(&self.stores, scope).await?;
        self.back_off = BackOff::default();
        self.settled = (look.jobs.is_empty() && look.failed.is_empty()).then_some((latest, now_ms));
        self.buckets
            .retain(|_, back_off| !back_off.is_due(now_ms.saturating_sub(LOOK_AGAIN_MS)));
        let mut jobs = look.jobs;
        jobs.retain(|job| self.is_bucket_due(&key(job), now_ms));
        let mut failures = Vec::new();
        for failed in look.failed {
            let key = (failed.partition, failed.bucket);
            if self.is_bucket_due(&key, now_ms) {
                failures.push(self.bucket_failed(key, &failed.name, &failed.error));
            }
        }
        Ok(Some(Found {
            buckets: look.buckets,
            jobs,
            failures,
        }))
    }

    /// Whether a bucket is not left alone after a failure.
    fn is_bucket_due(&self, bucket: &BucketKey, now_ms: i64) -> bool {
        self.buckets.get(bucket).is_none_or(|back_off| back_off.is_due(now_ms))
    }

    /// Follows the schema, and another table where this one was dropped. What is cached of files is kept while there is neither.
    async fn refresh(&mut self) -> Result<()> {
        let known = self.stores.table();
        let table = known.forgetting_schemas()?.refreshed().await?;
        if !table.is_still(known).await? {
            tracing::info!(table = self.name, "another table was made in its place");
            *self = Self::new(&self.name, &table)?;
        } else if table.schema() != known.schema() {
            let table = table.for_compaction()?;
            self.commit = TableCommit::new(&table, self.commit.user())?;
            self.stores = BucketStores::new(&table)?;
        }
        Ok(())
    }

    /// Commits what was done, all at once; if another compaction took one of the buckets, each alone. Gives the snapshot of each, or why
    /// there is none; its files are gone then, unless the outcome is unknown.
    pub(super) async fn commit(&mut self, messages: Vec<CommitMessage>) -> Vec<Result<i64, Arc<Error>>> {
        let (count, identifier) = (messages.len(), self.next_identifier);
        match self.commit_together(messages.clone()).await {
            Err(error) if error.kind() == ErrorKind::Conflict && count > 1 => {
                let mut outcomes = Vec::with_capacity(count);
                for message in messages {
                    let identifier = self.next_identifier;
                    let outcome = self.commit_together(vec![message.clone()]).await;
                    let outcome = self.commit.or_abort(outcome, identifier, &[message]).await;
                    outcomes.push(outcome.map_err(Arc::new));
                }
                outcomes
            }
            outcome => {
                let outcome = self.commit.or_abort(outcome, identifier, &messages).await;
                vec![outcome.map_err(Arc::new); count]
            }
        }
    }

    async fn commit_together(&mut self, messages: Vec<CommitMessage>) -> Result<i64> {
        let identifier = self.next_identifier;
        self.next_identifier += 1;
        let known = self.stores.table();
        if !known.forgetting_schemas()?.is_still(known).await? {
            let what = format!("{}: the table was dropped while it was compacted", self.name);
            return Err(ManifestError::Conflict(what).into());
        }
        let snapshots = self.commit.commit(identifier, messages).await?;
        snapshots
            .last()
            .copied()
            .ok_or_else(|| Error::internal("a compaction that changes nothing was committed"))
    }

    /// The bucket is well again.
    pub(super) fn succeeded(&mut self, bucket: &BucketKey) {
        self.buckets.remove(bucket);
    }

    /// Leaves a bucket alone for a while.
    pub(super) fn bucket_failed(&mut self, key: BucketKey, name: &str, error: &Error) -> BucketFailure {
        let env = self.stores.table().context().env();
        let retry_in_ms = self.buckets.entry(key).or_default().failed(env);
        failure(&self.name, Some(name.to_owned()), error, retry_in_ms)
    }

    /// Leaves the table alone for a while.
    pub(super) fn failed(&mut self, error: &Error) -> BucketFailure {
        let retry_in_ms = self.back_off.failed(self.stores.table().context().env());
        failure(&self.name, None, error, retry_in_ms)
    }
}

pub(super) fn key(job: &BucketJob) -> BucketKey {
    let bucket = job.bucket();
    (bucket.partition.row().clone(), bucket.bucket)
}

pub(super) fn failure(table: &str, bucket: Option<String>, error: &Error, retry_in_ms: i64) -> BucketFailure {
    BucketFailure {
        table: table.to_owned(),
        bucket,
        conflict: error.kind() == ErrorKind::Conflict,
        error: error.to_string(),
        retry_in_ms,
    }
}
