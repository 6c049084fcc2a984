//! Values from Arrow arrays and back.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, MapArray, PrimitiveArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType as ArrowType, FieldRef, Fields, TimeUnit};

use crate::error::FormatError;
use crate::types::arrow_map::{child_path, is_variant};
use crate::types::{DataField, Datum, arrow_field};

impl Datum {
    /// The value at `row` of an array with one of the Arrow types of [`arrow_field`].
    ///
    /// Errors: `Internal` for another Arrow type or a row out of range.
    pub fn from_array(array: &dyn Array, row: usize) -> Result<Self, FormatError> {
        if row >= array.len() {
            return Err(FormatError::internal(format!(
                "row {row} of an array of {}",
                array.len()
            )));
        }
        if array.is_null(row) {
            return Ok(Self::Null);
        }
        Ok(match array.data_type() {
            ArrowType::Boolean => Self::Boolean(array.as_boolean().value(row)),
            ArrowType::Int8 => Self::Int8(array.as_primitive::<Int8Type>().value(row)),
            ArrowType::Int16 => Self::Int16(array.as_primitive::<Int16Type>().value(row)),
            ArrowType::Int32 => Self::Int32(array.as_primitive::<Int32Type>().value(row)),
            ArrowType::Int64 => Self::Int64(array.as_primitive::<Int64Type>().value(row)),
            ArrowType::Float32 => Self::Float32(array.as_primitive::<Float32Type>().value(row)),
            ArrowType::Float64 => Self::Float64(array.as_primitive::<Float64Type>().value(row)),
            ArrowType::Utf8 => Self::String(array.as_string::<i32>().value(row).to_owned()),
            ArrowType::Binary => Self::Bytes(array.as_binary::<i32>().value(row).to_vec()),
            ArrowType::Decimal128(..) => Self::Decimal(array.as_primitive::<Decimal128Type>().value(row)),
            ArrowType::Date32 => Self::Date(array.as_primitive::<Date32Type>().value(row)),
            ArrowType::Time32(TimeUnit::Millisecond) => {
                Self::Time(array.as_primitive::<Time32MillisecondType>().value(row))
            }
            ArrowType::Timestamp(TimeUnit::Millisecond, _) => Self::Timestamp {
                millis: array.as_primitive::<TimestampMillisecondType>().value(row),
                nanos: 0,
            },
            ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
                timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row), 1000)
            }
            ArrowType::Timestamp(TimeUnit::Nanosecond, _) => {
                timestamp(array.as_primitive::<TimestampNanosecondType>().value(row), 1_000_000)
            }
            ArrowType::List(_) => Self::Array(all(&array.as_list::<i32>().value(row))?),
            ArrowType::Map(..) => {
                let entries = array.as_map().value(row);
                let [keys, values] = entries.columns() else {
                    return Err(FormatError::internal("a map without keys and values"));
                };
                Self::Map(all(keys)?.into_iter().zip(all(values)?).collect())
            }
            ArrowType::Struct(fields) => {
                let mut parts = Vec::with_capacity(fields.len());
                for column in array.as_struct().columns() {
                    parts.push(Self::from_array(column, row)?);
                }
                if is_variant(fields)
                    && let [Self::Bytes(value), Self::Bytes(metadata)] = parts.as_mut_slice()
                {
                    let (value, metadata) = (std::mem::take(value), std::mem::take(metadata));
                    return Ok(Self::Variant { value, metadata });
                }
                Self::Row(parts)
            }
            other => {
                return Err(FormatError::internal(format!(
                    "{other} is the Arrow type of no Paimon type"
                )));
            }
        })
    }
}

/// A timestamp of a count of units, of which a millisecond has `per_milli`.
fn timestamp(units: i64, per_milli: i64) -> Datum {
    let below = units.rem_euclid(per_milli);
    Datum::Timestamp {
        millis: units.div_euclid(per_milli),
        nanos: (below * (1_000_000 / per_milli)) as i32,
    }
}

