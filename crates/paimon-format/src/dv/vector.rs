//! The deleted rows of one file.

use std::ops::Range;

use roaring::RoaringTreemap;

/// A set of row positions of one data file: rows are counted from 0, as they lie in the file.
///
/// Source: `org.apache.paimon.deletionvectors.DeletionVector`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletionVector {
    pub(super) rows: RoaringTreemap,
}

impl DeletionVector {
    /// No row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row. `false`: it was deleted already.
    pub fn insert(&mut self, row: u64) -> bool {
        self.rows.insert(row)
    }

    /// Adds the rows of another one. `false`: all of them were deleted already.
    pub fn merge(&mut self, other: &Self) -> bool {
        let before = self.cardinality();
        self.rows |= &other.rows;
        self.cardinality() > before
    }

    /// Whether a row is deleted.
    pub fn contains(&self, row: u64) -> bool {
        self.rows.contains(row)
    }

    /// The deleted rows among these, ascending.
    pub fn range(&self, rows: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut deleted = self.rows.iter();
        deleted.advance_to(rows.start);
        deleted.take_while(move |&row| row < rows.end)
    }

    /// All deleted rows, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter()
    }

    /// The last deleted row.
    pub fn max(&self) -> Option<u64> {
        self.rows.max()
    }

    /// How many rows are deleted.
    pub fn cardinality(&self) -> u64 {
        self.rows.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl FromIterator<u64> for DeletionVector {
    fn from_iter<T: IntoIterator<Item = u64>>(rows: T) -> Self {
        Self {
            rows: rows.into_iter().collect(),
        }
    }
}

impl<const N: usize> From<[u64; N]> for DeletionVector {
    fn from(rows: [u64; N]) -> Self {
        rows.into_iter().collect()
    }
}
