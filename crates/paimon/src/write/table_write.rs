//! The writer of a table.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, Int8Array, RecordBatch};
use paimon_format::bucket::BucketFunction;
use paimon_format::env::Budget;
use paimon_format::kv::KvSchema;
use paimon_format::meta::CommitMessage;
use paimon_format::options::Options;
use paimon_format::row::{BinaryRow, row_at};
use paimon_format::types::{DataType, Datum, RowKind, array_from_datums, arrow_schema};
use paimon_lsm::pick::PickRule;
use paimon_lsm::write::{LocalMerger, MergeTreeWriter, WaitCompaction};
use paimon_manifest::scan::BucketFiles;
use paimon_manifest::snapshot::Snapshot;

use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::options::{self, BucketMode, RowSettings};
use crate::table::Table;
use crate::write::route::{self, Part};
use crate::write::rows::{Prepared, RowPreparation};
use crate::write::watch::TableWriteWatch;

/// The position of the sequence number among the columns of a merged batch; the kind follows.
const SEQUENCE_COLUMN: usize = 0;

/// Writes rows into the buckets of a table. One task owns it; two of them may write to one table, but not to one bucket unless
/// both are `write-only`.
///
/// It owns the writers of all buckets and is their memory policy: when the buffers of all together come near
/// `write-buffer-size`, the largest go to disk. Rows are visible once the messages of [`prepare_commit`](Self::prepare_commit) are
/// committed. After an error it must be given up: [`abort`](Self::abort) removes what it wrote.
///
/// Any future may be dropped. A dropped [`write`](Self::write) has taken all of its batch or nothing, or every later call but `abort` is an
/// error, as half a batch must not be committed. A dropped [`prepare_commit`](Self::prepare_commit) has handed nothing out: the next one
/// hands out all, or is an error when it was dropped while it flushed.
///
/// Source: `org.apache.paimon.table.sink.TableWriteImpl`, `org.apache.paimon.operation.AbstractFileStoreWrite`.
#[derive(Debug)]
pub struct TableWrite {
    table: Table,
    preparation: RowPreparation,
    partition_columns: Columns,
    bucket_columns: Columns,
    function: BucketFunction,
    default_buckets: i32,
    stores: BucketStores,
    /// Memory for the buffers of all buckets.
    buffers: Budget,
    /// By the bytes of the partition's row and the bucket: commit messages come in the same order every time.
    writers: BTreeMap<(Vec<u8>, i32), BucketWriter>,
    /// Bucket counts of the partitions seen so far.
    bucket_counts: BTreeMap<Vec<u8>, i32>,
    /// What is there will be replaced: its buckets begin empty.
    overwrites: bool,
    /// A batch is in some of its buckets and not in others: a call failed or was dropped between them.
    half_written: bool,
    /// `local-merge-buffer-size`: rows wait here first.
    local: Option<LocalMerger>,
    /// `write.sequence-number-init-mode` is `snapshot`.
    sequence_from_snapshot: bool,
    /// New writers number their records from here on, or from above those of their bucket.
    first_sequence: i64,
    watch: TableWriteWatch,
}

/// Some columns of the table, by position, with their types.
#[derive(Debug)]
struct Columns {
    positions: Vec<usize>,
    types: Vec<DataType>,
}

#[derive(Debug)]
struct BucketWriter {
    partition: BinaryRow,
    bucket: i32,
    total_buckets: i32,
    /// The bucket's directory, for errors.
    name: String,
    writer: MergeTreeWriter,
    /// The last commit got nothing from it.
    idle: bool,
    /// It was written to after its last full compaction.
    since_full: bool,
}

impl Columns {
    fn new(table: &Table, positions: Vec<usize>) -> Self {
        Self {
            types: table.types_of(&positions),
            positions,
        }
    }

    fn of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let columns = self
            .positions
            .iter()
            .map(|&position| batch.columns().get(position).map(Arc::clone));
        columns
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::internal("a batch without the table's columns"))
    }
}