fn all(array: &ArrayRef) -> Result<Vec<Datum>, FormatError> {
    (0..array.len()).map(|row| Datum::from_array(array, row)).collect()
}

/// An array of a column's Arrow type with the given values, which have the column's type.
///
/// Errors, all naming the column: `Invalid` for a value of another type, a null where the type has none, a decimal with too many digits,
/// or a timestamp that its Arrow unit cannot hold (nanoseconds: 1677 to 2262); `Unsupported` for a type without an Arrow form.
pub fn array_from_datums<'a>(
    field: &DataField,
    values: impl IntoIterator<Item = &'a Datum>,
) -> Result<ArrayRef, FormatError> {
    let arrow: FieldRef = Arc::new(arrow_field(field)?);
    build_array(&arrow, values.into_iter().collect(), &field.name)
}

/// An array with the Arrow type of `field`; errors as [`array_from_datums`]. `path` names the column.
pub(crate) fn build_array(field: &FieldRef, values: Vec<&Datum>, path: &str) -> Result<ArrayRef, FormatError> {
    if !field.is_nullable()
        && let Some(row) = values.iter().position(|value| value.is_null())
    {
        return Err(FormatError::invalid(format!(
            "column {path} is NOT NULL, but value {row} is null"
        )));
    }
    let arrow = field.data_type();
    Ok(match arrow {
        ArrowType::Boolean => Arc::new(collect::<_, BooleanArray>(values, arrow, path, |value| match value {
            Datum::Boolean(value) => Some(*value),
            _ => None,
        })?),
        ArrowType::Int8 => primitive::<Int8Type>(values, arrow, path, |value| match value {
            Datum::Int8(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Int16 => primitive::<Int16Type>(values, arrow, path, |value| match value {
            Datum::Int16(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Int32 => primitive::<Int32Type>(values, arrow, path, |value| match value {
            Datum::Int32(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Int64 => primitive::<Int64Type>(values, arrow, path, |value| match value {
            Datum::Int64(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Float32 => primitive::<Float32Type>(values, arrow, path, |value| match value {
            Datum::Float32(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Float64 => primitive::<Float64Type>(values, arrow, path, |value| match value {
            Datum::Float64(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Decimal128(precision, _) => primitive::<Decimal128Type>(values, arrow, path, |value| match value {
            Datum::Decimal(value) => super::number::fits(*value, *precision),
            _ => None,
        })?,
        ArrowType::Date32 => primitive::<Date32Type>(values, arrow, path, |value| match value {
            Datum::Date(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Time32(_) => primitive::<Time32MillisecondType>(values, arrow, path, |value| match value {
            Datum::Time(value) => Some(*value),
            _ => None,
        })?,
        ArrowType::Timestamp(unit, _) => match unit {
            TimeUnit::Microsecond => timestamps::<TimestampMicrosecondType>(values, arrow, path, 1000)?,
            TimeUnit::Nanosecond => timestamps::<TimestampNanosecondType>(values, arrow, path, 1_000_000)?,
            _ => timestamps::<TimestampMillisecondType>(values, arrow, path, 1)?,
        },
        ArrowType::Utf8 => {
            let bytes = values.iter().map(|value| {
                if let Datum::String(value) = value {
                    value.len()
                } else {
                    0
                }
            });
            let mut builder = StringBuilder::with_capacity(values.len(), bytes.sum());
            for value in values {
                match value {
                    Datum::Null => builder.append_null(),
                    Datum::String(value) => builder.append_value(value),
                    other => return Err(wrong(other, arrow, path)),
                }
            }
            Arc::new(builder.finish())
        }
        ArrowType::Binary => {
            let mut builder = BinaryBuilder::with_capacity(values.len(), 0);
            for value in values {
                match value {
                    Datum::Null => builder.append_null(),
                    Datum::Bytes(value) => builder.append_value(value),
                    other => return Err(wrong(other, arrow, path)),
                }
            }
            Arc::new(builder.finish())
        }
        ArrowType::List(element) => {
            let parts = split(&values, arrow, path, |value| match value {
                Datum::Array(elements) => Some(elements.as_slice()),
                _ => None,
            })?;
            let elements = parts.values.into_iter().flatten().collect();
            let elements = build_array(element, elements, &child_path(path, "element"))?;
            let list = ListArray::try_new(Arc::clone(element), parts.offsets, elements, parts.nulls);
            Arc::new(list.map_err(FormatError::internal)?)
        }
        ArrowType::Map(entries, sorted) => {
            let parts = split(&values, arrow, path, |value| match value {
                Datum::Map(entries) => Some(entries.as_slice()),
                _ => None,
            })?;
            let ArrowType::Struct(fields) = entries.data_type() else {
                return Err(FormatError::internal("a map without entries"));
            };
            let pairs = || parts.values.iter().copied().flatten();
            let mut columns = Vec::with_capacity(2);
            if let [key, value] = fields.as_ref() {
                columns.push(build_array(
                    key,
                    pairs().map(|(key, _)| key).collect(),
                    &child_path(path, "key"),
                )?);
                columns.push(build_array(
                    value,
                    pairs().map(|(_, value)| value).collect(),
                    &child_path(path, "value"),
                )?);
            }
            let values = StructArray::try_new(fields.clone(), columns, None).map_err(FormatError::internal)?;
            let map = MapArray::try_new(Arc::clone(entries), parts.offsets, values, parts.nulls, *sorted);
            Arc::new(map.map_err(FormatError::internal)?)
        }
        ArrowType::Struct(fields) if is_variant(fields) => variants(fields, &values, arrow, path)?,
        ArrowType::Struct(fields) => rows(fields, &values, arrow, path)?,
        other => {
            return Err(FormatError::internal(format!(
                "{other} is the Arrow type of no Paimon type"
            )));
        }
    })
}

fn wrong(value: &Datum, arrow: &ArrowType, path: &str) -> FormatError {
    FormatError::invalid(format!("column {path}: {value:?} does not fit {arrow}"))
}

/// An array of values that `get` finds; what it does not find and is not null is of another type.
fn collect<T, A: FromIterator<Option<T>>>(
    values: Vec<&Datum>,
    arrow: &ArrowType,
    path: &str,
    get: impl Fn(&Datum) -> Option<T>,
) -> Result<A, FormatError> {
    let values = values.into_iter().map(|value| match (value, get(value)) {
        (Datum::Null, _) => Ok(None),
        (_, Some(native)) => Ok(Some(native)),
        (other, None) => Err(wrong(other, arrow, path)),
    });
    values.collect()
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<&Datum>,
    arrow: &ArrowType,
    path: &str,
    get: impl Fn(&Datum) -> Option<T::Native>,
) -> Result<ArrayRef, FormatError> {
    let natives: Vec<Option<T::Native>> = collect(values, arrow, path, get)?;
    let array: PrimitiveArray<T> = natives.into_iter().collect();
    Ok(Arc::new(array.with_data_type(arrow.clone())))
}

fn timestamps<T: ArrowPrimitiveType<Native = i64>>(
    values: Vec<&Datum>,
    arrow: &ArrowType,
    path: &str,
    per_milli: i64,
) -> Result<ArrayRef, FormatError> {
    primitive::<T>(values, arrow, path, |value| match value {
        Datum::Timestamp { millis, nanos } => {
            // In the order that does not overflow for the lowest nanosecond.
            let units =
                i128::from(*millis) * i128::from(per_milli) + i128::from(*nanos) * i128::from(per_milli) / 1_000_000;
            i64::try_from(units).ok()
        }
        _ => None,
    })
}

/// Lists or maps of several rows: all their parts, and where each row's end.
struct Parts<'a, T> {
    values: Vec<&'a [T]>,
    offsets: OffsetBuffer<i32>,
    nulls: Option<NullBuffer>,
}

fn split<'a, T>(
    values: &[&'a Datum],
    arrow: &ArrowType,
    path: &str,
    get: impl Fn(&'a Datum) -> Option<&'a [T]>,
) -> Result<Parts<'a, T>, FormatError> {
    let mut parts = Vec::with_capacity(values.len());
    for &value in values {
        match (value, get(value)) {
            (Datum::Null, _) => parts.push(&[][..]),
            (_, Some(part)) => parts.push(part),
            (other, None) => return Err(wrong(other, arrow, path)),
        }
    }
    let total: usize = parts.iter().map(|part| part.len()).sum();
    if i32::try_from(total).is_err() {
        return Err(FormatError::invalid(format!(
            "column {path}: {total} elements in one batch"
        )));
    }
    Ok(Parts {
        offsets: OffsetBuffer::from_lengths(parts.iter().map(|part| part.len())),
        values: parts,
        nulls: nulls(values),
    })
}

/// `None` when no value is null.
fn nulls(values: &[&Datum]) -> Option<NullBuffer> {
    let nulls: NullBuffer = values.iter().map(|value| !value.is_null()).collect();
    Some(nulls).filter(|nulls| nulls.null_count() > 0)
}

fn rows(fields: &Fields, values: &[&Datum], arrow: &ArrowType, path: &str) -> Result<ArrayRef, FormatError> {
    for &value in values {
        match value {
            Datum::Null => {}
            Datum::Row(parts) if parts.len() == fields.len() => {}
            other => return Err(wrong(other, arrow, path)),
        }
    }
    let mut columns = Vec::with_capacity(fields.len());
    for (i, field) in fields.iter().enumerate() {
        let column = values.iter().map(|value| match value {
            Datum::Row(parts) => parts.get(i).unwrap_or(&Datum::Null),
            _ => &Datum::Null,
        });
        // A null row needs no value in a NOT NULL field.
        let within = child_path(path, field.name());
        let lenient = Arc::new(field.as_ref().clone().with_nullable(true));
        columns.push(build_array(&lenient, column.collect(), &within)?);
        if !field.is_nullable()
            && let Some(row) = values
                .iter()
                .position(|value| matches!(value, Datum::Row(parts) if parts.get(i).is_some_and(Datum::is_null)))
        {
            return Err(FormatError::invalid(format!(
                "column {within} is NOT NULL, but value {row} is null"
            )));
        }
    }
    let rows = StructArray::try_new_with_length(fields.clone(), columns, nulls(values), values.len());
    Ok(Arc::new(rows.map_err(FormatError::internal)?))
}

fn variants(fields: &Fields, values: &[&Datum], arrow: &ArrowType, path: &str) -> Result<ArrayRef, FormatError> {
    let (mut bytes, mut metadata_bytes) = (BinaryBuilder::new(), BinaryBuilder::new());
    for &value in values {
        match value {
            Datum::Null => {
                bytes.append_value([]);
                metadata_bytes.append_value([]);
            }
            Datum::Variant { value, metadata } => {
                bytes.append_value(value);
                metadata_bytes.append_value(metadata);
            }
            other => return Err(wrong(other, arrow, path)),
        }
    }
    let columns: Vec<ArrayRef> = vec![Arc::new(bytes.finish()), Arc::new(metadata_bytes.finish())];
    let variants = StructArray::try_new(fields.clone(), columns, nulls(values)).map_err(FormatError::internal)?;
    Ok(Arc::new(variants))
}

/// The column with every NaN made the same positive one, so that NaN is one key and the highest.
pub fn canonical_nan(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        ArrowType::Float32 => {
            let values: &PrimitiveArray<Float32Type> = column.as_primitive();
            match values.values().iter().any(|value| value.is_nan()) {
                true => Arc::new(values.unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v })),
                false => Arc::clone(column),
            }
        }
        ArrowType::Float64 => {
            let values: &PrimitiveArray<Float64Type> = column.as_primitive();
            match values.values().iter().any(|value| value.is_nan()) {
                true => Arc::new(values.unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v })),
                false => Arc::clone(column),
            }
        }
        _ => Arc::clone(column),
    }
}
