//! What a block of versions becomes.

mod assemble;
mod row;
mod versions;

use arrow_array::RecordBatch;
use paimon_format::types::RowKind;

use crate::MergeError;
use crate::plan::{KeyGroups, RowRef};

pub use assemble::{AssembleOptions, Assembler, Extras};
pub use row::{MergeFunction, Merged, RowEngine, RowKernel, value_index};
pub use versions::{ColumnValue, Version, Versions};

/// Survivors in key order, one entry a surviving group.
#[derive(Debug, Default)]
pub struct MergedRows {
    /// Which row survives. `batch == sources.len()` means a row of `made`.
    pub rows: Vec<RowRef>,
    /// Its kind in the output.
    pub kinds: Vec<RowKind>,
    /// The group it came from, ascending.
    pub groups: Vec<u32>,
    /// Rows that the kernel computed, in the schema of the sources' `columns` (sequence number, kind, values).
    pub made: Option<RecordBatch>,
}

impl MergedRows {
    /// Makes room for so many more survivors.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
        self.kinds.reserve(rows);
        self.groups.reserve(rows);
    }

    /// Appends the survivor of a group.
    #[inline]
    pub fn push(&mut self, row: RowRef, kind: RowKind, group: usize) {
        self.rows.push(row);
        self.kinds.push(kind);
        self.groups.push(group as u32);
    }

    /// Empties it, keeping its memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.kinds.clear();
        self.groups.clear();
        self.made = None;
    }
}

/// The columnar engine: one call a block. Writes, for each group, nothing or one position with its kind.
pub trait MergeKernel: Send {
    /// Merges every group of the block into `out`, which comes empty.
    ///
    /// Errors leave `out` and the kernel's state unspecified; nothing outside is changed.
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError>;
}

/// The kinds of all rows of a block.
pub(crate) struct Kinds<'a>(Vec<&'a [i8]>);

impl<'a> Kinds<'a> {
    pub(crate) fn of(groups: &KeyGroups<'a>) -> Self {
        Self(groups.sources.iter().map(|source| source.kinds()).collect())
    }

    /// The kind of a row. Constructors of batches have seen that kinds are valid.
    #[inline]
    pub(crate) fn get(&self, row: RowRef) -> RowKind {
        RowKind::from_byte(self.0[row.batch as usize][row.row as usize]).unwrap_or(RowKind::Insert)
    }
}
