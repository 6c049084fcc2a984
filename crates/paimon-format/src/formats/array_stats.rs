//! Statistics of columns by looking at all values, for formats whose files have none that Java reads.
//!
//! Source: `org.apache.paimon.format.SimpleStatsCollector`.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType as ArrowType, TimeUnit};

use super::ColumnStats;
use super::stats::Bounds;
use crate::error::FormatError;
use crate::types::Datum;

/// The statistics of one column, batch by batch. Nested columns have no bounds.
#[derive(Debug, Default)]
pub(super) struct ArrayStats {
    bounds: Bounds,
    null_count: i64,
}

impl ArrayStats {
    /// Adds values.
    pub(super) fn add(&mut self, array: &ArrayRef) -> Result<(), FormatError> {
        self.null_count += array.null_count() as i64;
        if let Some((min, max)) = extremes(array) {
            self.bounds
                .widen(Datum::from_array(array, min)?, Datum::from_array(array, max)?);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> ColumnStats {
        ColumnStats {
            bounds: self.bounds.into_option(),
            null_count: Some(self.null_count),
        }
    }
}

/// The rows of the smallest and the largest value; `None`: there is none, or no order.
fn extremes(array: &ArrayRef) -> Option<(usize, usize)> {
    match array.data_type() {
        ArrowType::Boolean => {
            let values = array.as_boolean();
            by(array, |a, b| values.value(a).cmp(&values.value(b)))
        }
        ArrowType::Int8 => primitive::<Int8Type>(array, |a, b| a.cmp(&b)),
        ArrowType::Int16 => primitive::<Int16Type>(array, |a, b| a.cmp(&b)),
        ArrowType::Int32 => primitive::<Int32Type>(array, |a, b| a.cmp(&b)),
        ArrowType::Int64 => primitive::<Int64Type>(array, |a, b| a.cmp(&b)),
        ArrowType::Date32 => primitive::<Date32Type>(array, |a, b| a.cmp(&b)),
        ArrowType::Time32(TimeUnit::Millisecond) => primitive::<Time32MillisecondType>(array, |a, b| a.cmp(&b)),
        ArrowType::Decimal128(..) => primitive::<Decimal128Type>(array, |a, b| a.cmp(&b)),
        // Java's order: every NaN is the same and the largest.
        ArrowType::Float32 => primitive::<Float32Type>(array, |a, b| Datum::Float32(a).compare(&Datum::Float32(b))),
        ArrowType::Float64 => primitive::<Float64Type>(array, |a, b| Datum::Float64(a).compare(&Datum::Float64(b))),
        ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
            primitive::<TimestampMillisecondType>(array, |a, b| a.cmp(&b))
        }
        ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
            primitive::<TimestampMicrosecondType>(array, |a, b| a.cmp(&b))
        }
        ArrowType::Timestamp(TimeUnit::Nanosecond, _) => primitive::<TimestampNanosecondType>(array, |a, b| a.cmp(&b)),
        ArrowType::Utf8 => {
            let values = array.as_string::<i32>();
            by(array, |a, b| values.value(a).cmp(values.value(b)))
        }
        ArrowType::Binary => {
            let values = array.as_binary::<i32>();
            by(array, |a, b| values.value(a).cmp(values.value(b)))
        }
        _ => None,
    }
}

fn primitive<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    compare: impl Fn(T::Native, T::Native) -> Ordering,
) -> Option<(usize, usize)> {
    let values = array.as_primitive_opt::<T>()?;
    by(array, |a, b| compare(values.value(a), values.value(b)))
}

fn by(array: &ArrayRef, compare: impl Fn(usize, usize) -> Ordering) -> Option<(usize, usize)> {
    let mut rows = (0..array.len()).filter(|&row| array.is_valid(row));
    let first = rows.next()?;
    Some(rows.fold((first, first), |(min, max), row| {
        (
            if compare(row, min) == Ordering::Less { row } else { min },
            if compare(row, max) == Ordering::Greater {
                row
            } else {
                max
            },
        )
    }))
}
