//! What has been written and not yet flushed.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use arrow_select::coalesce::BatchCoalescer;
use paimon_format::FormatError;
use paimon_format::env::{Budget, Env, Reservation};
use paimon_format::kv::{KeyCodec, KvBatch, KvSchemaRef, KvStream, RowLevels};
use paimon_format::types::RowKind;
use paimon_merge::plan::VersionOrder;

use super::runs::{MergeMemory, merge_spills};
use super::sort::SortedRows;
use crate::LsmError;
use crate::compact::pipeline::BufferedRuns;
use crate::spill::{SpillFile, SpillWriter};

/// Rows that small batches are gathered to.
const BATCH_ROWS: usize = 8192;
/// Budget is taken in steps of this, bytes.
const RESERVE_STEP: u64 = 1 << 20;
/// With more temporary files than this a full buffer is flushed.
const MAX_SPILLS: usize = 128;
/// The level of a record that is in no file yet.
pub(super) const BUFFER_LEVEL: i32 = -1;

/// Records of one bucket in order of arrival, by columns; sorted when they leave. Bounded by a budget that the writers of a table
/// may share. When that is used up, the records go to a sorted temporary file, or the buffer asks to be flushed.
///
/// Source: `org.apache.paimon.mergetree.SortBufferWriteBuffer`.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    schema: KvSchemaRef,
    codec: KeyCodec,
    env: Env,
    budget: Budget,
    /// `None`: not spillable; else the bytes on disk from which on it is flushed instead.
    max_spill_bytes: Option<u64>,
    /// The last, small batches.
    gathering: BatchCoalescer,
    batches: Vec<KvBatch>,
    batch_bytes: u64,
    reserved: Vec<Reservation>,
    spills: Vec<Arc<SpillFile>>,
}

impl WriteBuffer {
    /// An empty buffer.
    ///
    /// Errors: `Unsupported` when a key or sequence column's type has no order.
    pub(super) fn new(
        schema: KvSchemaRef,
        env: Env,
        budget: Budget,
        max_spill_bytes: Option<u64>,
    ) -> Result<Self, LsmError> {
        Ok(Self {
            codec: KeyCodec::new(&schema)?,
            gathering: gathering(&schema),
            schema,
            env,
            budget,
            max_spill_bytes,
            batches: Vec::new(),
            batch_bytes: 0,
            reserved: Vec::new(),
            spills: Vec::new(),
        })
    }

