//! Dynamic buckets of tables whose keys may move from partition to partition: an index of all keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int8Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_select::take::take;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use paimon_format::meta::DataFileMeta;
use paimon_format::row::{BinaryRow, RowEncoder};
use paimon_format::types::{Datum, RowKind, array_from_datums};
use paimon_manifest::scan::{BucketFiles, ScanFilter};
use paimon_merge::engine::Promises;

use super::key_index::{Digest, KeyIndex, PartitionId, Place};
use super::{Assigned, Columns};
use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::options::{DynamicBucketSettings, above_zero};
use crate::read::read_ahead;
use crate::table::Table;
use crate::write::{Partitioned, Prepared};

/// Buckets whose keys are read side by side when `cross-partition-upsert.bootstrap-parallelism` is not set.
const DEFAULT_BOOTSTRAP_PARALLELISM: usize = 10;

/// Knows the partition and bucket of every key of a table. A key that comes with another partition than the one that it is in is deleted
/// there and written to the new one, or written to the old one, or dropped, as the merge engine wants it.
///
/// The index is made when the first row comes, from the merged keys of the latest snapshot, and kept in memory ([`KeyIndex`] says how much). Only one
/// job at a time may write to such a table: two of them would not know of each other's keys.
///
/// Source: `org.apache.paimon.crosspartition.{GlobalIndexAssigner, IndexBootstrap}`.
#[derive(Debug)]
pub(crate) struct GlobalIndexAssigner {
    table: Table,
    key: Columns,
    partition: Columns,
    on_existing: OnExisting,
    settings: DynamicBucketSettings,
    bootstrap: BootstrapSettings,
    /// `None`: it has not been made.
    index: Option<KeyIndex>,
}

/// What becomes of a row whose key is in another partition.
///
/// Source: `org.apache.paimon.crosspartition.ExistingProcessor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnExisting {
    /// The key is deleted there, and goes to the row's partition.
    Move,
    /// The row goes there.
    Follow,
    /// The row is dropped.
    Drop,
}

/// How the index is made.
#[derive(Clone, Copy, Debug)]
struct BootstrapSettings {
    /// `cross-partition-upsert.bootstrap-parallelism`
    parallelism: usize,
    /// `cross-partition-upsert.index-ttl`: keys of buckets whose files are all older count as new.
    ttl: Option<Duration>,
}

/// What comes out for a batch.
#[derive(Default)]
struct Routed {
    /// Numbers of input rows.
    rows: Vec<u32>,
    kinds: Vec<i8>,
    places: Vec<Place>,
    /// A row has another partition than in the input, or there are more or fewer.
    changed: bool,
}

impl OnExisting {
    fn of(promises: Promises) -> Self {
        if promises.existence_only {
            Self::Drop
        } else if promises.newest_wins {
            Self::Move
        } else {
            Self::Follow
        }
    }
}

impl BootstrapSettings {
    fn of(table: &Table) -> Result<Self> {
        let key = "cross-partition-upsert.bootstrap-parallelism";
        let parallelism = match table.options().int(key)? {
            None => DEFAULT_BOOTSTRAP_PARALLELISM,
            Some(number) => above_zero(key, i64::from(number))?,
        };
        Ok(Self {
            parallelism,
            ttl: table.options().duration("cross-partition-upsert.index-ttl")?,
        })
    }
}

impl Routed {
    fn push(&mut self, row: u32, kind: i8, place: Place) {
        self.rows.push(row);
        self.kinds.push(kind);
        self.places.push(place);
    }
}

impl GlobalIndexAssigner {
    pub(super) fn new(table: &Table) -> Result<Self> {
        let schema = table.schema();
        let key = schema.primary_keys.iter().filter_map(|name| schema.position(name));
        Ok(Self {
            key: Columns::new(table, key.collect()),
            partition: Columns::new(table, schema.partition_positions()),
            on_existing: OnExisting::of(table.merge_engine()?.promises()),
            settings: DynamicBucketSettings::from_options(table.options())?,
            bootstrap: BootstrapSettings::of(table)?,
            index: None,
            table: table.clone(),
        })
    }

