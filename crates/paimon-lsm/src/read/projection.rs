//! Which columns a read needs, and which it gives.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use paimon_format::FormatError;
use paimon_format::kv::{KvBatch, KvSchema, VALUE_OFFSET};

use crate::LsmError;

/// Maps what is read (key, sequence and helper columns included) to what was asked for. Columns are projected away only after
/// merging.
#[derive(Clone, Debug)]
pub struct ReadProjection {
    read: Arc<KvSchema>,
    /// Positions among a read batch's columns.
    output: Vec<usize>,
    schema: SchemaRef,
}

impl ReadProjection {
    /// A read of `wanted` (positions in `table.fields`, in output order) that must read `needed` besides.
    ///
    /// Errors: `Invalid` when a position is out of range.
    pub fn new(table: &KvSchema, wanted: &[usize], needed: &[usize]) -> Result<Self, LsmError> {
        let all: Vec<usize> = wanted.iter().chain(needed).copied().collect();
        let read = table.project(&all)?;
        let position = |&column: &usize| {
            table
                .fields
                .get(column)
                .and_then(|field| read.position(&field.name))
                .map(|position| position + VALUE_OFFSET)
                .ok_or_else(|| FormatError::internal(format!("column {column} is not read")))
        };
        let output = wanted.iter().map(position).collect::<Result<Vec<_>, _>>()?;
        let fields: Vec<_> = output.iter().map(|&column| read.arrow.field(column).clone()).collect();
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            read: Arc::new(read),
            output,
        })
    }

    /// What is read.
    pub fn read_schema(&self) -> &Arc<KvSchema> {
        &self.read
    }

    /// The output columns of a read batch, not copied.
    pub fn project(&self, batch: &KvBatch) -> Result<RecordBatch, LsmError> {
        let columns = self
            .output
            .iter()
            .filter_map(|&column| batch.columns.columns().get(column));
        let columns = columns.map(Arc::clone).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| FormatError::internal(format!("projecting a batch: {error}")).into())
    }
}
