//! Java's order of key rows.

use std::cmp::Ordering;

use super::BinaryRow;
use crate::FormatError;
use crate::types::{DataType, Datum};

/// Compares key rows field by field, ascending, as Java's generated comparators do: nulls first, NaN highest and equal to itself,
/// -0.0 below 0.0, text and bytes by unsigned bytes.
///
/// Source: `org.apache.paimon.codegen.GenerateUtils#generateCompare`.
#[derive(Clone, Debug)]
pub struct KeyComparator {
    types: Vec<DataType>,
}

impl KeyComparator {
    /// For rows with these fields. `Unsupported` for nested types, VARIANT, BLOB and VECTOR, which no key can have.
    pub fn new(types: Vec<DataType>) -> Result<Self, FormatError> {
        for data_type in &types {
            if !data_type.kind.is_flat() {
                return Err(FormatError::unsupported(format!("a key column of type {data_type}")));
            }
        }
        Ok(Self { types })
    }

    /// The order of two keys. Errors as [`BinaryRow::to_datums`].
    pub fn compare(&self, left: &BinaryRow, right: &BinaryRow) -> Result<Ordering, FormatError> {
        let (left, right) = (left.to_datums(&self.types)?, right.to_datums(&self.types)?);
        Ok(left
            .iter()
            .zip(&right)
            .map(|(left, right)| left.compare(right))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal))
    }

    /// A key's values, whose order (of [`Datum`], field by field) is that of the keys: for comparing a key many times.
    /// Errors as [`BinaryRow::to_datums`].
    pub fn key(&self, row: &BinaryRow) -> Result<Vec<Datum>, FormatError> {
        row.to_datums(&self.types)
    }

    /// Whether two closed ranges share a key. Errors as [`BinaryRow::to_datums`].
    pub fn overlap(
        &self,
        (left_min, left_max): (&BinaryRow, &BinaryRow),
        (right_min, right_max): (&BinaryRow, &BinaryRow),
    ) -> Result<bool, FormatError> {
        Ok(self.compare(left_min, right_max)?.is_le() && self.compare(right_min, left_max)?.is_le())
    }
}