impl TableWrite {
    /// With `overwrites` the files that are there count for nothing.
    pub(crate) fn new(table: Table, pick_rule: Option<PickRule>, overwrites: bool) -> Result<Self> {
        table.check_writable()?;
        // Also of a use that is not write-only: what it compacts would bear no snapshot's id yet.
        options::check_snapshot_ordering(table.options(), &Options::new())?;
        let BucketMode::Fixed(default_buckets) = BucketMode::from_options(table.options())? else {
            return Err(Error::unsupported(
                "writing a table without a fixed number of buckets (option 'bucket')",
            ));
        };
        let settings = RowSettings::from_options(table.options())?;
        table.check_memory()?;
        let mut stores = BucketStores::new(&table)?;
        if let Some(rule) = pick_rule {
            stores = stores.with_pick_rule(rule);
        }
        if overwrites {
            stores = stores.ignoring_previous_files();
        }
        let schema = table.schema();
        let bucket_columns = Columns::new(&table, schema.bucket_key()?);
        let buffers = Budget::new(stores.settings().write_buffer_bytes);
        let watch = TableWriteWatch::new(buffers.clone());
        Ok(Self {
            preparation: preparation(&table, &settings)?,
            partition_columns: Columns::new(&table, schema.partition_positions()),
            function: BucketFunction::from_options(table.options(), bucket_columns.types.clone())?,
            bucket_columns,
            default_buckets,
            buffers,
            stores,
            writers: BTreeMap::new(),
            bucket_counts: BTreeMap::new(),
            overwrites,
            half_written: false,
            local: local_merger(&table, &settings)?,
            sequence_from_snapshot: settings.sequence_from_snapshot,
            first_sequence: 0,
            watch,
            table,
        })
    }

