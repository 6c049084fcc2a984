//! Rows straight from Arrow columns.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray,
    StringArray, StringViewArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use bytes::Bytes;

use super::section::{Place, Section, place, unsupported};
use super::writer::end_map_keys;
use super::{BinaryRow, murmur};
use crate::FormatError;
use crate::types::{DataType, TypeKind};

/// Makes rows of Arrow columns: types are looked at once, the values of flat types never become objects.
#[derive(Debug)]
pub struct RowEncoder<'a> {
    columns: Vec<Column<'a>>,
    rows: usize,
}

impl<'a> RowEncoder<'a> {
    /// For these columns, one a field. `Invalid` when a column does not hold values of its type or the lengths differ,
    /// `Unsupported` for BLOB and VECTOR.
    pub fn new(columns: &'a [ArrayRef], types: &[DataType]) -> Result<Self, FormatError> {
        let (columns, rows) = columns_of(columns, types)?;
        Ok(Self { columns, rows })
    }

    /// The number of rows; 0 without columns.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// One row. `Invalid` when there is no such row.
    pub fn row(&self, row: usize) -> Result<BinaryRow, FormatError> {
        let mut buffer = Vec::new();
        self.encode(row, &mut buffer)?;
        Ok(BinaryRow::from_valid(self.columns.len(), Bytes::from(buffer)))
    }

    /// Java's `hashCode` of each row.
    pub fn hashes(&self) -> Result<Vec<i32>, FormatError> {
        let mut hashes = Vec::with_capacity(self.rows);
        self.visit(|row| hashes.push(murmur::hash_bytes(row)))?;
        Ok(hashes)
    }

    /// Shows the bytes of each row, as [`BinaryRow::as_bytes`], one after another. No object is made a row.
    pub fn visit(&self, mut show: impl FnMut(&[u8])) -> Result<(), FormatError> {
        let mut buffer = Vec::new();
        for row in 0..self.rows {
            self.encode(row, &mut buffer)?;
            show(&buffer);
        }
        Ok(())
    }

    /// The bytes of one row, as [`BinaryRow::as_bytes`], in place of what the buffer held.
    fn encode(&self, row: usize, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
        if row >= self.rows && !self.columns.is_empty() {
            return Err(FormatError::invalid(format!(
                "row {row} of a batch of {} rows",
                self.rows
            )));
        }
        buffer.clear();
        write_row(&self.columns, row, buffer)
    }
}

/// The columns with their types resolved, and their number of rows (0 without columns). Errors as [`RowEncoder::new`].
pub(crate) fn columns_of<'a>(
    columns: &'a [ArrayRef],
    types: &[DataType],
) -> Result<(Vec<Column<'a>>, usize), FormatError> {
    if columns.len() != types.len() {
        return Err(FormatError::invalid(format!(
            "{} columns for {} fields of a row",
            columns.len(),
            types.len()
        )));
    }
    let rows = columns.first().map_or(0, |column| column.len());
    if let Some(other) = columns.iter().find(|column| column.len() != rows) {
        return Err(FormatError::invalid(format!(
            "columns of {rows} and of {} rows in one batch",
            other.len()
        )));
    }
    let columns: Result<Vec<_>, _> = columns
        .iter()
        .zip(types)
        .map(|(column, data_type)| Column::new(column.as_ref(), data_type))
        .collect();
    Ok((columns?, rows))
}

/// All rows of these columns; see [`RowEncoder`] for errors.
pub fn binary_rows(columns: &[ArrayRef], types: &[DataType]) -> Result<Vec<BinaryRow>, FormatError> {
    let encoder = RowEncoder::new(columns, types)?;
    (0..encoder.rows()).map(|row| encoder.row(row)).collect()
}

/// One row of these columns; see [`RowEncoder`] for errors.
pub fn row_at(columns: &[ArrayRef], types: &[DataType], row: usize) -> Result<BinaryRow, FormatError> {
    RowEncoder::new(columns, types)?.row(row)
}

/// One column, its type resolved.
#[derive(Debug)]
pub(crate) struct Column<'a> {
    nulls: Option<&'a NullBuffer>,
    pub(crate) values: Values<'a>,
    pub(super) place: Place,
}