    /// Whether no record is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.spills.is_empty() && self.gathering.get_buffered_rows() == 0
    }

    /// Bytes in memory; spilled ones do not count.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self.gathering.get_buffered_rows() {
            0 => self.batch_bytes,
            _ => self.batch_bytes + self.gathering.size() as u64,
        }
    }

    /// Takes records, numbered from `first_sequence` on. Returns whether there was budget for all of it: if not, the buffer
    /// should be spilled or flushed before more comes.
    ///
    /// Errors: `Invalid`, naming the column, when the columns are not those of the schema or not as many as the kinds; the
    /// buffer is unchanged then.
    pub(super) fn push(
        &mut self,
        values: &RecordBatch,
        kinds: &[RowKind],
        first_sequence: i64,
    ) -> Result<bool, LsmError> {
        let records = self.records(values, kinds, first_sequence)?;
        // A batch that is large in rows and not a small part of something larger is kept as it is.
        let own = records.get_array_memory_size() <= 2 * sliced_size(&records);
        self.gathering
            .set_biggest_coalesce_batch_size(own.then_some(BATCH_ROWS / 2));
        self.gathering.push_batch(records).map_err(internal)?;
        self.take_gathered()?;
        Ok(self.reserve())
    }

    /// Moves what is in memory to a sorted temporary file. `false`: it may not, flush instead.
    ///
    /// Errors: `Unavailable` when the disk fails; the buffer has lost its records then.
    pub(super) async fn spill(&mut self) -> Result<bool, LsmError> {
        let spilled: u64 = self.spills.iter().map(|spill| spill.bytes()).sum();
        // Compressed records take no more room than in memory.
        let fits = self.max_spill_bytes.is_some_and(|max| spilled < max)
            && self.spills.len() < MAX_SPILLS
            && self.env.disk.free() >= self.memory_bytes();
        if fits {
            self.spill_memory().await?;
        }
        Ok(fits)
    }

    /// Moves what is in memory to a sorted temporary file.
    async fn spill_memory(&mut self) -> Result<(), LsmError> {
        let Some(sorted) = self.take_sorted().await? else {
            return Ok(());
        };
        let mut writer = SpillWriter::create(&self.env, &self.schema).await?;
        let mut sorted = Some(sorted);
        while let Some(rows) = sorted.take() {
            let (batch, rest) = self.env.cpu(move || rows.next_batch()).await??;
            writer.write(&batch).await?;
            sorted = rest;
        }
        let spill = writer.finish().await?;
        tracing::debug!(rows = spill.rows(), bytes = spill.bytes(), "write buffer spilled");
        self.spills.push(Arc::new(spill));
        self.reserved.clear();
        Ok(())
    }

    /// Hands out all records as sorted runs, in which a key may occur often, oldest version first, and begins anew. The
    /// budget is given back when the runs are dropped.
    ///
    /// What was never spilled is not merged with anything. Otherwise there are no more runs than the budget has room to merge at once, and
    /// two: where it is short, what is in memory goes to disk, too, and temporary files are merged into larger ones first.
    ///
    /// Errors as [`spill`](Self::spill).
    pub(super) async fn drain(&mut self) -> Result<BufferedRuns, LsmError> {
        if self.spills.is_empty()
            && let Some(sorted) = self.take_sorted().await?
        {
            let mut memory = std::mem::take(&mut self.reserved);
            memory.extend(MergeMemory::of_free(&self.budget, 0).reservation);
            return Ok(BufferedRuns::Memory(Box::new(sorted.into_blocks(memory))));
        }
        let memory = match MergeMemory::for_all(&self.budget, self.spills.len() + 1) {
            Some(memory) => memory,
            None => {
                if !self.spills.is_empty() && self.env.disk.free() >= self.memory_bytes() {
                    self.spill_memory().await?;
                }
                MergeMemory::of_free(&self.budget, self.spills.len() + 1)
            }
        };
        let sorted = self.take_sorted().await?;
        let most = memory.fan_in - usize::from(sorted.is_some());
        let spills = std::mem::take(&mut self.spills);
        let spills = merge_spills(&self.env, &self.schema, &self.codec, spills, most, memory.fan_in).await?;
        let mut runs: Vec<KvStream> = spills
            .into_iter()
            .map(|spill| spill.open(&self.env, &self.schema, &self.codec))
            .collect();
        if let Some(sorted) = sorted {
            runs.push(sorted.into_stream(self.env.clone(), std::mem::take(&mut self.reserved)));
        }
        Ok(BufferedRuns::Streams(memory.held_by(runs)))
    }

    /// Sequence number, kind, values.
    fn records(&self, values: &RecordBatch, kinds: &[RowKind], first_sequence: i64) -> Result<RecordBatch, LsmError> {
        let rows = values.num_rows();
        if kinds.len() != rows {
            return Err(LsmError::Invalid(format!("{} row kinds for {rows} rows", kinds.len())));
        }
        let expected = self.schema.arrow.fields().iter().skip(2);
        if expected.len() != values.num_columns() {
            return Err(LsmError::Invalid(format!(
                "the table has {} columns, the batch has {}",
                expected.len(),
                values.num_columns()
            )));
        }
        for (field, (column, given)) in expected.zip(values.columns().iter().zip(values.schema_ref().fields())) {
            if field.name() != given.name() || field.data_type() != column.data_type() {
                return Err(LsmError::Invalid(format!(
                    "column {} of type {} is expected where the batch has {} of type {}",
                    field.name(),
                    field.data_type(),
                    given.name(),
                    column.data_type()
                )));
            }
            if !field.is_nullable() && column.null_count() > 0 {
                return Err(LsmError::Invalid(format!(
                    "cannot write null to non-null column({})",
                    field.name()
                )));
            }
        }
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(2 + values.num_columns());
        let last = first_sequence.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
        columns.push(Arc::new(Int64Array::from_iter_values(first_sequence..last)));
        columns.push(Arc::new(Int8Array::from_iter_values(
            kinds.iter().map(|&kind| kind as i8),
        )));
        columns.extend(values.columns().iter().map(Arc::clone));
        RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns).map_err(internal)
    }

    /// Takes over batches that are complete, with their keys.
    fn take_gathered(&mut self) -> Result<(), LsmError> {
        while let Some(records) = self.gathering.next_completed_batch() {
            let batch = KvBatch::new(&self.schema, records, &self.codec, RowLevels::All(BUFFER_LEVEL))?;
            self.batch_bytes += batch.memory_size() as u64;
            self.batches.push(batch);
        }
        Ok(())
    }

    /// Takes budget for what is in memory. `false`: there is not enough.
    fn reserve(&mut self) -> bool {
        let reserved: u64 = self.reserved.iter().map(Reservation::bytes).sum();
        let missing = self.memory_bytes().saturating_sub(reserved);
        if missing == 0 {
            return true;
        }
        let reservation = self
            .budget
            .try_reserve(missing.max(RESERVE_STEP))
            .or_else(|| self.budget.try_reserve(missing));
        let enough = reservation.is_some();
        self.reserved.extend(reservation);
        enough
    }

    /// Sorts what is in memory and takes it out; `None`: nothing is there.
    async fn take_sorted(&mut self) -> Result<Option<SortedRows>, LsmError> {
        self.gathering.finish_buffered_batch().map_err(internal)?;
        self.take_gathered()?;
        self.gathering = gathering(&self.schema);
        self.batch_bytes = 0;
        let batches = std::mem::take(&mut self.batches);
        if batches.is_empty() {
            return Ok(None);
        }
        let (order, codec) = (VersionOrder::new(&self.schema)?, self.codec.clone());
        let sorted = self.env.cpu(move || SortedRows::new(batches, &order, codec)).await??;
        Ok(Some(sorted))
    }
}

fn gathering(schema: &KvSchemaRef) -> BatchCoalescer {
    BatchCoalescer::new(Arc::clone(&schema.arrow), BATCH_ROWS)
}

/// Bytes that the rows of a batch need, without what else lies in their buffers.
fn sliced_size(records: &RecordBatch) -> usize {
    let columns = records.columns().iter();
    columns
        .map(|column| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX))
        .fold(0, usize::saturating_add)
}

fn internal(error: ArrowError) -> LsmError {
    LsmError::Format(FormatError::internal(format!("write buffer: {error}")))
}
