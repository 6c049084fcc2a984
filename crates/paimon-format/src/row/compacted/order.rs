//! The order of compacted keys.

use std::cmp::Ordering;

use super::{Fields, Input};
use crate::FormatError;
use crate::row::section::{Place, place};
use crate::types::{DataType, TypeKind};

/// Compares compacted key rows field by field, ascending: nulls first, false before true, NaN highest and equal to itself, -0.0 below
/// 0.0, text and bytes by unsigned bytes. The order of [`KeyComparator`](crate::row::KeyComparator).
///
/// Source: `org.apache.paimon.data.serializer.RowCompactedSerializer#createSliceComparator`.
#[derive(Clone, Debug)]
pub struct CompactedKeyOrder {
    fields: Vec<Field>,
}

#[derive(Clone, Copy, Debug)]
enum Field {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Bytes,
    WideDecimal,
    WideTimestamp,
}

impl CompactedKeyOrder {
    /// For keys of these types. `Unsupported` for nested types, VARIANT, BLOB and VECTOR, which no key can have.
    pub fn new<'t>(types: impl IntoIterator<Item = &'t DataType>) -> Result<Self, FormatError> {
        let fields: Result<Vec<_>, _> = types.into_iter().map(Field::new).collect();
        Ok(Self { fields: fields? })
    }

    /// The order of two keys. `Corrupt` when one of them is no row of the types; bytes behind the last field do not count.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Result<Ordering, FormatError> {
        let arity = self.fields.len();
        let (mut a, mut b) = (Fields::new(a, arity)?, Fields::new(b, arity)?);
        for (i, field) in self.fields.iter().enumerate() {
            let order = match (a.is_null(i), b.is_null(i)) {
                (false, false) => field.compare(&mut a.values, &mut b.values)?,
                (a_null, b_null) => b_null.cmp(&a_null),
            };
            if order.is_ne() {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }
}

impl Field {
    fn new(data_type: &DataType) -> Result<Self, FormatError> {
        Ok(match data_type.kind {
            TypeKind::Boolean => Self::Boolean,
            TypeKind::TinyInt => Self::Int8,
            TypeKind::SmallInt => Self::Int16,
            TypeKind::Int | TypeKind::Date | TypeKind::Time(_) => Self::Int32,
            TypeKind::BigInt => Self::Int64,
            TypeKind::Float => Self::Float32,
            TypeKind::Double => Self::Float64,
            TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Binary(_) | TypeKind::VarBinary(_) => Self::Bytes,
            TypeKind::Decimal(..) | TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => {
                match place(data_type) {
                    Place::Plain => Self::Int64,
                    Place::WideDecimal => Self::WideDecimal,
                    Place::WideTimestamp => Self::WideTimestamp,
                }
            }
            TypeKind::Variant
            | TypeKind::Blob
            | TypeKind::Vector(..)
            | TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_) => {
                return Err(FormatError::unsupported(format!("a key column of type {data_type}")));
            }
        })
    }

    fn compare(self, a: &mut Input<'_>, b: &mut Input<'_>) -> Result<Ordering, FormatError> {
        Ok(match self {
            Self::Boolean => (a.fixed()? != [0]).cmp(&(b.fixed()? != [0])),
            Self::Int8 => i8::from_le_bytes(a.fixed()?).cmp(&i8::from_le_bytes(b.fixed()?)),
            Self::Int16 => i16::from_le_bytes(a.fixed()?).cmp(&i16::from_le_bytes(b.fixed()?)),
            Self::Int32 => i32::from_le_bytes(a.fixed()?).cmp(&i32::from_le_bytes(b.fixed()?)),
            Self::Int64 => i64::from_le_bytes(a.fixed()?).cmp(&i64::from_le_bytes(b.fixed()?)),
            Self::Float32 => {
                let (a, b) = (f32::from_le_bytes(a.fixed()?), f32::from_le_bytes(b.fixed()?));
                compare_floats(a.into(), b.into())
            }
            Self::Float64 => compare_floats(f64::from_le_bytes(a.fixed()?), f64::from_le_bytes(b.fixed()?)),
            Self::Bytes => a.bytes()?.cmp(b.bytes()?),
            Self::WideDecimal => a.decimal(Place::WideDecimal)?.cmp(&b.decimal(Place::WideDecimal)?),
            Self::WideTimestamp => a
                .timestamp(Place::WideTimestamp)?
                .cmp(&b.timestamp(Place::WideTimestamp)?),
        })
    }
}

/// Java's `Double.compare`: every NaN is one value, above all others.
fn compare_floats(a: f64, b: f64) -> Ordering {
    match (a.is_nan(), b.is_nan()) {
        (false, false) => a.total_cmp(&b),
        (a, b) => a.cmp(&b),
    }
}
