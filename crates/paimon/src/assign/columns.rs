//! Some columns of the table.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use paimon_format::types::DataType;

use crate::error::{Error, Result};
use crate::table::Table;

/// Some columns of the table, by position, with their types.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    pub(crate) positions: Vec<usize>,
    pub(crate) types: Vec<DataType>,
}

impl Columns {
    pub(crate) fn new(table: &Table, positions: Vec<usize>) -> Self {
        Self {
            types: table.types_of(&positions),
            positions,
        }
    }

    /// These columns of a batch of the table's columns.
    pub(crate) fn of(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let columns = self
            .positions
            .iter()
            .map(|&position| batch.columns().get(position).map(Arc::clone));
        columns
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::internal("a batch without the table's columns"))
    }
}