/// The values of a column, whatever its nulls.
#[derive(Debug)]
pub(crate) enum Values<'a> {
    Boolean(&'a BooleanBuffer),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    /// INT, DATE, TIME
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Bytes(ByteValues<'a>),
    Decimal(&'a [i128]),
    Timestamp(&'a [i64], TimeUnit),
    Variant(ByteValues<'a>, ByteValues<'a>),
    /// Offsets, elements, their type.
    Array(&'a [i32], Box<Column<'a>>, TypeKind),
    /// Offsets, then keys and values with their types.
    Map(&'a [i32], Box<(Column<'a>, Column<'a>)>, TypeKind, TypeKind),
    Row(Vec<Column<'a>>),
}

/// Text or bytes in any of Arrow's layouts.
#[derive(Debug)]
pub(crate) enum ByteValues<'a> {
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedSizeBinary(&'a FixedSizeBinaryArray),
}

impl<'a> Column<'a> {
    fn new(array: &'a dyn Array, data_type: &DataType) -> Result<Self, FormatError> {
        let mismatch = || {
            FormatError::invalid(format!(
                "an Arrow column of type {} holds no values of type {data_type}",
                array.data_type()
            ))
        };
        let values = match (&data_type.kind, array.data_type()) {
            (TypeKind::Boolean, ArrowType::Boolean) => Values::Boolean(array.as_boolean().values()),
            (TypeKind::TinyInt, ArrowType::Int8) => Values::Int8(array.as_primitive::<Int8Type>().values()),
            (TypeKind::SmallInt, ArrowType::Int16) => Values::Int16(array.as_primitive::<Int16Type>().values()),
            (TypeKind::Int, ArrowType::Int32) => Values::Int32(array.as_primitive::<Int32Type>().values()),
            (TypeKind::BigInt, ArrowType::Int64) => Values::Int64(array.as_primitive::<Int64Type>().values()),
            (TypeKind::Float, ArrowType::Float32) => Values::Float32(array.as_primitive::<Float32Type>().values()),
            (TypeKind::Double, ArrowType::Float64) => Values::Float64(array.as_primitive::<Float64Type>().values()),
            (TypeKind::Date, ArrowType::Date32) => Values::Int32(array.as_primitive::<Date32Type>().values()),
            (TypeKind::Time(_), ArrowType::Time32(TimeUnit::Millisecond)) => {
                Values::Int32(array.as_primitive::<Time32MillisecondType>().values())
            }
            (TypeKind::Char(_) | TypeKind::VarChar(_), _) => {
                Values::Bytes(ByteValues::text(array).ok_or_else(mismatch)?)
            }
            (TypeKind::Binary(_) | TypeKind::VarBinary(_), _) => {
                Values::Bytes(ByteValues::binary(array).ok_or_else(mismatch)?)
            }
            (TypeKind::Decimal(_, scale), ArrowType::Decimal128(_, arrow_scale))
                if i16::from(*scale) == i16::from(*arrow_scale) =>
            {
                Values::Decimal(array.as_primitive::<Decimal128Type>().values())
            }
            (TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_), ArrowType::Timestamp(unit, _)) => {
                let values: &[i64] = match unit {
                    TimeUnit::Second => array.as_primitive::<TimestampSecondType>().values(),
                    TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().values(),
                    TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().values(),
                    TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().values(),
                };
                Values::Timestamp(values, *unit)
            }
            (TypeKind::Variant, ArrowType::Struct(_)) => {
                let array = array.as_struct();
                let part = |name| {
                    array
                        .column_by_name(name)
                        .and_then(|part| ByteValues::binary(part.as_ref()))
                };
                match (part("value"), part("metadata")) {
                    (Some(value), Some(metadata)) => Values::Variant(value, metadata),
                    _ => return Err(mismatch()),
                }
            }
            (TypeKind::Array(element), ArrowType::List(_)) => {
                let array = array.as_list::<i32>();
                let elements = Self::new(array.values().as_ref(), element)?;
                Values::Array(array.value_offsets(), Box::new(elements), element.kind.clone())
            }
            (TypeKind::Map(key, value), ArrowType::Map(..)) => Self::map(array, key, value)?,
            (TypeKind::Multiset(element), ArrowType::Map(..)) => {
                Self::map(array, element, &DataType::not_null(TypeKind::Int))?
            }
            (TypeKind::Row(fields), ArrowType::Struct(arrow_fields)) if fields.len() == arrow_fields.len() => {
                let columns: Result<Vec<_>, _> = fields
                    .iter()
                    .zip(array.as_struct().columns())
                    .map(|(field, column)| Self::new(column.as_ref(), &field.data_type))
                    .collect();
                Values::Row(columns?)
            }
            (TypeKind::Blob | TypeKind::Vector(..), _) => return Err(unsupported(data_type)),
            _ => return Err(mismatch()),
        };
        Ok(Self {
            nulls: array.nulls().filter(|nulls| nulls.null_count() > 0),
            values,
            place: place(data_type),
        })
    }

    fn map(array: &'a dyn Array, key: &DataType, value: &DataType) -> Result<Values<'a>, FormatError> {
        let array = array.as_map();
        let keys = Self::new(array.keys().as_ref(), key)?;
        let values = Self::new(array.values().as_ref(), value)?;
        Ok(Values::Map(
            array.value_offsets(),
            Box::new((keys, values)),
            key.kind.clone(),
            value.kind.clone(),
        ))
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Writes the value at `row` as field `i`. `row` is within the column.
    fn write(&self, section: &Section, buffer: &mut Vec<u8>, i: usize, row: usize) -> Result<(), FormatError> {
        if self.is_null(row) {
            return section.put_null(buffer, i, self.place);
        }
        match &self.values {
            Values::Boolean(values) => section.put_fixed(buffer, i, [u8::from(values.value(row))]),
            Values::Int8(values) => section.put_fixed(buffer, i, values[row].to_le_bytes()),
            Values::Int16(values) => section.put_fixed(buffer, i, values[row].to_le_bytes()),
            Values::Int32(values) => section.put_fixed(buffer, i, values[row].to_le_bytes()),
            Values::Int64(values) => section.put_fixed(buffer, i, values[row].to_le_bytes()),
            Values::Float32(values) => section.put_f32(buffer, i, values[row]),
            Values::Float64(values) => section.put_f64(buffer, i, values[row]),
            Values::Bytes(values) => section.put_bytes(buffer, i, values.value(row))?,
            Values::Decimal(values) => section.put_decimal(buffer, i, values[row], self.place)?,
            Values::Timestamp(values, unit) => {
                let timestamp = millis_and_nanos(values[row], *unit)?;
                section.put_timestamp(buffer, i, timestamp, self.place)?;
            }
            Values::Variant(value, metadata) => {
                section.put_variant(buffer, i, value.value(row), metadata.value(row))?;
            }
            Values::Array(offsets, elements, kind) => {
                let start = buffer.len();
                write_array(elements, kind, range(offsets, row), buffer)?;
                section.end_nested(buffer, i, start)?;
            }
            Values::Map(offsets, entries, key_kind, value_kind) => {
                let start = buffer.len();
                buffer.extend_from_slice(&[0; 4]);
                write_array(&entries.0, key_kind, range(offsets, row), buffer)?;
                end_map_keys(buffer, start)?;
                write_array(&entries.1, value_kind, range(offsets, row), buffer)?;
                section.end_nested(buffer, i, start)?;
            }
            Values::Row(columns) => {
                let start = buffer.len();
                write_row(columns, row, buffer)?;
                section.end_nested(buffer, i, start)?;
            }
        }
        Ok(())
    }
}

impl<'a> ByteValues<'a> {
    fn text(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            ArrowType::Utf8 => Self::Utf8(array.as_string()),
            ArrowType::LargeUtf8 => Self::LargeUtf8(array.as_string()),
            ArrowType::Utf8View => Self::Utf8View(array.as_string_view()),
            _ => return None,
        })
    }

    fn binary(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            ArrowType::Binary => Self::Binary(array.as_binary()),
            ArrowType::LargeBinary => Self::LargeBinary(array.as_binary()),
            ArrowType::BinaryView => Self::BinaryView(array.as_binary_view()),
            ArrowType::FixedSizeBinary(_) => Self::FixedSizeBinary(array.as_fixed_size_binary()),
            _ => return None,
        })
    }

    pub(crate) fn value(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Utf8(array) => array.value(row).as_bytes(),
            Self::LargeUtf8(array) => array.value(row).as_bytes(),
            Self::Utf8View(array) => array.value(row).as_bytes(),
            Self::Binary(array) => array.value(row),
            Self::LargeBinary(array) => array.value(row),
            Self::BinaryView(array) => array.value(row),
            Self::FixedSizeBinary(array) => array.value(row),
        }
    }
}

fn write_row(columns: &[Column<'_>], row: usize, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
    let section = Section::row(buffer, columns.len());
    columns
        .iter()
        .enumerate()
        .try_for_each(|(i, column)| column.write(&section, buffer, i, row))
}

pub(super) fn write_array(
    elements: &Column<'_>,
    kind: &TypeKind,
    range: std::ops::Range<usize>,
    buffer: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let section = Section::array(buffer, range.len(), kind)?;
    range
        .enumerate()
        .try_for_each(|(i, row)| elements.write(&section, buffer, i, row))
}

/// Arrow keeps offsets non-negative and in order.
pub(super) fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    offsets[row] as usize..offsets[row + 1] as usize
}

/// Floored milliseconds, and nanoseconds of the millisecond. `Invalid` when seconds do not fit.
pub(super) fn millis_and_nanos(value: i64, unit: TimeUnit) -> Result<(i64, i32), FormatError> {
    let per_milli = match unit {
        TimeUnit::Second => {
            return value
                .checked_mul(1000)
                .map(|millis| (millis, 0))
                .ok_or_else(|| FormatError::invalid(format!("timestamp of {value} s: milliseconds overflow")));
        }
        TimeUnit::Millisecond => return Ok((value, 0)),
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1_000_000,
    };
    let nanos = value.rem_euclid(per_milli) * (1_000_000 / per_milli);
    Ok((value.div_euclid(per_milli), nanos as i32))
}
