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
        use crate::types::TypeKind as Kind;
        for data_type in &types {
            if let Kind::Variant
            | Kind::Blob
            | Kind::Vector(..)
            | Kind::Array(_)
            | Kind::Map(..)
            | Kind::Multiset(_)
            | Kind::Row(_) = data_type.kind
            {
                return Err(FormatError::unsupported(format!(
                    "a key column of type {:?}",
                    data_type.kind
                )));
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
            .map(|(left, right)| compare_values(left, right))
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

/// Values of one flat type.
fn compare_values(left: &Datum, right: &Datum) -> Ordering {
    match (left, right) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Less,
        (_, Datum::Null) => Ordering::Greater,
        (Datum::Boolean(a), Datum::Boolean(b)) => a.cmp(b),
        (Datum::Int8(a), Datum::Int8(b)) => a.cmp(b),
        (Datum::Int16(a), Datum::Int16(b)) => a.cmp(b),
        (Datum::Int32(a), Datum::Int32(b)) | (Datum::Date(a), Datum::Date(b)) | (Datum::Time(a), Datum::Time(b)) => {
            a.cmp(b)
        }
        (Datum::Int64(a), Datum::Int64(b)) => a.cmp(b),
        (Datum::Float32(a), Datum::Float32(b)) => float_order(f64::from(*a), f64::from(*b)),
        (Datum::Float64(a), Datum::Float64(b)) => float_order(*a, *b),
        (Datum::String(a), Datum::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Datum::Bytes(a), Datum::Bytes(b)) => a.cmp(b),
        (Datum::Decimal(a), Datum::Decimal(b)) => a.cmp(b),
        (Datum::Timestamp { millis: a, nanos: x }, Datum::Timestamp { millis: b, nanos: y }) => (a, x).cmp(&(b, y)),
        // Both were read with one type, and the constructor lets no other in.
        _ => Ordering::Equal,
    }
}

/// `Double.compare`.
fn float_order(left: f64, right: f64) -> Ordering {
    match (left.is_nan(), right.is_nan()) {
        (false, false) => left.total_cmp(&right),
        (left, right) => left.cmp(&right),
    }
}