    pub(super) async fn assign(&mut self, input: Partitioned) -> Result<Assigned> {
        let mut index = match self.index.take() {
            Some(index) => index,
            None => self.bootstrap().await?,
        };
        let routed = self.route(&mut index, &input)?;
        let assigned = if routed.changed {
            self.rewrite(&index, &input, &routed)?
        } else {
            Assigned {
                buckets: routed.places.iter().map(|place| place.bucket).collect(),
                rows: input,
            }
        };
        self.index = Some(index);
        Ok(assigned)
    }

    fn route(&self, index: &mut KeyIndex, input: &Partitioned) -> Result<Routed> {
        let mut ids = Vec::with_capacity(input.partitions.len());
        for partition in &input.partitions {
            ids.push(index.id(partition).ok_or_else(too_many_partitions)?);
        }
        let columns = self.key.of(&input.rows.rows)?;
        let mut keys = Vec::with_capacity(input.of_row.len());
        RowEncoder::new(&columns, &self.key.types)?.visit(|key| keys.push(Digest::of(key)))?;
        let mut routed = Routed::default();
        let rows = keys.into_iter().zip(&input.of_row).zip(input.rows.kinds.values());
        for (row, ((key, &partition), &kind)) in (0..).zip(rows) {
            let id = *ids
                .get(partition)
                .ok_or_else(|| Error::internal("a row without a partition"))?;
            let target = self.settings.target_rows;
            match index.get(key) {
                None => routed.push(row, kind, index.put(key, id, target)),
                Some(there) if there.partition == id => routed.push(row, kind, there),
                Some(there) => {
                    routed.changed = true;
                    match self.on_existing {
                        OnExisting::Drop => {}
                        OnExisting::Follow => routed.push(row, kind, there),
                        OnExisting::Move => {
                            routed.push(row, RowKind::Delete as i8, there);
                            routed.push(row, kind, index.put(key, id, target));
                        }
                    }
                }
            }
        }
        Ok(routed)
    }

