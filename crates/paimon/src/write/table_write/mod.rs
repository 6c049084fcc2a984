//! The writer of a table.

mod buckets;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, RecordBatch, RecordBatchOptions};
use paimon_format::env::{Budget, StopSignal};
use paimon_format::kv::KvBatch;
use paimon_format::meta::CommitMessage;
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::types::{Datum, RowKind};
use paimon_lsm::pick::PickRule;
use paimon_lsm::write::WaitCompaction;

use crate::assign::{BucketAssigner, Columns, FixedBuckets};
use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::options::{self, RowSettings};
use crate::postpone::PostponedFiles;
use crate::table::Table;
use crate::write::local::LocalMerge;
use crate::write::metrics::WriterBufferMetrics;
use crate::write::route::{self, Partitioned};
use crate::write::rows::{Prepared, RowPreparation, row_kinds};
use crate::write::watch::TableWriteWatch;
use buckets::BucketWriter;

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
    assigner: BucketAssigner,
    stores: BucketStores,
    /// Memory for the buffers of all buckets.
    buffers: Budget,
    /// By the bytes of the partition's row and the bucket: commit messages come in the same order every time.
    writers: BTreeMap<(Vec<u8>, i32), BucketWriter>,
    /// What is there will be replaced: its buckets begin empty.
    overwrites: bool,
    /// How rows are written that get a bucket later; `None`: all have one.
    postponed: Option<PostponedFiles>,
    /// A call failed or was dropped where a batch is in some of its buckets and not in others, or a part of a commit was taken out.
    half_done: bool,
    /// `local-merge-buffer-size`: rows wait here first.
    local: Option<LocalMerge>,
    /// `write.sequence-number-init-mode` is `snapshot`.
    sequence_from_snapshot: bool,
    /// New writers number their records from here on, or from above those of their bucket.
    first_sequence: i64,
    watch: TableWriteWatch,
    metrics: WriterBufferMetrics,
}

impl TableWrite {
    /// With `overwrites` the files that are there count for nothing.
    pub(crate) fn new(table: Table, pick_rule: Option<PickRule>, overwrites: bool, user: &str) -> Result<Self> {
        table.check_writable()?;
        // Also of a use that is not write-only: what it compacts would bear no snapshot's id yet.
        options::check_snapshot_ordering(table.options(), &Options::new())?;
        table.check_memory()?;
        let mut stores = BucketStores::new(&table)?;
        if let Some(rule) = pick_rule {
            stores = stores.with_pick_rule(rule);
        }
        if overwrites {
            stores = stores.ignoring_previous_files();
        }
        let assigner = BucketAssigner::new(&table, overwrites)?;
        let postponed = match assigner {
            BucketAssigner::Postpone => Some(PostponedFiles::new(&table, user, &*table.context().env().ids)?),
            _ => None,
        };
        let write = Self::with_assigner(table, stores, assigner)?;
        Ok(Self {
            overwrites,
            postponed,
            ..write
        })
    }

    /// Gives rows that waited for a bucket one: by the bucket counts of their partitions.
    pub(crate) fn into_buckets(table: Table, counts: HashMap<BinaryRow, i32>) -> Result<Self> {
        table.check_writable()?;
        let stores = BucketStores::new(&table)?;
        let assigner = BucketAssigner::Fixed(FixedBuckets::given(&table, counts)?);
        Self::with_assigner(table, stores, assigner)
    }

    fn with_assigner(table: Table, stores: BucketStores, assigner: BucketAssigner) -> Result<Self> {
        let settings = RowSettings::from_options(table.options())?;
        let buffers = Budget::new(stores.settings().write_buffer_bytes);
        Ok(Self {
            preparation: RowPreparation::new(&table, &settings)?,
            partition_columns: Columns::new(&table, table.schema().partition_positions()),
            assigner,
            postponed: None,
            half_done: false,
            local: LocalMerge::new(&table, &settings)?,
            sequence_from_snapshot: settings.sequence_from_snapshot,
            first_sequence: 0,
            watch: TableWriteWatch::new(buffers.clone()),
            metrics: WriterBufferMetrics::new(table.metrics_name()),
            buffers,
            stores,
            writers: BTreeMap::new(),
            overwrites: false,
            table,
        })
    }

