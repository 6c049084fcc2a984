//! Rows with kinds.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use paimon_format::types::RowKind;
use serde::{Deserialize, Serialize};

use super::read::SplitRows;
use crate::error::{Error, Result};

/// Changes of one snapshot.
#[derive(Clone, Debug)]
pub struct ChangelogBatch {
    /// The snapshot that they came with.
    pub snapshot_id: i64,
    /// The columns asked for, in the order asked for.
    pub columns: RecordBatch,
    /// The byte of each row's [`RowKind`].
    pub kinds: Int8Array,
    /// Where a reader that has these rows goes on.
    pub position: StreamPosition,
}

/// Where a reader of changes goes on: plain data, to be kept with whatever the reader made of the rows before.
///
/// It holds for the same table, columns and filter. A reader that goes on from here gets every row after it, and none before it,
/// exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPosition {
    /// The snapshot to read.
    pub snapshot: i64,
    /// All its rows, not its changes.
    pub full: bool,
    /// Splits of it that are done.
    pub splits: usize,
    /// Rows of the next split that are done.
    pub rows: u64,
}

impl StreamPosition {
    /// Before the changes of a snapshot, which may be yet to come.
    pub fn changes_of(snapshot: i64) -> Self {
        Self {
            snapshot,
            full: false,
            splits: 0,
            rows: 0,
        }
    }

    /// Before all rows of a snapshot.
    pub fn rows_of(snapshot: i64) -> Self {
        Self {
            full: true,
            ..Self::changes_of(snapshot)
        }
    }

    /// The snapshot from which on a reader finds all that it has not seen by reading changes alone; `None` in the midst of a full
    /// read. What a consumer file holds.
    pub fn next_snapshot(&self) -> Option<i64> {
        (!self.full).then_some(self.snapshot)
    }

    /// After rows of a split.
    pub(super) fn advance(&mut self, split: usize, rows: usize) {
        if split != self.splits {
            (self.splits, self.rows) = (split, 0);
        }
        self.rows += rows as u64;
    }
}

impl ChangelogBatch {
    /// The column that [`audit_log`](Self::audit_log) puts first.
    pub const ROW_KIND: &'static str = "rowkind";

    /// Rows after which a reader stands at this position.
    pub(super) fn new(position: StreamPosition, rows: SplitRows) -> Self {
        Self {
            snapshot_id: position.snapshot,
            columns: rows.columns,
            kinds: rows.kinds,
            position,
        }
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kinds, in the order of the rows.
    pub fn row_kinds(&self) -> impl Iterator<Item = RowKind> + '_ {
        // Readers of files let no other byte pass.
        let kinds = self.kinds.values().iter();
        kinds.map(|&kind| RowKind::from_byte(kind).unwrap_or(RowKind::Insert))
    }

    /// The rows with a column `rowkind` in front: `+I`, `-U`, `+U` or `-D`. The other columns are not copied.
    ///
    /// Errors: `Internal` when Arrow refuses the batch. Source: `org.apache.paimon.table.system.AuditLogTable`.
    pub fn audit_log(&self) -> Result<RecordBatch> {
        let kinds = StringArray::from_iter_values(self.row_kinds().map(RowKind::short_string));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(kinds)];
        columns.extend(self.columns.columns().iter().map(Arc::clone));
        let options = RecordBatchOptions::new().with_row_count(Some(self.len()));
        let schema = audit_log_schema(&self.columns.schema());
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(Error::from)
    }
}

/// The schema of [`ChangelogBatch::audit_log`].
fn audit_log_schema(columns: &Schema) -> SchemaRef {
    let kind = Arc::new(Field::new(ChangelogBatch::ROW_KIND, DataType::Utf8, false));
    let fields = std::iter::once(kind).chain(columns.fields().iter().map(Arc::clone));
    Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        columns.metadata().clone(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_counts_rows_of_its_split() {
        let mut position = StreamPosition::changes_of(3);
        position.advance(0, 5);
        position.advance(0, 2);
        assert_eq!((position.splits, position.rows), (0, 7));
        position.advance(2, 1);
        assert_eq!((position.splits, position.rows), (2, 1));
        assert_eq!(position.next_snapshot(), Some(3));
        assert_eq!(StreamPosition::rows_of(3).next_snapshot(), None);
    }
}
