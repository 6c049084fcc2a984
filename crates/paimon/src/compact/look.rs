//! What there is to do in a table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use paimon_format::env::Clock;
use paimon_format::meta::DataFileMeta;
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_manifest::snapshot::TimeTravel;

use super::job::BucketJob;
use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::levels::{RestoreLevels, SelectedBucket};
use crate::partition::Selection;
use crate::table::Table;

/// What of a table is compacted, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) selection: Selection,
    /// Everything into one run, at the top level; otherwise what the strategy picks.
    pub(crate) full: bool,
    /// Only partitions into which nothing was written for so long.
    pub(crate) idle: Option<Duration>,
}

impl Scope {
    /// Whether nothing was written to these files for as long as is asked for. A file of unknown age counts as old.
    pub(crate) fn is_idle(&self, files: &[Arc<DataFileMeta>], clock: &dyn Clock) -> bool {
        self.idle
            .is_none_or(|idle| made_ms(files, clock) <= idle_since_ms(idle, clock))
    }
}

/// When the newest of these files was made; long ago where none says.
fn made_ms<'a>(files: impl IntoIterator<Item = &'a Arc<DataFileMeta>>, clock: &dyn Clock) -> i64 {
    // Files note local time.
    let local_ms = files.into_iter().filter_map(|file| file.creation_time_ms).max();
    local_ms.map_or(i64::MIN, |local_ms| {
        local_ms.saturating_sub(clock.local_offset_ms(local_ms))
    })
}

/// What is idle for so long was made then, or earlier.
fn idle_since_ms(idle: Duration, clock: &dyn Clock) -> i64 {
    let idle_ms = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
    clock.now_ms().saturating_sub(idle_ms)
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Look {
    /// Buckets in scope that have files.
    pub(crate) buckets: usize,
    /// Those of them that have something to compact.
    pub(crate) jobs: Vec<BucketJob>,
    /// Those of them that cannot be looked at.
    pub(crate) failed: Vec<FailedBucket>,
}

/// A bucket whose files are at fault; others of its table may be well.
#[derive(Debug)]
pub(crate) struct FailedBucket {
    pub(crate) partition: BinaryRow,
    pub(crate) bucket: i32,
    /// Its directory, relative to the table.
    pub(crate) name: String,
    pub(crate) error: Error,
}

impl Look {
    /// For who compacts all or nothing: what there is to do. Errors: why the first bucket could not be looked at.
    pub(crate) fn into_jobs(self) -> Result<Vec<BucketJob>> {
        match self.failed.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(self.jobs),
        }
    }
}

impl Table {
    /// The table as compactions use it: they run although its writers do not compact.
    pub(crate) fn for_compaction(&self) -> Result<Self> {
        let forced: Options = [("write-only", "false")].into_iter().collect();
        let table = self.with_options(&forced)?;
        table.check_writable()?;
        table.check_memory()?;
        Ok(table)
    }
}

/// Looks at the latest snapshot, and picks.
///
/// Errors: those of the table; what is wrong with a bucket's files is in the look.
pub(crate) async fn look(stores: &BucketStores, scope: &Scope) -> Result<Look> {
    let table = stores.table();
    let buckets = match scope.idle {
        None => table.selected_buckets(&TimeTravel::Latest, &scope.selection).await?,
        Some(idle) => {
            // A partition is idle as a whole, whichever of its buckets are asked for.
            let partitions = Selection {
                buckets: Vec::new(),
                ..scope.selection.clone()
            };
            let mut buckets = table.selected_buckets(&TimeTravel::Latest, &partitions).await?;
            retain_idle(&mut buckets, idle, &*table.context().env().clock);
            let wanted = &scope.selection.buckets;
            buckets.retain(|bucket| wanted.is_empty() || wanted.contains(&bucket.files.bucket));
            buckets
        }
    };
    let looked_at = buckets.len();
    if scope.idle.is_none() && scope.selection == Selection::all() {
        let names: HashSet<&str> = buckets.iter().map(|bucket| bucket.name.as_str()).collect();
        table.compaction_metrics().retain(|bucket| names.contains(bucket));
    }
    let restore = RestoreLevels::new(table)?;
    let (mut jobs, mut failed) = (Vec::new(), Vec::new());
    for bucket in buckets {
        let (partition, number) = (bucket.files.partition.clone(), bucket.files.bucket);
        let name = bucket.name.clone();
        match pick(stores, &restore, bucket, scope.full).await {
            Ok(job) => jobs.extend(job),
            Err(error) => failed.push(FailedBucket {
                partition,
                bucket: number,
                error: error.in_bucket(&name),
                name,
            }),
        }
    }
    Ok(Look {
        buckets: looked_at,
        jobs,
        failed,
    })
}

/// What there is to do in a bucket. Errors: those of its files.
async fn pick(
    stores: &BucketStores,
    restore: &RestoreLevels,
    bucket: SelectedBucket,
    full: bool,
) -> Result<Option<BucketJob>> {
    stores.table().check_states_of(&bucket.files.files).await?;
    let bucket = restore.levels(bucket).await?;
    let task = stores.compactor(&bucket)?.plan(full)?;
    Ok(task.map(|task| BucketJob::new(stores.clone(), bucket, task)))
}

/// Keeps partitions whose newest file was made at least so long ago.
///
/// Source: the argument `partition_idle_time` of `org.apache.paimon.flink.action.CompactAction`.
fn retain_idle(buckets: &mut Vec<SelectedBucket>, idle: Duration, clock: &dyn Clock) {
    let mut newest_ms: HashMap<BinaryRow, i64> = HashMap::new();
    for bucket in buckets.iter() {
        let newest_ms = newest_ms.entry(bucket.partition.row().clone()).or_insert(i64::MIN);
        *newest_ms = made_ms(&bucket.files.files, clock).max(*newest_ms);
    }
    let idle_since_ms = idle_since_ms(idle, clock);
    buckets.retain(|bucket| {
        let newest_ms = newest_ms.get(bucket.partition.row());
        newest_ms.is_some_and(|newest_ms| *newest_ms <= idle_since_ms)
    });
}
