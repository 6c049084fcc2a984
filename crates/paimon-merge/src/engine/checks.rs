//! Which rows no merge could take.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::types::RowKind;

use crate::MergeError;
use crate::aggregate::ValueCheck;

/// Why rows cannot be taken back from a column.
#[derive(Clone, Debug)]
pub(super) struct NoWayBack {
    /// A -U passes: its +U follows.
    pub(super) deletes_only: bool,
    /// The reason, with the option that would allow it.
    pub(super) why: String,
}

impl NoWayBack {
    /// Whether it holds for rows of a kind.
    pub(super) fn holds(&self, kind: RowKind) -> bool {
        kind == RowKind::Delete || (kind == RowKind::UpdateBefore && !self.deletes_only)
    }
}

/// A column that does not take any value.
#[derive(Clone, Debug)]
pub(super) struct CheckedColumn {
    /// Its position in the table's fields.
    pub(super) position: usize,
    pub(super) check: Arc<dyn ValueCheck>,
}

impl CheckedColumn {
    /// Refuses a row for its value in this column. `rows`: the table's columns.
    ///
    /// Errors: `Value`, naming the column.
    pub(super) fn check(&self, rows: &RecordBatch, row: usize) -> Result<(), MergeError> {
        let values = rows.columns().get(self.position);
        values.map_or(Ok(()), |values| self.check.check(values, row))
    }
}
