//! One value of any Paimon type: how it compares. `array` moves values from and to Arrow, `text` from and to text.

mod array;
pub(crate) mod hex;
mod json;
pub(crate) mod number;
mod serialized;
pub(crate) mod temporal;
pub(crate) mod text;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

pub(crate) use array::build_array;
pub use array::{array_from_datums, canonical_nan};

/// One owned value: partition values, key bounds, literals, and rows of the row-wise merge functions.
///
/// The variant follows the type's physical form, not its SQL name: CHAR, VARCHAR are `String`; BINARY, VARBINARY are `Bytes`.
/// `PartialEq` is Java's: NaN equals NaN, and -0.0 differs from 0.0.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Datum {
    /// SQL NULL.
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// TINYINT
    Int8(i8),
    /// SMALLINT
    Int16(i16),
    /// INT
    Int32(i32),
    /// BIGINT
    Int64(i64),
    /// FLOAT
    Float32(#[serde(with = "serialized::decimal")] f32),
    /// DOUBLE
    Float64(#[serde(with = "serialized::decimal")] f64),
    /// CHAR, VARCHAR
    String(String),
    /// BINARY, VARBINARY
    Bytes(#[serde(with = "serialized::hex")] Vec<u8>),
    /// DECIMAL: the unscaled value; precision and scale are the type's
    Decimal(#[serde(with = "serialized::decimal")] i128),
    /// DATE: days since the epoch
    Date(i32),
    /// TIME: milliseconds of the day
    Time(i32),
    /// TIMESTAMP with or without local time zone: `millis` since the epoch (floored), plus 0..=999_999 nanoseconds
    Timestamp {
        /// Milliseconds since the epoch.
        millis: i64,
        /// Nanoseconds within the millisecond.
        nanos: i32,
    },
    /// VARIANT
    Variant {
        /// The value bytes.
        #[serde(with = "serialized::hex")]
        value: Vec<u8>,
        /// The metadata bytes.
        #[serde(with = "serialized::hex")]
        metadata: Vec<u8>,
    },
    /// ARRAY
    Array(Vec<Datum>),
    /// MAP, and MULTISET as element to count
    Map(Vec<(Datum, Datum)>),
    /// ROW
    Row(Vec<Datum>),
}

impl Datum {
    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Java's order of two values of one type: nulls first, false before true, every NaN last and equal, -0.0 before 0.0, strings
    /// and binary by unsigned bytes, decimals of one scale by number. Arrays, maps and rows, which Java does not order, go part by part.
    ///
    /// Values of different types (a fault of the caller) order by type.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Null, Self::Null) => Ordering::Equal,
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            (Self::Int8(a), Self::Int8(b)) => a.cmp(b),
            (Self::Int16(a), Self::Int16(b)) => a.cmp(b),
            (Self::Int32(a), Self::Int32(b)) | (Self::Date(a), Self::Date(b)) | (Self::Time(a), Self::Time(b)) => {
                a.cmp(b)
            }
            (Self::Int64(a), Self::Int64(b)) => a.cmp(b),
            (Self::Float32(a), Self::Float32(b)) => compare_f64((*a).into(), (*b).into()),
            (Self::Float64(a), Self::Float64(b)) => compare_f64(*a, *b),
            (Self::String(a), Self::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::Decimal(a), Self::Decimal(b)) => a.cmp(b),
            (Self::Timestamp { millis: a, nanos: a1 }, Self::Timestamp { millis: b, nanos: b1 }) => {
                (a, a1).cmp(&(b, b1))
            }
            (Self::Variant { value: a, metadata: a1 }, Self::Variant { value: b, metadata: b1 }) => {
                (a, a1).cmp(&(b, b1))
            }
            (Self::Array(a), Self::Array(b)) | (Self::Row(a), Self::Row(b)) => compare_parts(a, b, Self::compare),
            (Self::Map(a), Self::Map(b)) => compare_parts(a, b, |(key, value), (other_key, other_value)| {
                key.compare(other_key).then_with(|| value.compare(other_value))
            }),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::Int8(_) => 2,
            Self::Int16(_) => 3,
            Self::Int32(_) => 4,
            Self::Int64(_) => 5,
            Self::Float32(_) => 6,
            Self::Float64(_) => 7,
            Self::String(_) => 8,
            Self::Bytes(_) => 9,
            Self::Decimal(_) => 10,
            Self::Date(_) => 11,
            Self::Time(_) => 12,
            Self::Timestamp { .. } => 13,
            Self::Variant { .. } => 14,
            Self::Array(_) => 15,
            Self::Map(_) => 16,
            Self::Row(_) => 17,
        }
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Eq for Datum {}

impl PartialOrd for Datum {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datum {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other)
    }
}

/// `java.lang.Double.compare`.
fn compare_f64(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a, b) => a.cmp(&b),
    }
}

fn compare_parts<T>(a: &[T], b: &[T], compare: impl Fn(&T, &T) -> Ordering) -> Ordering {
    let parts = a.iter().zip(b).map(|(a, b)| compare(a, b));
    let first_difference = parts.into_iter().find(|order| order.is_ne());
    first_difference.unwrap_or_else(|| a.len().cmp(&b.len()))
}

#[cfg(test)]
pub(crate) mod tests;
