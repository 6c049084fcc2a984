//! Records that wait in memory.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use arrow_select::coalesce::BatchCoalescer;
use paimon_format::FormatError;
use paimon_format::env::{Budget, Reservation};
use paimon_format::kv::{KeyCodec, KvBatch, KvSchemaRef, RowLevels};
use paimon_format::types::RowKind;

use crate::LsmError;

/// Budget is taken in steps of this, bytes: Java's `page-size`. A writer with few rows must not hold what many others need.
const RESERVE_STEP: u64 = 64 << 10;
/// The level of a record that is in no file yet.
pub(super) const BUFFER_LEVEL: i32 = -1;

/// Records of one bucket in order of arrival, by columns, counted by a budget that the writers of a table may share.
#[derive(Debug)]
pub struct RecordBuffer {
    schema: KvSchemaRef,
    codec: KeyCodec,
    budget: Budget,
    batch_rows: usize,
    /// The last, small batches.
    gathering: BatchCoalescer,
    batches: Vec<KvBatch>,
    batch_bytes: u64,
    reserved: Vec<Reservation>,
    reserved_bytes: u64,
}

/// Records that left their buffer, in order of arrival.
#[derive(Debug)]
pub struct Records {
    /// Batches.
    pub batches: Vec<KvBatch>,
    /// Their memory: given back on drop.
    pub reserved: Vec<Reservation>,
}

impl RecordBuffer {
    /// An empty buffer. Small batches are gathered to batches of `batch_rows` rows, for which there is memory from the first row on.
    ///
    /// Errors: `Unsupported` when a key column's type has no order.
    pub fn new(schema: KvSchemaRef, budget: Budget, batch_rows: usize) -> Result<Self, LsmError> {
        Ok(Self {
            codec: KeyCodec::new(&schema)?,
            gathering: gathering(&schema, batch_rows),
            schema,
            budget,
            batch_rows,
            batches: Vec::new(),
            batch_bytes: 0,
            reserved: Vec::new(),
            reserved_bytes: 0,
        })
    }

    /// Reads the keys of its records.
    pub(super) fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// What its records are counted by.
    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The columns of its records.
    pub(super) fn schema(&self) -> &KvSchemaRef {
        &self.schema
    }

    /// Whether no record is in it.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.gathering.get_buffered_rows() == 0
    }

    /// Bytes in memory.
    pub fn memory_bytes(&self) -> u64 {
        match self.gathering.get_buffered_rows() {
            0 => self.batch_bytes,
            _ => self.batch_bytes + self.gathering.size() as u64,
        }
    }

    /// Takes records: the table's columns, a kind and a sequence number a row. Returns whether there was budget for all of it: if not, the
    /// buffer should be [emptied](Self::take) before more comes.
    ///
    /// Errors: `Invalid`, naming the column, when the columns are not those of the schema or not as many as the kinds; the
    /// buffer is unchanged then.
    pub fn push(&mut self, values: &RecordBatch, kinds: &[RowKind], sequence: Int64Array) -> Result<bool, LsmError> {
        let records = self.records(values, kinds, sequence)?;
        // A batch that is large in rows and not a small part of something larger is kept as it is.
        let own = records.get_array_memory_size() <= 2 * sliced_size(&records);
        self.gathering
            .set_biggest_coalesce_batch_size(own.then_some(self.batch_rows / 2));
        self.gathering.push_batch(records).map_err(internal)?;
        self.take_gathered()?;
        Ok(self.reserve())
    }

    /// Hands out all records, with their memory, and begins anew.
    ///
    /// Errors: `Internal`.
    pub fn take(&mut self) -> Result<Records, LsmError> {
        self.gathering.finish_buffered_batch().map_err(internal)?;
        self.take_gathered()?;
        self.gathering = gathering(&self.schema, self.batch_rows);
        (self.batch_bytes, self.reserved_bytes) = (0, 0);
        Ok(Records {
            batches: std::mem::take(&mut self.batches),
            reserved: std::mem::take(&mut self.reserved),
        })
    }

    /// Refuses what [`push`](Self::push) would.
    ///
    /// Errors: its `Invalid`.
    pub(super) fn check(&self, values: &RecordBatch, kinds: &[RowKind]) -> Result<(), LsmError> {
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
        Ok(())
    }

    /// Sequence number, kind, values.
    fn records(&self, values: &RecordBatch, kinds: &[RowKind], sequence: Int64Array) -> Result<RecordBatch, LsmError> {
        self.check(values, kinds)?;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(2 + values.num_columns());
        columns.push(Arc::new(sequence));
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
        let missing = self.memory_bytes().saturating_sub(self.reserved_bytes);
        if missing == 0 {
            return true;
        }
        let reservation = self
            .budget
            .try_reserve(missing.max(RESERVE_STEP))
            .or_else(|| self.budget.try_reserve(missing));
        let Some(reservation) = reservation else {
            return false;
        };
        self.reserved_bytes += reservation.bytes();
        self.reserved.push(reservation);
        true
    }
}

fn gathering(schema: &KvSchemaRef, batch_rows: usize) -> BatchCoalescer {
    BatchCoalescer::new(Arc::clone(&schema.arrow), batch_rows)
}

/// Bytes that the rows of a batch need, without what else lies in their buffers.
fn sliced_size(records: &RecordBatch) -> usize {
    let columns = records.columns().iter();
    columns
        .map(|column| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX))
        .fold(0, usize::saturating_add)
}

pub(super) fn internal(error: ArrowError) -> LsmError {
    LsmError::Format(FormatError::internal(format!("write buffer: {error}")))
}
