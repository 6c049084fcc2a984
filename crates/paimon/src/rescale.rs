//! Another number of buckets.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use paimon_format::env::StopSignal;
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_manifest::scan::{BucketFiles, ScanFilter};
use paimon_manifest::schema::SchemaChange;
use paimon_manifest::snapshot::{Snapshot, TimeTravel};

use crate::assign::named_partition;
use crate::error::{Error, Result};
use crate::options::BucketMode;
use crate::partition::{Partition, Selection};
use crate::read::BatchVisibility;
use crate::table::Table;

/// A partition that has another number of buckets now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RescaledPartition {
    /// The partition.
    pub partition: Partition,
    /// The number of buckets before.
    pub buckets_before: i32,
    /// Rows that were written anew.
    pub rows: u64,
    /// The snapshot that holds them.
    pub snapshot: i64,
}

/// What a rescale did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rescaled {
    /// The partitions that were rewritten.
    pub partitions: Vec<RescaledPartition>,
    /// Whether it was stopped before all were.
    pub stopped: bool,
}

impl Table {
    /// Gives the selected partitions another fixed number of buckets: sets the option `bucket` in the schema, then overwrites each
    /// partition whose files are in another number, one snapshot a partition. A partition that is not rescaled stays readable, and
    /// refuses writes until it is. Started again after a failure it does the rest, and so it does after
    /// a stop, which takes back the partition that is being rewritten.
    ///
    /// Errors: `Invalid` when the table has no fixed number of buckets, or holds rows on level 0 that reads do not see;
    /// `Conflict` when someone wrote into a partition meanwhile: nothing of it is lost, and nothing of this rewrite is visible.
    ///
    /// Source: `org.apache.paimon.flink.action.RescaleAction`, and `ALTER TABLE … SET ('bucket' = …)` before it.
    pub async fn rescale(&self, buckets: i32, partitions: &Selection, stop: &StopSignal) -> Result<Rescaled> {
        if buckets < 1 {
            return Err(Error::invalid(format!("{buckets} buckets: expected a number above 0")));
        }
        let latest = self.refreshed().await?;
        let BucketMode::Fixed(current) = BucketMode::from_options(latest.options())? else {
            return Err(Error::invalid(
                "the table has no fixed number of buckets (option 'bucket'), so there is nothing to rescale",
            ));
        };
        let table = match current == buckets {
            true => latest,
            false => {
                let change = SchemaChange::SetOption {
                    key: "bucket".to_owned(),
                    value: buckets.to_string(),
                };
                latest.alter(&[change]).await?
            }
        };
        // A partition whose rows are all deleted has no new files: it must go all the same.
        let mut options: Options = [("dynamic-partition-overwrite", "false")].into_iter().collect();
        if !BatchVisibility::of(&table)?.levels.contains(0) {
            // What is left on level 0 would not be seen until somebody compacts it.
            options.set("write-only", "false");
        }
        let table = table.with_options(&options)?;
        table.rewrite_partitions(buckets, partitions, stop).await
    }

    async fn rewrite_partitions(&self, buckets: i32, partitions: &Selection, stop: &StopSignal) -> Result<Rescaled> {
        let mut rescaled = Rescaled::default();
        let Some(snapshot) = self.snapshot_store().latest().await? else {
            return Ok(rescaled);
        };
        let fields = self.partition_fields();
        let filter = match partitions.predicate(&fields, &self.default_partition_name())? {
            Some(predicate) => ScanFilter::all().with_partition_predicate(predicate),
            None => ScanFilter::all(),
        };
        let files = self.files(&snapshot, filter).await?;
        let others = files.into_iter().filter(|files| has_other_count(files, buckets));
        let mut others: Vec<BinaryRow> = others.map(|files| files.partition).collect();
        others.dedup();
        for partition in others {
            let Some((snapshot, buckets_before)) = self.to_rewrite(&partition, buckets).await? else {
                continue;
            };
            let partition = Partition::new(partition, &fields)?;
            let Some((rows, id)) = self.rewrite(&partition, &snapshot, stop).await? else {
                rescaled.stopped = true;
                break;
            };
            rescaled.partitions.push(RescaledPartition {
                partition,
                buckets_before,
                rows,
                snapshot: id,
            });
        }
        Ok(rescaled)
    }

    /// The latest snapshot, and how many buckets a partition has there. `None`: it has the wanted number, or no files: others have
    /// committed since the partitions were listed.
    ///
    /// Errors: `Invalid` when a read of this very snapshot does not see all rows of the partition: an overwrite takes all of its files, so they would
    /// be lost.
    async fn to_rewrite(&self, partition: &BinaryRow, buckets: i32) -> Result<Option<(Snapshot, i32)>> {
        let Some(snapshot) = self.snapshot_store().latest().await? else {
            return Ok(None);
        };
        let filter = ScanFilter::all().with_partitions([partition.clone()]);
        let files = self.files(&snapshot, filter).await?;
        let Some(other) = files.iter().find(|files| has_other_count(files, buckets)) else {
            return Ok(None);
        };
        let visible = BatchVisibility::of(self)?.levels;
        let mut all = files.iter().flat_map(|files| &files.files);
        if all.any(|file| !visible.contains(file.level)) {
            let named = named_partition(self, partition)?;
            return Err(Error::invalid(format!(
                "{}: it has rows on level 0, which reads do not see; compact it before it is rescaled",
                named.as_deref().unwrap_or("the table")
            )));
        }
        let before = other.total_buckets;
        Ok(Some((snapshot, before)))
    }

    /// Writes the rows that a partition has in a snapshot into new buckets, in place of the old ones. `None`: it was stopped, and
    /// nothing has changed.
    async fn rewrite(
        &self,
        partition: &Partition,
        snapshot: &Snapshot,
        stop: &StopSignal,
    ) -> Result<Option<(u64, i64)>> {
        let values = partition
            .values()
            .map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        let values: BTreeMap<_, _> = values.collect();
        let mut selection = Selection::all();
        if !values.is_empty() {
            selection.partitions.push(values);
        }
        let read = self
            .read_builder()
            .select(selection.clone())
            .time_travel(TimeTravel::SnapshotId(snapshot.id));
        let builder = self.write_builder().overwrite(selection).read_from(snapshot.id);
        let builder = builder.stop_on(stop.clone());
        let mut writer = builder.new_write()?;
        let written = async {
            let mut rows = read.new_read().stream(read.new_scan().plan().await?.splits)?;
            let mut count = 0;
            while let Some(batch) = rows.try_next().await? {
                if stop.is_asked() {
                    return Ok((count, Vec::new()));
                }
                count += batch.num_rows() as u64;
                writer.write_merged(&batch).await?;
            }
            Ok((count, writer.prepare_commit(true).await?))
        };
        let written: Result<_> = written.await;
        writer.abort().await;
        let (rows, messages) = written?;
        let commit = builder.new_commit()?;
        if stop.is_asked() {
            commit.abort(&messages).await?;
            return Ok(None);
        }
        match commit.commit_or_abort(messages).await?.last() {
            Some(id) => Ok(Some((rows, *id))),
            None => Err(Error::internal("an overwrite without a snapshot")),
        }
    }
}

fn has_other_count(files: &BucketFiles, buckets: i32) -> bool {
    files.bucket >= 0 && files.total_buckets != buckets
}
