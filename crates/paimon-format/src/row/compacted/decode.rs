//! Compacted rows as Arrow columns.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{ArrayRef, PrimitiveArray, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType as ArrowType, FieldRef, TimeUnit};

use super::{Fields, Input, corrupt};
use crate::FormatError;
use crate::row::reader::{array_values, map_entries};
use crate::row::section::{Place, place, unsupported};
use crate::types::{DataField, DataType, Datum, TypeKind, arrow_field, build_array};

/// Makes Arrow columns of compacted rows. Flat types and rows are read straight into columns; elements of arrays and maps become
/// values first.
#[derive(Clone, Debug)]
pub struct CompactedRowDecoder {
    fields: Arc<[DataField]>,
    arrow: Arc<[FieldRef]>,
}

impl CompactedRowDecoder {
    /// For rows with these fields. `Unsupported` for BLOB and VECTOR, naming the column.
    pub fn new(fields: &[DataField]) -> Result<Self, FormatError> {
        let arrow: Result<Vec<FieldRef>, _> = fields.iter().map(|field| arrow_field(field).map(Arc::new)).collect();
        Ok(Self {
            fields: fields.into(),
            arrow: arrow?.into(),
        })
    }

    /// One column a field, with the types of [`arrow_field`], one entry a row. Bytes behind the last field do not count.
    ///
    /// Errors: `Corrupt`, naming the row's number and the column, when bytes are no row of the fields; `Invalid` when the rows have
    /// 2 GiB or more.
    pub fn decode<'b>(
        &self,
        rows: impl ExactSizeIterator<Item = &'b [u8]> + Clone,
    ) -> Result<Vec<ArrayRef>, FormatError> {
        let total = rows.clone().map(<[u8]>::len).fold(0, usize::saturating_add);
        if i32::try_from(total).is_err() {
            return Err(FormatError::invalid(format!(
                "compacted rows of {total} bytes in one batch"
            )));
        }
        let mut columns = self.columns(rows.len())?;
        for (number, row) in rows.enumerate() {
            let read = append_row(&mut columns, &self.arrow, row);
            read.map_err(|(name, error)| match error {
                FormatError::Corrupt { path, message } => {
                    FormatError::corrupt(path, format_args!("row {number}, column {name}: {message}"))
                }
                other => other,
            })?;
        }
        columns
            .into_iter()
            .zip(self.arrow.iter())
            .map(|(column, field)| column.finish(field))
            .collect()
    }

    fn columns(&self, rows: usize) -> Result<Vec<Column>, FormatError> {
        let columns = self.fields.iter().zip(self.arrow.iter());
        columns
            .map(|(field, arrow)| Column::new(&field.data_type, arrow, rows))
            .collect()
    }
}

/// Appends a row to its columns. The error comes with the name of the column.
fn append_row<'f>(columns: &mut [Column], arrow: &'f [FieldRef], bytes: &[u8]) -> Result<(), (&'f str, FormatError)> {
    let mut fields = Fields::new(bytes, columns.len()).map_err(|error| ("(header)", error))?;
    for (i, (column, field)) in columns.iter_mut().zip(arrow).enumerate() {
        let appended = match fields.is_null(i) {
            true if field.is_nullable() => {
                column.append_null();
                Ok(())
            }
            true => Err(corrupt("null where the type has none")),
            false => column.append(&mut fields.values),
        };
        appended.map_err(|error| (field.name().as_str(), error))?;
    }
    Ok(())
}

/// A column being filled.
enum Column {
    Boolean(BooleanBuilder),
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    /// INT, DATE, TIME
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Decimal(PrimitiveBuilder<Decimal128Type>, Place),
    /// Counts of the Arrow type's unit.
    Timestamp(PrimitiveBuilder<Int64Type>, TimeUnit, Place),
    Row {
        columns: Vec<Column>,
        fields: Vec<FieldRef>,
        nulls: NullBufferBuilder,
    },
    /// ARRAY, MAP, MULTISET, VARIANT: by value.
    Values(Vec<Datum>, DataType),
}