    /// Writes rows, matched to columns by name; a column that is missing is null or its default. They are all +I, unless the batch
    /// has a column [`_VALUE_KIND`](crate::write::VALUE_KIND_COLUMN) or the table a `rowkind.field`.
    ///
    /// Waits when a bucket has more sorted runs than `num-sorted-run.stop-trigger`; [`watch`](Self::watch) shows that.
    ///
    /// Errors: `Invalid` naming column and row; nothing of the batch is written then.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let prepared = self.preparation.prepare(batch, None)?;
        self.write_prepared(prepared).await
    }

    /// As [`write`](Self::write), with a kind a row (the bytes of [`RowKind`](paimon_format::types::RowKind)).
    pub async fn write_with_kinds(&mut self, batch: &RecordBatch, kinds: &Int8Array) -> Result<()> {
        let prepared = self.preparation.prepare(batch, Some(kinds))?;
        self.write_prepared(prepared).await
    }

    async fn write_prepared(&mut self, prepared: Prepared) -> Result<()> {
        self.check()?;
        let Some(local) = &mut self.local else {
            return self.distribute(prepared).await;
        };
        let has_room = local.push(&prepared.rows, &row_kinds(&prepared.kinds)?)?;
        match has_room {
            true => Ok(()),
            false => self.flush_local().await,
        }
    }

    /// Gives the rows that were merged before to their buckets.
    async fn flush_local(&mut self) -> Result<()> {
        let Some(local) = &mut self.local else {
            return Ok(());
        };
        self.half_written = true;
        for batch in local.drain().await? {
            let mut rows = batch.columns.clone();
            rows.remove_column(SEQUENCE_COLUMN);
            let kinds = rows.remove_column(SEQUENCE_COLUMN);
            let kinds = kinds.as_primitive::<Int8Type>().clone();
            self.distribute(Prepared { rows, kinds }).await?;
            self.half_written = true;
        }
        self.half_written = false;
        Ok(())
    }

    /// Gives rows to their buckets.
    async fn distribute(&mut self, prepared: Prepared) -> Result<()> {
        let Prepared { rows, kinds } = prepared;
        let partition_columns = self.partition_columns.of(&rows)?;
        let (of_row, first_rows) = route::partitions(&partition_columns, rows.num_rows())?;
        let mut partitions = Vec::with_capacity(first_rows.len());
        for &row in &first_rows {
            partitions.push(row_at(&partition_columns, &self.partition_columns.types, row)?);
        }
        self.learn_bucket_counts(&partitions).await?;
        let buckets = self.buckets(&rows, &of_row, &partitions)?;
        let parts = route::split(&rows, &kinds, &of_row, &buckets)?;
        self.open_writers(&parts, &partitions).await?;
        self.make_room().await?;
        self.half_written = true;
        for part in parts {
            let partition = partition_of(&partitions, &part)?;
            let key = (partition.as_bytes().to_vec(), part.bucket);
            let Some(writer) = self.writers.get_mut(&key) else {
                return Err(Error::internal("a bucket without a writer"));
            };
            let kinds = row_kinds(&part.kinds)?;
            writer.since_full = true;
            let written = writer.writer.write(&part.rows, &kinds).await;
            written.map_err(|error| Error::from(error).in_bucket(&writer.name))?;
        }
        self.half_written = false;
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match self.half_written {
            false => Ok(()),
            true => Err(Error::invalid(
                "an earlier write ended half-way, its batch is in some buckets only: abort this writer, and write again from the last commit",
            )),
        }
    }

    /// The bucket of each row: the count of its partition decides.
    fn buckets(&self, rows: &RecordBatch, of_row: &[usize], partitions: &[BinaryRow]) -> Result<Vec<i32>> {
        let key = self.bucket_columns.of(rows)?;
        let counts: Vec<i32> = partitions
            .iter()
            .map(|partition| self.bucket_count(partition.as_bytes()))
            .collect();
        let mut distinct = counts.clone();
        distinct.sort_unstable();
        distinct.dedup();
        match distinct.as_slice() {
            [] => Ok(Vec::new()),
            [count] => Ok(self.function.buckets(&key, *count)?),
            several => {
                // Partitions of one batch with different counts are rare: one pass each.
                let mut buckets = vec![0; rows.num_rows()];
                for count in several {
                    let by_count = self.function.buckets(&key, *count)?;
                    for ((bucket, found), partition) in buckets.iter_mut().zip(by_count).zip(of_row) {
                        if counts.get(*partition) == Some(count) {
                            *bucket = found;
                        }
                    }
                }
                Ok(buckets)
            }
        }
    }

    fn bucket_count(&self, partition: &[u8]) -> i32 {
        self.bucket_counts
            .get(partition)
            .copied()
            .unwrap_or(self.default_buckets)
    }

    /// The bucket count of a partition is that of its files. One that differs from the option is refused: the partition must be
    /// rescaled first.
    async fn learn_bucket_counts(&mut self, partitions: &[BinaryRow]) -> Result<()> {
        let unknown: Vec<&BinaryRow> = partitions
            .iter()
            .filter(|partition| !self.bucket_counts.contains_key(partition.as_bytes()))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let live = files_before(&self.table, self.overwrites, &unknown).await?;
        for partition in unknown {
            let mut count = self.default_buckets;
            for bucket in live
                .iter()
                .filter(|bucket| bucket.partition == *partition && bucket.bucket >= 0)
            {
                if bucket.total_buckets != self.default_buckets {
                    let path = self.table.paths().partition(partition)?;
                    return Err(Error::invalid(format!(
                        "{}: its files are in {} buckets, but the option 'bucket' is {}; rescale it before writing",
                        if path.is_empty() {
                            "the table".to_owned()
                        } else {
                            format!("partition {path}")
                        },
                        bucket.total_buckets,
                        self.default_buckets
                    )));
                }
                count = bucket.total_buckets;
            }
            self.bucket_counts.insert(partition.as_bytes().to_vec(), count);
        }
        Ok(())
    }

    /// Opens the writers of buckets that have none, on the files that are in the latest snapshot.
    async fn open_writers(&mut self, parts: &[Part], partitions: &[BinaryRow]) -> Result<()> {
        let mut missing = Vec::new();
        for part in parts {
            let partition = partition_of(partitions, part)?;
            if !self.writers.contains_key(&(partition.as_bytes().to_vec(), part.bucket)) {
                missing.push((partition, part.bucket));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.learn_sequence().await?;
        let of: Vec<&BinaryRow> = missing.iter().map(|(partition, _)| *partition).collect();
        let live = files_before(&self.table, self.overwrites, &of).await?;
        for (partition, bucket) in missing {
            let there = |files: &&BucketFiles| files.partition == *partition && files.bucket == bucket;
            self.open_writer(partition.clone(), bucket, live.iter().find(there))
                .await?;
        }
        Ok(())
    }

    /// Looks up from where on new writers number their records, where the latest snapshot says that.
    async fn learn_sequence(&mut self) -> Result<()> {
        if self.sequence_from_snapshot && !self.overwrites {
            let latest = self.table.snapshot_store().latest().await?;
            let noted = latest.as_ref().map(Snapshot::max_sequence_number).transpose()?;
            self.first_sequence = noted.flatten().map_or(0, |max| max.saturating_add(1));
        }
        Ok(())
    }

    async fn open_writer(
        &mut self,
        partition: BinaryRow,
        bucket: i32,
        live: Option<&BucketFiles>,
    ) -> Result<&mut BucketWriter> {
        let total_buckets = self.bucket_count(partition.as_bytes());
        match self.writers.entry((partition.as_bytes().to_vec(), bucket)) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(new) => {
                let paths = self.table.paths().bucket(&partition, bucket)?;
                let name = paths.directory().to_owned();
                let writer = self
                    .stores
                    .writer(&partition, bucket, live, self.buffers.clone(), self.first_sequence)
                    .await
                    .map_err(|error| error.in_bucket(&name))?;
                self.watch.add(&name, writer.watch());
                Ok(new.insert(BucketWriter {
                    partition,
                    bucket,
                    total_buckets,
                    name,
                    writer,
                    idle: false,
                    since_full: false,
                }))
            }
        }
    }

    /// Makes room: the largest buffers go to disk until half of the memory for buffers is free. Called before a batch is taken
    /// when less than a quarter is, so that a small bucket is not flushed for the sake of a large one.
    async fn make_room(&mut self) -> Result<()> {
        let total = self.buffers.total();
        if self.buffers.free() >= total / 4 {
            return Ok(());
        }
        while self.buffers.free() < total / 2 {
            let largest = self
                .writers
                .values_mut()
                .max_by_key(|writer| writer.writer.memory_bytes());
            let Some(largest) = largest.filter(|writer| writer.writer.memory_bytes() > 0) else {
                return Ok(());
            };
            let flushed = largest.writer.flush_memory().await;
            flushed.map_err(|error| Error::from(error).in_bucket(&largest.name))?;
        }
        Ok(())
    }

    /// Shows to other tasks what the writers of the buckets are doing, while they do it.
    pub fn watch(&self) -> TableWriteWatch {
        self.watch.clone()
    }

    /// The partitions and buckets that it has written to, by partition bytes and bucket.
    pub fn open_buckets(&self) -> Vec<(BinaryRow, i32)> {
        let writers = self.writers.values();
        writers
            .map(|writer| (writer.partition.clone(), writer.bucket))
            .collect()
    }

    /// Flushes a bucket and starts a compaction: a full one, or what the strategy picks. It ends with a later
    /// [`prepare_commit`](Self::prepare_commit) that waits.
    ///
    /// Errors: `Invalid` when the bucket is outside of the partition's count.
    pub async fn compact(&mut self, partition: &BinaryRow, bucket: i32, full: bool) -> Result<()> {
        self.flush_local().await?;
        self.learn_bucket_counts(std::slice::from_ref(partition)).await?;
        let count = self.bucket_count(partition.as_bytes());
        if bucket < 0 || bucket >= count {
            return Err(Error::invalid(format!(
                "bucket {bucket}: the partition has {count} buckets"
            )));
        }
        if !self.writers.contains_key(&(partition.as_bytes().to_vec(), bucket)) {
            self.learn_sequence().await?;
            let live = files_before(&self.table, self.overwrites, &[partition]).await?;
            let there = live.iter().find(|files| files.bucket == bucket);
            self.open_writer(partition.clone(), bucket, there).await?;
        }
        let Some(writer) = self.writers.get_mut(&(partition.as_bytes().to_vec(), bucket)) else {
            return Err(Error::internal("a bucket without a writer"));
        };
        let compacted = writer.writer.compact(full).await;
        compacted.map_err(|error| Error::from(error).in_bucket(&writer.name))
    }

    /// Starts the full compactions that are due before the commit with this identifier: of the buckets written to since their last one, when
    /// the identifier is a multiple of `full-compaction.delta-commits` (1 for the changelog producer `full-compaction` where it is not set).
    /// `true`: they have been started, and [`prepare_commit`](Self::prepare_commit) should wait for them.
    ///
    /// Errors: `Invalid` naming the option; those of flushing.
    ///
    /// Source: `org.apache.paimon.flink.sink.GlobalFullCompactionSinkWrite`.
    pub async fn compact_if_due(&mut self, identifier: i64) -> Result<bool> {
        let Some(every) = options::full_compaction_delta_commits(self.table.options())? else {
            return Ok(false);
        };
        if self.stores.settings().write_only || identifier % i64::from(every) != 0 {
            return Ok(false);
        }
        self.flush_local().await?;
        let mut started = false;
        for writer in self.writers.values_mut().filter(|writer| writer.since_full) {
            let compacted = writer.writer.compact(true).await;
            compacted.map_err(|error| Error::from(error).in_bucket(&writer.name))?;
            writer.since_full = false;
            started = true;
        }
        Ok(started)
    }

    /// Whether a streaming job's commits should wait for compaction: `lookup-wait`, in a table whose compactions look old rows up.
    pub fn prepare_commit_wait_compaction(&self) -> bool {
        self.stores.settings().prepare_commit_wait_compaction()
    }

    /// Flushes all buckets and takes out what they wrote since the last call, to be committed. With `wait_compaction` the
    /// compactions that run or are now due end first, those of all buckets side by side; without it their results come with a later call.
    ///
    /// Messages without files are left out. Their order is that of partition bytes and buckets. When it fails or is dropped, nothing has
    /// been handed out.
    pub async fn prepare_commit(&mut self, wait_compaction: bool) -> Result<Vec<CommitMessage>> {
        self.check()?;
        self.flush_local().await?;
        let wait = if wait_compaction {
            WaitCompaction::Yes
        } else {
            WaitCompaction::No
        };
        for writer in self.writers.values_mut() {
            let flushed = writer.writer.flush(wait).await;
            flushed.map_err(|error| Error::from(error).in_bucket(&writer.name))?;
        }
        for writer in self.writers.values_mut() {
            let settled = writer.writer.settle(wait).await;
            settled.map_err(|error| Error::from(error).in_bucket(&writer.name))?;
        }
        let mut messages = Vec::with_capacity(self.writers.len());
        for writer in self.writers.values_mut() {
            let increment = writer.writer.drain_increment();
            let increment = increment.map_err(|error| Error::from(error).in_bucket(&writer.name))?;
            writer.idle = increment.is_empty();
            if !writer.idle {
                messages.push(CommitMessage {
                    partition: writer.partition.clone(),
                    bucket: writer.bucket,
                    total_buckets: Some(writer.total_buckets),
                    increment,
                });
            }
        }
        Ok(messages)
    }

    /// Closes the buckets that wrote nothing before the last [`prepare_commit`](Self::prepare_commit) and have nothing to compact, so
    /// that a job that runs for months does not keep every partition that it ever saw. They are opened again when rows come.
    ///
    /// Only to be called when all messages that were handed out are committed: a bucket is opened on the latest snapshot, and
    /// would not know files that are not in it.
    pub async fn close_idle_buckets(&mut self) -> Result<()> {
        let mut idle = Vec::new();
        for (key, writer) in &mut self.writers {
            if writer.idle && writer.writer.memory_bytes() == 0 && !writer.writer.compact_not_completed()? {
                idle.push(key.clone());
            }
        }
        for key in idle {
            if let Some(writer) = self.writers.remove(&key) {
                self.watch.remove(&writer.name);
                writer.writer.close().await;
            }
        }
        Ok(())
    }

    /// Gives up: stops compactions and removes the files that no call of [`prepare_commit`](Self::prepare_commit) handed out.
    /// The same ends a writer whose rows are all committed.
    pub async fn abort(self) {
        for (_, writer) in self.writers {
            writer.writer.close().await;
        }
    }
}