    /// Compactions are not waited for once it is time to stop.
    pub(super) fn stop_on(self, stop: StopSignal) -> Self {
        Self {
            stores: self.stores.stop_on(stop),
            ..self
        }
    }

    /// Writes rows, matched to columns by name; a column that is missing is null or its default. They are all +I, unless the batch
    /// has a column [`_VALUE_KIND`](crate::write::VALUE_KIND_COLUMN) or the table a `rowkind.field`.
    ///
    /// Waits when a bucket has more sorted runs than `num-sorted-run.stop-trigger`; [`watch`](Self::watch) shows that.
    ///
    /// Errors: `Invalid` naming column and row, or a kind that the merge engine refuses and the option that would allow it; nothing of the batch
    /// is written then.
    pub async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let prepared = self.preparation.prepare(batch, None)?;
        self.write_prepared(prepared).await
    }

    /// As [`write`](Self::write), with a kind a row (the bytes of [`RowKind`](paimon_format::types::RowKind)).
    pub async fn write_with_kinds(&mut self, batch: &RecordBatch, kinds: &Int8Array) -> Result<()> {
        let prepared = self.preparation.prepare(batch, Some(kinds))?;
        self.write_prepared(prepared).await
    }

    /// Whether a row can be written: one that cannot spoils the whole batch that it is put into. `row` has a value for each column of the
    /// table, in order; `kind` is the one that it would be written with.
    ///
    /// What depends on other rows of its key, as a sum that overflows, shows when they are merged.
    ///
    /// Errors: `Invalid` or `Unsupported`: a `rowkind.field` that is no row kind, a kind or a value that the merge engine refuses, a partition that has no
    /// directory name.
    pub fn check_row(&self, kind: RowKind, row: &[Datum]) -> Result<()> {
        let kind = self.preparation.kind_of(kind, row)?;
        if self.preparation.drops(kind) {
            return Ok(());
        }
        self.stores.check_row(kind, row)?;
        let columns = &self.partition_columns;
        let values = columns.positions.iter().map(|&at| row.get(at).cloned());
        let values: Vec<Datum> = values.map(|value| value.unwrap_or(Datum::Null)).collect();
        self.table
            .paths()
            .partition(&BinaryRow::from_datums(&values, &columns.types)?)?;
        Ok(())
    }

    /// Takes records of the table's columns that were prepared when they were first written.
    pub(crate) async fn write_records(&mut self, batch: &KvBatch) -> Result<()> {
        let kinds = Int8Array::from(batch.kinds().to_vec());
        self.write_as_is(batch.values().to_vec(), kinds).await
    }

    /// Takes merged rows of the table, all of its columns: each is +I, whatever `rowkind.field` says, and its nulls stay. What another engine wrote
    /// may be longer than its type says.
    pub(crate) async fn write_merged(&mut self, rows: &RecordBatch) -> Result<()> {
        let kinds = Int8Array::from(vec![RowKind::Insert as i8; rows.num_rows()]);
        self.write_as_is(rows.columns().to_vec(), kinds).await
    }

    /// A kind a row.
    async fn write_as_is(&mut self, columns: Vec<ArrayRef>, kinds: Int8Array) -> Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(kinds.len()));
        let rows = RecordBatch::try_new_with_options(Arc::clone(&self.preparation.arrow), columns, &options)?;
        let prepared = Prepared { rows, kinds };
        self.accept(&prepared)?;
        self.distribute(prepared).await
    }

    async fn write_prepared(&mut self, prepared: Prepared) -> Result<()> {
        self.accept(&prepared)?;
        let Some(local) = &mut self.local else {
            return self.distribute(prepared).await;
        };
        let has_room = local.push(&prepared)?;
        match has_room {
            true => Ok(()),
            false => self.flush_local().await,
        }
    }

    /// Whether rows may be taken, whatever their buckets are.
    fn accept(&self, prepared: &Prepared) -> Result<()> {
        self.check()?;
        self.stores.check_rows(&prepared.rows, &prepared.kinds)
    }

    fn check(&self) -> Result<()> {
        match self.half_done {
            false => Ok(()),
            true => Err(Error::invalid(
                "an earlier call ended half-way, a batch may be in some of its buckets only: abort this writer, and write again from the last commit",
            )),
        }
    }

    /// Gives the rows that were merged before to their buckets.
    async fn flush_local(&mut self) -> Result<()> {
        let Some(local) = &mut self.local else {
            return Ok(());
        };
        self.half_done = true;
        for merged in local.drain().await? {
            self.distribute(merged).await?;
            self.half_done = true;
        }
        self.half_done = false;
        Ok(())
    }

    /// Gives rows to their buckets.
    async fn distribute(&mut self, prepared: Prepared) -> Result<()> {
        // Other assigners remember the rows that they have seen.
        self.half_done |= !matches!(self.assigner, BucketAssigner::Fixed(_));
        let assigned = self
            .assigner
            .assign(Partitioned::new(prepared, &self.partition_columns)?)
            .await?;
        let parts = route::split(&assigned)?;
        let partitions = &assigned.rows;
        self.open_writers(&parts, partitions).await?;
        self.make_room().await?;
        self.half_done = true;
        for part in parts {
            let partition = partitions.partition(part.partition)?;
            let key = (partition.as_bytes().to_vec(), part.bucket);
            let Some(writer) = self.writers.get_mut(&key) else {
                return Err(Error::internal("a bucket without a writer"));
            };
            let kinds = row_kinds(&part.kinds)?;
            (writer.since_full, writer.idle) = (true, false);
            let written = writer.writer.write(&part.rows, &kinds).await;
            written.map_err(|error| error.in_bucket(&writer.name))?;
        }
        self.half_done = false;
        self.metrics.tell(self.writers.len(), &self.buffers);
        Ok(())
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
            flushed.map_err(|error| error.in_bucket(&largest.name))?;
            self.metrics.preempted();
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
        self.assigner.check_bucket(partition, bucket).await?;
        self.check()?;
        self.flush_local().await?;
        let writer = self.bucket_writer(partition, bucket).await?;
        writer.idle = false;
        let compacted = writer.writer.compact(full).await;
        compacted.map_err(|error| error.in_bucket(&writer.name))
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
        self.check()?;
        self.flush_local().await?;
        let mut started = false;
        for writer in self.writers.values_mut().filter(|writer| writer.since_full) {
            let compacted = writer.writer.compact(true).await;
            compacted.map_err(|error| error.in_bucket(&writer.name))?;
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
            flushed.map_err(|error| error.in_bucket(&writer.name))?;
        }
        for writer in self.writers.values_mut() {
            let settled = writer.writer.settle(wait).await;
            settled.map_err(|error| error.in_bucket(&writer.name))?;
        }
        self.half_done = true;
        let mut indexes = self.assigner.prepare_commit().await?;
        let mut messages = Vec::with_capacity(self.writers.len());
        for (key, writer) in &mut self.writers {
            let increment = writer.writer.drain_increment();
            let mut increment = increment.map_err(|error| error.in_bucket(&writer.name))?;
            if let Some(index) = indexes.remove(key) {
                increment.data.new_index_files.push(index.file);
                increment.data.deleted_index_files.extend(index.replaces);
            }
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
        self.half_done = false;
        self.stores.remove_idle_lookups();
        self.metrics.tell(self.writers.len(), &self.buffers);
        Ok(messages)
    }

    /// Gives up: stops compactions and removes the files that no call of [`prepare_commit`](Self::prepare_commit) handed out.
    /// The same ends a writer whose rows are all committed.
    pub async fn abort(self) {
        for (_, writer) in self.writers {
            writer.writer.close().await;
        }
    }
}
