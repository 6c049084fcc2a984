//! Decoded columns made into the columns that a schema promises: same values, the schema's names, nullability and time zones.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, make_array, new_null_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType as ArrowType, Field, TimeUnit};

/// `array` with the type `to`. Buffers are shared, except where a physical type differs and a lossless cast is done.
///
/// The error says what the file holds, without naming file or column.
#[cfg(feature = "parquet")]
pub(super) fn adapt(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, String> {
    convert(array, to, false)
}

/// As `adapt`; timestamps may also become coarser ones, if none of them has a fraction that is lost: ORC has one unit for all.
#[cfg(feature = "orc")]
pub(super) fn adapt_exact(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, String> {
    convert(array, to, true)
}

#[cfg(any(feature = "parquet", feature = "orc"))]
fn convert(array: &ArrayRef, to: &ArrowType, coarser: bool) -> Result<ArrayRef, String> {
    let from = array.data_type();
    if from == to {
        return Ok(Arc::clone(array));
    }
    match (from, to) {
        (ArrowType::List(_), ArrowType::List(element)) => {
            let list = array.as_list::<i32>();
            let values = convert(list.values(), element.data_type(), coarser)?;
            let made = ListArray::try_new(
                Arc::clone(element),
                list.offsets().clone(),
                values,
                list.nulls().cloned(),
            );
            made.map(|list| Arc::new(list) as ArrayRef)
                .map_err(|error| error.to_string())
        }
        (ArrowType::Map(..), ArrowType::Map(entries, _)) => {
            let map = array.as_map();
            let ArrowType::Struct(wanted) = entries.data_type() else {
                return Err(format!("{to} is no map"));
            };
            let columns = [map.keys(), map.values()].into_iter().zip(wanted);
            let columns = columns.map(|(column, field)| convert(column, field.data_type(), coarser));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let pairs = StructArray::try_new(wanted.clone(), columns, None).map_err(|error| error.to_string())?;
            let made = MapArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                pairs,
                map.nulls().cloned(),
                false,
            );
            made.map(|map| Arc::new(map) as ArrayRef)
                .map_err(|error| error.to_string())
        }
        (ArrowType::Struct(_), ArrowType::Struct(fields)) => {
            let row = array.as_struct();
            let columns = fields.iter().map(|field| match row.column_by_name(field.name()) {
                Some(column) => convert(column, field.data_type(), coarser)
                    .map_err(|error| format!("field {}: {error}", field.name())),
                None => absent(field, row.len()),
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let made = StructArray::try_new_with_length(fields.clone(), columns, row.nulls().cloned(), row.len());
            made.map(|row| Arc::new(row) as ArrayRef)
                .map_err(|error| error.to_string())
        }
        // A time zone is a note on the same instants: casts would move them.
        (ArrowType::Timestamp(from_unit, zone), ArrowType::Timestamp(unit, _)) if ticks(*from_unit) <= ticks(*unit) => {
            let array = cast(array, &ArrowType::Timestamp(*unit, zone.clone()))?;
            let data = array.to_data().into_builder().data_type(to.clone()).build();
            data.map(make_array).map_err(|error| error.to_string())
        }
        (ArrowType::Timestamp(_, zone), ArrowType::Timestamp(unit, _)) if coarser => {
            let made = cast(array, &ArrowType::Timestamp(*unit, zone.clone()))?;
            if cast(&made, from)?.to_data() != array.to_data() {
                return Err(format!("it holds finer times than {to}"));
            }
            convert(&made, to, coarser)
        }
        _ if is_lossless(from, to) => cast(array, to),
        _ => Err(format!("it holds {from}, where the schema says {to}")),
    }
}

#[cfg(any(feature = "parquet", feature = "orc"))]
fn cast(array: &ArrayRef, to: &ArrowType) -> Result<ArrayRef, String> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, to, &options).map_err(|error| error.to_string())
}

/// A column that a file does not have.
pub(super) fn absent(field: &Field, rows: usize) -> Result<ArrayRef, String> {
    if field.is_nullable() {
        Ok(new_null_array(field.data_type(), rows))
    } else {
        Err(format!("there is no column {}, which must not be null", field.name()))
    }
}

#[cfg(any(feature = "parquet", feature = "orc"))]
/// Whether a cast between flat types keeps every value, or fails on one that does not fit.
fn is_lossless(from: &ArrowType, to: &ArrowType) -> bool {
    use ArrowType::{
        Binary, Date32, Decimal128, FixedSizeBinary, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, Time32, Utf8,
    };
    match (from, to) {
        // Files of other engines may lack the annotation of small integers, dates, times and strings.
        (Int32, Int8 | Int16 | Date32 | Time32(TimeUnit::Millisecond)) | (Int8 | Int16, Int32) => true,
        (Int8 | Int16 | Int32, Int64) | (Int8, Int16) => true,
        (Binary | LargeBinary | LargeUtf8, Utf8) | (Utf8 | FixedSizeBinary(_) | LargeBinary, Binary) => true,
        (Decimal128(from_precision, from_scale), Decimal128(precision, scale)) => {
            from_scale == scale && from_precision <= precision
        }
        _ => false,
    }
}

#[cfg(any(feature = "parquet", feature = "orc"))]
/// Ticks a second, as a power of ten.
fn ticks(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}
