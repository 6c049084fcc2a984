//! Filters on merged rows.

use std::fmt::Debug;

use arrow_array::{ArrayRef, BooleanArray};

use crate::LsmError;

/// A condition on value columns.
///
/// It is applied to merged rows, never before a merge: dropping the newest version of a key because it does not match would bring
/// an older one back. What may be skipped before merging are keys, see [`KeyRange`](paimon_format::kv::KeyRange).
pub trait RowFilter: Debug + Send + Sync {
    /// Positions in the table schema's fields that the condition looks at.
    fn columns(&self) -> &[usize];

    /// For each row whether it stays; null counts as no. `columns` are those of [`columns`](Self::columns), in that order.
    fn keep(&self, columns: &[ArrayRef]) -> Result<BooleanArray, LsmError>;
}