impl Column {
    fn new(data_type: &DataType, arrow: &FieldRef, rows: usize) -> Result<Self, FormatError> {
        Ok(match &data_type.kind {
            TypeKind::Boolean => Self::Boolean(BooleanBuilder::with_capacity(rows)),
            TypeKind::TinyInt => Self::Int8(PrimitiveBuilder::with_capacity(rows)),
            TypeKind::SmallInt => Self::Int16(PrimitiveBuilder::with_capacity(rows)),
            TypeKind::Int | TypeKind::Date | TypeKind::Time(_) => Self::Int32(PrimitiveBuilder::with_capacity(rows)),
            TypeKind::BigInt => Self::Int64(PrimitiveBuilder::with_capacity(rows)),
            TypeKind::Float => Self::Float32(PrimitiveBuilder::with_capacity(rows)),
            TypeKind::Double => Self::Float64(PrimitiveBuilder::with_capacity(rows)),
            TypeKind::Char(_) | TypeKind::VarChar(_) => Self::Text(StringBuilder::with_capacity(rows, 0)),
            TypeKind::Binary(_) | TypeKind::VarBinary(_) => Self::Bytes(BinaryBuilder::with_capacity(rows, 0)),
            TypeKind::Decimal(..) => Self::Decimal(PrimitiveBuilder::with_capacity(rows), place(data_type)),
            TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => match arrow.data_type() {
                ArrowType::Timestamp(unit, _) => {
                    Self::Timestamp(PrimitiveBuilder::with_capacity(rows), *unit, place(data_type))
                }
                other => return Err(FormatError::internal(format!("{other} for {data_type}"))),
            },
            TypeKind::Row(fields) => {
                let ArrowType::Struct(arrow_fields) = arrow.data_type() else {
                    return Err(FormatError::internal(format!("{} for {data_type}", arrow.data_type())));
                };
                let columns = fields.iter().zip(arrow_fields);
                Self::Row {
                    columns: columns
                        .map(|(field, arrow)| Self::new(&field.data_type, arrow, rows))
                        .collect::<Result<_, _>>()?,
                    fields: arrow_fields.iter().map(Arc::clone).collect(),
                    nulls: NullBufferBuilder::new(rows),
                }
            }
            TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Multiset(_) | TypeKind::Variant => {
                Self::Values(Vec::with_capacity(rows), data_type.clone())
            }
            TypeKind::Blob | TypeKind::Vector(..) => return Err(unsupported(data_type)),
        })
    }