/// What merges rows before they go to their buckets, if the table's options ask for that.
fn local_merger(table: &Table, settings: &RowSettings) -> Result<Option<LocalMerger>> {
    let Some(bytes) = settings.local_merge_bytes else {
        return Ok(None);
    };
    let schema = table.schema();
    let key = schema.primary_keys.iter().filter_map(|name| schema.position(name));
    let schema = KvSchema::new(
        schema.id,
        schema.fields.clone(),
        key.collect(),
        schema.sequence_order()?,
    )?;
    let engine = table.context().registry().for_options(&schema, table.options())?;
    let env = table.context().env().clone();
    Ok(Some(LocalMerger::new(Arc::new(schema), engine, env, bytes)?))
}

/// The kinds of a part, which were checked with the rows.
fn row_kinds(kinds: &Int8Array) -> Result<Vec<RowKind>> {
    let kinds = kinds.values().iter().map(|&kind| RowKind::from_byte(kind));
    kinds
        .collect::<Option<_>>()
        .ok_or_else(|| Error::internal("a kind that is none"))
}

/// The files that the writers of these partitions build on.
async fn files_before(table: &Table, overwrites: bool, partitions: &[&BinaryRow]) -> Result<Vec<BucketFiles>> {
    match overwrites {
        true => Ok(Vec::new()),
        false => table.latest_files(partitions).await,
    }
}

fn partition_of<'a>(partitions: &'a [BinaryRow], part: &Part) -> Result<&'a BinaryRow> {
    partitions
        .get(part.partition)
        .ok_or_else(|| Error::internal("a part without a partition"))
}

fn preparation(table: &Table, settings: &RowSettings) -> Result<RowPreparation> {
    let schema = table.schema();
    let mut defaults = Vec::with_capacity(schema.fields.len());
    for field in &schema.fields {
        defaults.push(match &field.default_value {
            None => None,
            Some(text) => {
                let value = Datum::parse(text, &field.data_type)
                    .map_err(|error| Error::invalid(format!("the default value of column {}: {error}", field.name)))?;
                Some(array_from_datums(field, [&value])?)
            }
        });
    }
    Ok(RowPreparation {
        arrow: Arc::new(arrow_schema(&schema.fields)?),
        defaults,
        kind_column: settings
            .row_kind_field
            .as_deref()
            .and_then(|name| schema.position(name)),
        ignore_delete: settings.ignore_delete,
        ignore_update_before: settings.ignore_update_before,
    })
}
