//! File statistics from the statistics of column chunks.
//!
//! Source: `org.apache.paimon.format.parquet.ParquetSimpleStatsExtractor`.

use parquet::file::statistics::Statistics;

use crate::formats::ColumnStats;
use crate::formats::stats::Bounds;
use crate::types::{Datum, TypeKind};

/// The statistics of one top-level column, row group by row group.
pub(super) struct LeafStats {
    kind: TypeKind,
    bounds: Bounds,
    null_count: i64,
}

impl LeafStats {
    pub(super) fn new(kind: &TypeKind) -> Self {
        Self {
            kind: kind.clone(),
            bounds: Bounds::Empty,
            null_count: 0,
        }
    }

    /// Adds a column chunk. `nan`: it has a NaN, which the chunk's own bounds leave out and Java puts above all.
    pub(super) fn add(&mut self, chunk: Option<&Statistics>, nan: bool) {
        let Some(chunk) = chunk else {
            self.bounds = Bounds::Unknown;
            return;
        };
        self.add_nulls(
            chunk
                .null_count_opt()
                .and_then(|count| usize::try_from(count).ok())
                .unwrap_or(0),
        );
        let largest = match chunk {
            Statistics::Float(_) if nan => Some(Datum::Float32(f32::NAN)),
            Statistics::Double(_) if nan => Some(Datum::Float64(f64::NAN)),
            _ => None,
        };
        match (bounds(&self.kind, chunk), largest) {
            (Some((min, max)), largest) => self.bounds.widen(min, largest.unwrap_or(max)),
            (None, Some(nan)) => self.bounds.widen(nan.clone(), nan),
            // All null: nothing to widen by.
            (None, None) if chunk.min_bytes_opt().is_none() => {}
            (None, None) => self.bounds = Bounds::Unknown,
        }
    }

    /// Adds a column chunk of which only the nulls are known.
    pub(super) fn add_nulls(&mut self, count: usize) {
        self.null_count = self.null_count.saturating_add(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Nested columns have no statistics at all.
    pub(super) fn finish(self) -> ColumnStats {
        match self.kind {
            TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Multiset(_)
            | TypeKind::Row(_)
            | TypeKind::Variant
            | TypeKind::Vector(..) => ColumnStats::default(),
            _ => ColumnStats {
                bounds: self.bounds.into_option(),
                null_count: Some(self.null_count),
            },
        }
    }
}

/// The bounds of a chunk as values of the column's type.
fn bounds(kind: &TypeKind, chunk: &Statistics) -> Option<(Datum, Datum)> {
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