    /// The rows that come out, each with the values of its partition.
    fn rewrite(&self, index: &KeyIndex, input: &Partitioned, routed: &Routed) -> Result<Assigned> {
        let mut numbers: HashMap<PartitionId, usize> = HashMap::new();
        let mut partitions: Vec<BinaryRow> = Vec::new();
        let mut of_row = Vec::with_capacity(routed.places.len());
        for place in &routed.places {
            let number = match numbers.get(&place.partition) {
                Some(&number) => number,
                None => {
                    let row = index.partition(place.partition);
                    partitions.push(
                        row.ok_or_else(|| Error::internal("a place without a partition"))?
                            .clone(),
                    );
                    numbers.insert(place.partition, partitions.len() - 1);
                    partitions.len() - 1
                }
            };
            of_row.push(number);
        }
        let rows = UInt32Array::from(routed.rows.clone());
        let mut columns = Vec::with_capacity(input.rows.rows.num_columns());
        for column in input.rows.rows.columns() {
            columns.push(take(column, &rows, None)?);
        }
        for (&position, values) in self.partition.positions.iter().zip(self.partition_values(&partitions)?) {
            let numbers: UInt32Array = of_row.iter().map(|&number| u32::try_from(number).ok()).collect();
            if let Some(column) = columns.get_mut(position) {
                *column = take(&values, &numbers, None)?;
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(of_row.len()));
        let rows = RecordBatch::try_new_with_options(input.rows.rows.schema(), columns, &options)?;
        Ok(Assigned {
            rows: Partitioned {
                rows: Prepared {
                    rows,
                    kinds: Int8Array::from(routed.kinds.clone()),
                },
                partitions,
                of_row,
            },
            buckets: routed.places.iter().map(|place| place.bucket).collect(),
        })
    }

    /// The partition columns, a row a partition.
    fn partition_values(&self, partitions: &[BinaryRow]) -> Result<Vec<ArrayRef>> {
        let fields = self.table.schema().partition_fields();
        let mut values: Vec<Vec<Datum>> = vec![Vec::with_capacity(partitions.len()); fields.len()];
        for partition in partitions {
            for (column, value) in values.iter_mut().zip(partition.to_datums(&self.partition.types)?) {
                column.push(value);
            }
        }
        let columns = fields.iter().zip(&values);
        Ok(columns
            .map(|(field, values)| array_from_datums(field, values))
            .collect::<Result<_, _>>()?)
    }

    /// The index of the latest snapshot.
    async fn bootstrap(&self) -> Result<KeyIndex> {
        let mut index = KeyIndex::default();
        let Some(snapshot) = self.table.snapshot_store().latest().await? else {
            return Ok(index);
        };
        let mut buckets = self.table.files(&snapshot, ScanFilter::all()).await?;
        if let Some(ttl) = self.bootstrap.ttl {
            let clock = &self.table.context().env().clock;
            let now_ms = clock.now_ms();
            // Files note the local time.
            let local_ms = now_ms.saturating_add(clock.local_offset_ms(now_ms));
            let oldest_ms = local_ms.saturating_sub(i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
            let is_recent = |file: &Arc<DataFileMeta>| file.creation_time_ms.is_none_or(|time| time >= oldest_ms);
            buckets.retain(|bucket| bucket.files.iter().any(is_recent));
        }
        let stores = BucketStores::new(&self.table)?;
        let columns = self.key.positions.clone();
        let reads = buckets
            .into_iter()
            .map(move |bucket| keys_of(stores.clone(), columns.clone(), bucket));
        let runtime = Arc::clone(&self.table.context().env().runtime);
        let mut keys = read_ahead(runtime, reads, self.bootstrap.parallelism);
        while let Some(batch) = keys.try_next().await? {
            let partition = index.id(&batch.partition).ok_or_else(too_many_partitions)?;
            let place = Place {
                partition,
                bucket: batch.bucket,
            };
            let mut twice = 0_usize;
            RowEncoder::new(&batch.columns, &self.key.types)?
                .visit(|key| twice += usize::from(!index.restore(Digest::of(key), place)))?;
            if twice > 0 && self.bootstrap.ttl.is_none() {
                return Err(Error::invalid(format!(
                    "{}: it has {twice} keys that are in other buckets too: were there two writing jobs?",
                    self.table.paths().bucket(&batch.partition, batch.bucket)?.directory()
                )));
            }
        }
        Ok(index)
    }
}

/// Keys of one bucket.
struct KeyBatch {
    partition: BinaryRow,
    bucket: i32,
    columns: Vec<ArrayRef>,
}

/// The merged keys of a bucket. Level 0 counts, whether reads see it or not.
fn keys_of(stores: BucketStores, columns: Vec<usize>, bucket: BucketFiles) -> BoxStream<'static, Result<KeyBatch>> {
    let batches = async move {
        let index = stores.deletion_vectors(&bucket.partition, bucket.bucket)?;
        let mut deleted = HashMap::new();
        for file in bucket.deletion_index_files() {
            deleted.extend(index.read(&file, |_| true).await?);
        }
        let read = stores.merge_read(&bucket.partition, bucket.bucket)?;
        let read = read.with_projection(columns).with_deleted(deleted);
        let rows = read.merged(stores.sections(&bucket.files)?);
        let (partition, bucket) = (bucket.partition, bucket.bucket);
        Ok::<_, Error>(rows.map(move |batch| {
            Ok(KeyBatch {
                partition: partition.clone(),
                bucket,
                columns: batch?.columns.columns().to_vec(),
            })
        }))
    };
    stream::once(batches).try_flatten().boxed()
}

fn too_many_partitions() -> Error {
    Error::invalid("a table with more than 4294967295 partitions")
}