    fn append_null(&mut self) {
        match self {
            Self::Boolean(column) => column.append_null(),
            Self::Int8(column) => column.append_null(),
            Self::Int16(column) => column.append_null(),
            Self::Int32(column) => column.append_null(),
            Self::Int64(column) | Self::Timestamp(column, ..) => column.append_null(),
            Self::Float32(column) => column.append_null(),
            Self::Float64(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
            Self::Bytes(column) => column.append_null(),
            Self::Decimal(column, _) => column.append_null(),
            Self::Row { columns, nulls, .. } => {
                nulls.append_null();
                columns.iter_mut().for_each(Self::append_null);
            }
            Self::Values(values, _) => values.push(Datum::Null),
        }
    }

    /// Appends a value that is not null.
    fn append(&mut self, input: &mut Input<'_>) -> Result<(), FormatError> {
        match self {
            Self::Boolean(column) => column.append_value(input.fixed()? != [0]),
            Self::Int8(column) => column.append_value(i8::from_le_bytes(input.fixed()?)),
            Self::Int16(column) => column.append_value(i16::from_le_bytes(input.fixed()?)),
            Self::Int32(column) => column.append_value(i32::from_le_bytes(input.fixed()?)),
            Self::Int64(column) => column.append_value(i64::from_le_bytes(input.fixed()?)),
            Self::Float32(column) => column.append_value(f32::from_le_bytes(input.fixed()?)),
            Self::Float64(column) => column.append_value(f64::from_le_bytes(input.fixed()?)),
            Self::Text(column) => {
                let text = str::from_utf8(input.bytes()?);
                column.append_value(text.map_err(|error| corrupt(format_args!("text is not UTF-8: {error}")))?);
            }
            Self::Bytes(column) => column.append_value(input.bytes()?),
            Self::Decimal(column, place) => column.append_value(input.decimal(*place)?),
            Self::Timestamp(column, unit, place) => {
                let (millis, nanos) = input.timestamp(*place)?;
                column.append_value(count_of_units(millis, nanos, *unit)?);
            }
            Self::Row { columns, fields, nulls } => {
                append_row(columns, fields, input.bytes()?).map_err(|(_, error)| error)?;
                nulls.append_non_null();
            }
            Self::Values(values, data_type) => values.push(value_of(input.bytes()?, data_type)?),
        }
        Ok(())
    }

    fn finish(self, field: &FieldRef) -> Result<ArrayRef, FormatError> {
        let wrong = || FormatError::internal(format!("a column of {} was read as another type", field.data_type()));
        Ok(match self {
            Self::Boolean(mut column) => Arc::new(column.finish()),
            Self::Int8(mut column) => Arc::new(column.finish()),
            Self::Int16(mut column) => Arc::new(column.finish()),
            Self::Int32(mut column) => match field.data_type() {
                ArrowType::Date32 => cast::<Date32Type, _>(&column.finish(), field),
                ArrowType::Time32(_) => cast::<Time32MillisecondType, _>(&column.finish(), field),
                _ => Arc::new(column.finish()),
            },
            Self::Int64(mut column) => Arc::new(column.finish()),
            Self::Float32(mut column) => Arc::new(column.finish()),
            Self::Float64(mut column) => Arc::new(column.finish()),
            Self::Text(mut column) => Arc::new(column.finish()),
            Self::Bytes(mut column) => Arc::new(column.finish()),
            Self::Decimal(mut column, _) => match field.data_type() {
                ArrowType::Decimal128(..) => Arc::new(column.finish().with_data_type(field.data_type().clone())),
                _ => return Err(wrong()),
            },
            Self::Timestamp(mut column, unit, _) => match unit {
                TimeUnit::Second => cast::<TimestampSecondType, _>(&column.finish(), field),
                TimeUnit::Millisecond => cast::<TimestampMillisecondType, _>(&column.finish(), field),
                TimeUnit::Microsecond => cast::<TimestampMicrosecondType, _>(&column.finish(), field),
                TimeUnit::Nanosecond => cast::<TimestampNanosecondType, _>(&column.finish(), field),
            },
            Self::Row {
                columns,
                fields,
                mut nulls,
            } => {
                let arrays: Result<Vec<_>, _> = columns
                    .into_iter()
                    .zip(&fields)
                    .map(|(column, field)| column.finish(field))
                    .collect();
                let rows = StructArray::try_new(fields.into(), arrays?, nulls.finish());
                Arc::new(rows.map_err(FormatError::internal)?)
            }
            Self::Values(values, _) => build_array(field, values.iter().collect(), field.name())?,
        })
    }
}

/// The same numbers as another type of the same width.
fn cast<To, From>(array: &PrimitiveArray<From>, field: &FieldRef) -> ArrayRef
where
    From: ArrowPrimitiveType,
    To: ArrowPrimitiveType<Native = From::Native>,
{
    Arc::new(array.reinterpret_cast::<To>().with_data_type(field.data_type().clone()))
}

fn count_of_units(millis: i64, nanos: i64, unit: TimeUnit) -> Result<i64, FormatError> {
    let count = match unit {
        TimeUnit::Second => Some(millis.div_euclid(1000)),
        TimeUnit::Millisecond => Some(millis),
        TimeUnit::Microsecond => millis
            .checked_mul(1000)
            .and_then(|count| count.checked_add(nanos / 1000)),
        TimeUnit::Nanosecond => millis.checked_mul(1_000_000).and_then(|count| count.checked_add(nanos)),
    };
    count.ok_or_else(|| corrupt(format_args!("a time of {millis} ms does not fit its unit")))
}

fn value_of(bytes: &[u8], data_type: &DataType) -> Result<Datum, FormatError> {
    Ok(match &data_type.kind {
        TypeKind::Array(element) => Datum::Array(array_values(bytes, element)?),
        TypeKind::Map(key, value) => Datum::Map(map_entries(bytes, key, value)?),
        TypeKind::Multiset(element) => Datum::Map(map_entries(bytes, element, &DataType::not_null(TypeKind::Int))?),
        TypeKind::Variant => {
            let mut input = Input::new(bytes);
            Datum::Variant {
                value: input.bytes()?.to_vec(),
                metadata: input.bytes()?.to_vec(),
            }
        }
        _ => return Err(FormatError::internal(format!("{data_type} is no type of many values"))),
    })
}
