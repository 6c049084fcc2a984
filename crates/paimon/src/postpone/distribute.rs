//! Rows that have no bucket get one.

use std::collections::HashMap;
use std::sync::Arc;

use futures::TryStreamExt;
use paimon_format::ErrorKind;
use paimon_format::env::StopSignal;
use paimon_format::kv::ReadSpec;
use paimon_format::meta::{CommitIncrement, CommitMessage, CompactIncrement, DataFileMeta, POSTPONE_BUCKET};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_manifest::scan::ScanFilter;

use crate::bucket::BucketStores;
use crate::compact::Scope;
use crate::error::Result;
use crate::options::{BucketMode, PostponeSettings};
use crate::partition::Partition;
use crate::postpone::order::as_written;
use crate::table::Table;
use crate::write::TableWrite;

/// How often it is tried when another job takes the same rows.
const ATTEMPTS: usize = 3;

/// A partition whose waiting rows got buckets, or would get them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributedPartition {
    /// The partition.
    pub partition: Partition,
    /// Files that rows waited in.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// The partition's number of buckets.
    pub buckets: i32,
}

/// The rows of a partition that wait.
struct Waiting {
    /// In the order in which they were written.
    files: Vec<Arc<DataFileMeta>>,
    report: DistributedPartition,
}

/// Gives the waiting rows of the selected partitions buckets: writes them to level 0 there, in their order, and takes the old files away, in one
/// COMPACT snapshot. A table that does not postpone has none. With `dry_run` it only looks. `None`: it was stopped before it committed; the rows
/// wait on, and no file of it is left.
///
/// A partition keeps the number of buckets that it has; a new one gets `postpone.default-bucket-num`, or as many as its rows are worth.
///
/// Errors: `Conflict` when other jobs took the same rows several times; else those of writing and committing. Nothing is changed then, except
/// that after `Unavailable` the commit may be there.
///
/// Source: `org.apache.paimon.flink.postpone`, `org.apache.paimon.table.PostponeUtils`.
pub(crate) async fn distribute(
    table: &Table,
    scope: &Scope,
    dry_run: bool,
    stop: &StopSignal,
) -> Result<Option<Vec<DistributedPartition>>> {
    let postpones = BucketMode::from_options(table.options())? == BucketMode::Postpone;
    if !postpones || !scope.selection.buckets.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let mut attempt = 1;
    loop {
        let waiting = waiting(table, scope).await?;
        let done = if dry_run || waiting.is_empty() {
            Ok(true)
        } else {
            move_rows(table, &waiting, stop).await
        };
        match done {
            Ok(true) => return Ok(Some(waiting.into_iter().map(|waiting| waiting.report).collect())),
            Ok(false) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS => {
                tracing::info!(%error, attempt, "another job gave rows their buckets first: looking again");
                attempt += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn waiting(table: &Table, scope: &Scope) -> Result<Vec<Waiting>> {
    let settings = PostponeSettings::from_options(table.options())?;
    let Some(snapshot) = table.snapshot_store().latest().await? else {
        return Ok(Vec::new());
    };
    let fields = table.partition_fields();
    let filter = match scope.selection.predicate(&fields, &table.default_partition_name())? {
        Some(predicate) => ScanFilter::all().with_partition_predicate(predicate),
        None => ScanFilter::all(),
    };
    let buckets = table.files(&snapshot, filter).await?;
    let known = buckets.iter().filter(|bucket| bucket.bucket >= 0);
    let known: HashMap<BinaryRow, i32> = known
        .map(|bucket| (bucket.partition.clone(), bucket.total_buckets))
        .collect();
    let mut waiting = Vec::new();
    for bucket in buckets {
        if bucket.bucket != POSTPONE_BUCKET || !scope.is_idle(&bucket.files, &*table.context().env().clock) {
            continue;
        }
        let files = as_written(bucket.files);
        let sum = |number: fn(&DataFileMeta) -> i64| {
            let numbers = files.iter().map(|file| u64::try_from(number(file)).unwrap_or(0));
            numbers.fold(0, u64::saturating_add)
        };
        let rows = sum(|file| file.row_count);
        let buckets = match known.get(&bucket.partition) {
            Some(&count) => count,
            None => settings.bucket_count(rows, sum(|file| file.file_size))?,
        };
        waiting.push(Waiting {
            report: DistributedPartition {
                partition: Partition::new(bucket.partition, &fields)?,
                files: files.len() as u64,
                rows,
                buckets,
            },
            files,
        });
    }
    Ok(waiting)
}

/// `false`: it was stopped, nothing has changed.
async fn move_rows(table: &Table, waiting: &[Waiting], stop: &StopSignal) -> Result<bool> {
    let forced: Options = [("write-only", "true")].into_iter().collect();
    let table = table.with_options(&forced)?;
    let counts = waiting
        .iter()
        .map(|waiting| (waiting.report.partition.row().clone(), waiting.report.buckets));
    let mut writer = TableWrite::into_buckets(table.clone(), counts.collect())?;
    let written = write(&table, waiting, &mut writer, stop).await;
    writer.abort().await;
    let Some(messages) = written? else {
        return Ok(false);
    };
    let commit = table.write_builder().new_commit()?;
    commit.commit_or_abort(messages).await?;
    Ok(true)
}

/// Writes the rows into their buckets. Returns what takes the old files away and puts the new ones in their place;
/// `None`: it was stopped, and the writer is to be aborted.
async fn write(
    table: &Table,
    waiting: &[Waiting],
    writer: &mut TableWrite,
    stop: &StopSignal,
) -> Result<Option<Vec<CommitMessage>>> {
    let stores = BucketStores::new(table)?;
    let schema = Arc::new(table.schema().kv_schema()?);
    for Waiting { files, report } in waiting {
        let bucket = stores.kv_files(report.partition.row(), POSTPONE_BUCKET)?;
        for file in files {
            let mut batches = bucket.open(file, ReadSpec::all(Arc::clone(&schema)));
            while let Some(batch) = batches.try_next().await? {
                if stop.is_asked() {
                    return Ok(None);
                }
                writer.write_records(&batch).await?;
            }
        }
    }
    let mut messages: Vec<CommitMessage> = waiting.iter().map(taken_away).collect();
    messages.extend(writer.prepare_commit(false).await?.into_iter().map(as_compaction));
    Ok(Some(messages))
}

fn taken_away(waiting: &Waiting) -> CommitMessage {
    CommitMessage {
        partition: waiting.report.partition.row().clone(),
        bucket: POSTPONE_BUCKET,
        total_buckets: Some(POSTPONE_BUCKET),
        increment: CommitIncrement {
            compact: CompactIncrement {
                compact_before: waiting.files.clone(),
                ..CompactIncrement::default()
            },
            ..CommitIncrement::default()
        },
    }
}

/// New files as the result of a compaction: they come in the snapshot that takes the old ones away.
///
/// Source: `org.apache.paimon.postpone.BucketFiles`.
fn as_compaction(message: CommitMessage) -> CommitMessage {
    let data = message.increment.data;
    CommitMessage {
        increment: CommitIncrement {
            compact: CompactIncrement {
                compact_after: data.new_files,
                changelog_files: data.changelog_files,
                ..CompactIncrement::default()
            },
            ..CommitIncrement::default()
        },
        ..message
    }
}
