//! Smallest and largest values of column chunks and pages, as values of the column's type.

use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::statistics::Statistics;

use crate::types::{Datum, TypeKind};

/// The bounds of a chunk as values of the column's type.
pub(super) fn chunk_bounds(kind: &TypeKind, chunk: &Statistics) -> Option<(Datum, Datum)> {
    match chunk {
        Statistics::Boolean(values) => Some((Datum::Boolean(*values.min_opt()?), Datum::Boolean(*values.max_opt()?))),
        Statistics::Int32(values) => Some((int(kind, *values.min_opt()?)?, int(kind, *values.max_opt()?)?)),
        Statistics::Int64(values) => Some((long(kind, *values.min_opt()?)?, long(kind, *values.max_opt()?)?)),
        Statistics::Float(values) => Some((Datum::Float32(*values.min_opt()?), Datum::Float32(*values.max_opt()?))),
        Statistics::Double(values) => Some((Datum::Float64(*values.min_opt()?), Datum::Float64(*values.max_opt()?))),
        Statistics::ByteArray(values) => Some((
            bytes(kind, values.min_opt()?.data())?,
            bytes(kind, values.max_opt()?.data())?,
        )),
        Statistics::FixedLenByteArray(values) => {
            Some((decimal(values.min_opt()?.data())?, decimal(values.max_opt()?.data())?))
        }
        Statistics::Int96(_) => None,
    }
}

/// The bounds of a page as values of the column's type.
pub(super) fn page_bounds(kind: &TypeKind, index: &ColumnIndexMetaData, page: usize) -> Option<(Datum, Datum)> {
    use ColumnIndexMetaData as Index;
    match index {
        Index::BOOLEAN(index) => Some((
            Datum::Boolean(*index.min_value(page)?),
            Datum::Boolean(*index.max_value(page)?),
        )),
        Index::INT32(index) => Some((int(kind, *index.min_value(page)?)?, int(kind, *index.max_value(page)?)?)),
        Index::INT64(index) => Some((
            long(kind, *index.min_value(page)?)?,
            long(kind, *index.max_value(page)?)?,
        )),
        Index::FLOAT(index) => Some((
            Datum::Float32(*index.min_value(page)?),
            Datum::Float32(*index.max_value(page)?),
        )),
        Index::DOUBLE(index) => Some((
            Datum::Float64(*index.min_value(page)?),
            Datum::Float64(*index.max_value(page)?),
        )),
        Index::BYTE_ARRAY(index) => Some((
            bytes(kind, index.min_value(page)?)?,
            bytes(kind, index.max_value(page)?)?,
        )),
        Index::FIXED_LEN_BYTE_ARRAY(index) => {
            Some((decimal(index.min_value(page)?)?, decimal(index.max_value(page)?)?))
        }
        Index::INT96(_) | Index::NONE => None,
    }
}

fn int(kind: &TypeKind, value: i32) -> Option<Datum> {
    match kind {
        TypeKind::TinyInt => i8::try_from(value).ok().map(Datum::Int8),
        TypeKind::SmallInt => i16::try_from(value).ok().map(Datum::Int16),
        TypeKind::Int => Some(Datum::Int32(value)),
        TypeKind::Date => Some(Datum::Date(value)),
        TypeKind::Time(_) => Some(Datum::Time(value)),
        TypeKind::Decimal(..) => Some(Datum::Decimal(value.into())),
        _ => None,
    }
}

fn long(kind: &TypeKind, value: i64) -> Option<Datum> {
    match kind {
        TypeKind::BigInt => Some(Datum::Int64(value)),
        TypeKind::Decimal(..) => Some(Datum::Decimal(value.into())),
        TypeKind::Timestamp(0..=3) | TypeKind::LocalZonedTimestamp(0..=3) => Some(Datum::Timestamp {
            millis: value,
            nanos: 0,
        }),
        TypeKind::Timestamp(4..=6) | TypeKind::LocalZonedTimestamp(4..=6) => Some(Datum::Timestamp {
            millis: value.div_euclid(1000),
            nanos: i32::try_from(value.rem_euclid(1000)).ok()? * 1000,
        }),
        _ => None,
    }
}

fn bytes(kind: &TypeKind, value: &[u8]) -> Option<Datum> {
    match kind {
        TypeKind::Char(_) | TypeKind::VarChar(_) => String::from_utf8(value.to_vec()).ok().map(Datum::String),
        TypeKind::Binary(_) | TypeKind::VarBinary(_) => Some(Datum::Bytes(value.to_vec())),
        _ => None,
    }
}

/// A big-endian two's complement number of at most 16 bytes.
fn decimal(bytes: &[u8]) -> Option<Datum> {
    let mut wide = [if bytes.first()? & 0x80 == 0 { 0 } else { 0xff }; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    Some(Datum::Decimal(i128::from_be_bytes(wide)))
}
