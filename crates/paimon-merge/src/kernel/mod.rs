//! What a block of versions becomes.

use arrow_array::RecordBatch;
use paimon_format::types::RowKind;

use crate::MergeError;
use crate::plan::{KeyGroups, RowRef};

/// Survivors in key order, one entry a surviving group.
#[derive(Debug, Default)]
pub struct MergedRows {
    /// Which row survives. `batch == sources.len()` means a row of `made`.
    pub rows: Vec<RowRef>,
    /// Its kind in the output.
    pub kinds: Vec<RowKind>,
    /// The group it came from.
    pub groups: Vec<u32>,
    /// Rows that the kernel computed, in the schema of the sources' `columns` (sequence number, kind, values).
    pub made: Option<RecordBatch>,
}

/// The columnar engine: one call a block. Writes, for each group, nothing or one position with its kind.
pub trait MergeKernel: Send {
    /// Merges every group of the block into `out`, which comes empty.
    ///
    /// Errors leave `out` and the kernel's state unspecified; nothing outside is changed.
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError>;
}
