//! Columns being filled from Avro values.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray, StringArray, StructArray};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType as ArrowType, Field, TimeUnit};

use super::cursor::Cursor;
use super::schema::AvroType;

/// A column being filled.
pub(super) struct Column {
    arrow: ArrowType,
    /// The branch of null, if the file's type is a union.
    null_branch: Option<usize>,
    valid: BooleanBufferBuilder,
    nulls: usize,
    data: Data,
}

enum Data {
    Boolean(BooleanBufferBuilder),
    /// int: INT, DATE, TIME and the smaller integers.
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    /// The length of fixed ones.
    Bytes(Vec<i32>, Vec<u8>, Option<usize>),
    Decimal(Vec<i128>, Option<usize>),
    List(Vec<i32>, Box<Column>),
    /// Pairs, or Avro's map of strings.
    Map(Vec<i32>, Box<Column>, Box<Column>),
    Row(Vec<(Option<usize>, AvroType)>, Vec<Column>),
}

impl Column {
    /// For values of a file's type, to become an array of `arrow`. The error says why they cannot.
    pub(super) fn new(avro: &AvroType, arrow: &ArrowType) -> Result<Self, String> {
        let (avro, null_branch) = match avro {
            AvroType::Union(branches) => match branches.as_slice() {
                [AvroType::Null, value] => (value, Some(0)),
                [value, AvroType::Null] => (value, Some(1)),
                _ => return Err("it is a union of other than null and a type".to_owned()),
            },
            avro => (avro, None),
        };
        let data = match (avro, arrow) {
            (AvroType::Boolean, ArrowType::Boolean) => Data::Boolean(BooleanBufferBuilder::new(0)),
            (
                AvroType::Int,
                ArrowType::Int8
                | ArrowType::Int16
                | ArrowType::Int32
                | ArrowType::Date32
                | ArrowType::Time32(TimeUnit::Millisecond),
            ) => Data::Int(Vec::new()),
            (AvroType::Long | AvroType::Int, ArrowType::Int64) => Data::Long(Vec::new()),
            (AvroType::Long, ArrowType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, _)) => {
                Data::Long(Vec::new())
            }
            (AvroType::Float, ArrowType::Float32) => Data::Float(Vec::new()),
            (AvroType::Double, ArrowType::Float64) => Data::Double(Vec::new()),
            (AvroType::String, ArrowType::Utf8) | (AvroType::Bytes, ArrowType::Binary) => {
                Data::Bytes(vec![0], Vec::new(), None)
            }
            (AvroType::Fixed(length), ArrowType::Binary) => Data::Bytes(vec![0], Vec::new(), Some(*length)),
            (AvroType::Bytes, ArrowType::Decimal128(..)) => Data::Decimal(Vec::new(), None),
            (AvroType::Fixed(length), ArrowType::Decimal128(..)) => Data::Decimal(Vec::new(), Some(*length)),
            (AvroType::Array(element), ArrowType::List(field)) => {
                Data::List(vec![0], Box::new(Self::new(element, field.data_type())?))
            }
            (AvroType::Map(value), ArrowType::Map(entries, _)) => {
                let [key_type, value_type] = entry_types(entries)?;
                Data::Map(
                    vec![0],
                    Box::new(Self::new(&AvroType::String, key_type)?),
                    Box::new(Self::new(value, value_type)?),
                )
            }
            (AvroType::Array(pair), ArrowType::Map(entries, _)) => {
                let [key_type, value_type] = entry_types(entries)?;
                match pair.as_ref() {
                    AvroType::Record(fields) => match fields.as_slice() {
                        [(key, key_avro), (value, value_avro)] if key == "key" && value == "value" => Data::Map(
                            vec![0],
                            Box::new(Self::new(key_avro, key_type)?),
                            Box::new(Self::new(value_avro, value_type)?),
                        ),
                        _ => return Err("it is an array of records other than key and value".to_owned()),
                    },
                    _ => return Err("it is an array of no records, where a map is expected".to_owned()),
                }
            }
            (AvroType::Record(fields), ArrowType::Struct(wanted)) => {
                let mut columns = Vec::new();
                let mut plan = Vec::new();
                for (name, avro) in fields {
                    let place = wanted.iter().position(|field| field.name() == name);
                    plan.push((place, avro.clone()));
                }
                for field in wanted {
                    let Some((_, avro)) = fields.iter().find(|(name, _)| name == field.name()) else {
                        return Err(format!("it has no field {}", field.name()));
                    };
                    columns.push(Self::new(avro, field.data_type())?);
                }
                Data::Row(plan, columns)
            }
            (avro, arrow) => return Err(format!("it holds {avro:?}, where the schema says {arrow}")),
        };
        Ok(Self {
            arrow: arrow.clone(),
            null_branch,
            valid: BooleanBufferBuilder::new(0),
            nulls: 0,
            data,
        })
    }

    /// Appends the next value.
    pub(super) fn value(&mut self, cursor: &mut Cursor<'_>) -> Result<(), String> {
        if let Some(null) = self.null_branch
            && cursor.branch(2)? == null
        {
            return self.null();
        }
        self.valid.append(true);
        match &mut self.data {
            Data::Boolean(values) => values.append(cursor.boolean()?),
            Data::Int(values) => values.push(cursor.int()?),
            Data::Long(values) => values.push(cursor.long()?),
            Data::Float(values) => values.push(cursor.float()?),
            Data::Double(values) => values.push(cursor.double()?),
            Data::Bytes(offsets, values, length) => {
                values.extend_from_slice(match length {
                    Some(length) => cursor.take(*length)?,
                    None => cursor.bytes()?,
                });
                offsets.push(i32::try_from(values.len()).map_err(|_| "2 GiB of values in a batch")?);
            }
            Data::Decimal(values, length) => values.push(decimal(match length {
                Some(length) => cursor.take(*length)?,
                None => cursor.bytes()?,
            })?),
            Data::List(offsets, child) => {
                let mut count = last(offsets);
                cursor.items(|cursor| {
                    count += 1;
                    child.value(cursor)
                })?;
                offsets.push(count);
            }
            Data::Map(offsets, keys, values) => {
                let mut count = last(offsets);
                cursor.items(|cursor| {
                    count += 1;
                    keys.value(cursor)?;
                    values.value(cursor)
                })?;
                offsets.push(count);
            }
            Data::Row(plan, columns) => {
                for (place, avro) in plan {
                    match place.and_then(|place| columns.get_mut(place)) {
                        Some(column) => column.value(cursor)?,
                        None => cursor.skip(avro)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn null(&mut self) -> Result<(), String> {
        self.valid.append(false);
        self.nulls += 1;
        match &mut self.data {
            Data::Boolean(values) => values.append(false),
            Data::Int(values) => values.push(0),
            Data::Long(values) => values.push(0),
            Data::Float(values) => values.push(0.0),
            Data::Double(values) => values.push(0.0),
            Data::Decimal(values, _) => values.push(0),
            Data::Bytes(offsets, ..) | Data::List(offsets, _) | Data::Map(offsets, ..) => offsets.push(last(offsets)),
            Data::Row(_, columns) => {
                for column in columns {
                    column.null()?;
                }
            }
        }
        Ok(())
    }

    /// The values so far; the next one starts a new array.
    pub(super) fn finish(&mut self) -> Result<ArrayRef, String> {
        let valid = self.valid.finish();
        let nulls = (std::mem::take(&mut self.nulls) > 0).then(|| NullBuffer::new(valid));
        let arrow = &self.arrow;
        Ok(match &mut self.data {
            Data::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Data::Int(values) => {
                let values = std::mem::take(values);
                match arrow {
                    ArrowType::Int8 => narrow::<Int8Type>(values, nulls)?,
                    ArrowType::Int16 => narrow::<Int16Type>(values, nulls)?,
                    ArrowType::Date32 => primitive::<Date32Type>(values, nulls, arrow),
                    ArrowType::Time32(_) => primitive::<Time32MillisecondType>(values, nulls, arrow),
                    _ => primitive::<Int32Type>(values, nulls, arrow),
                }
            }
            Data::Long(values) => {
                let values = std::mem::take(values);
                match arrow {
                    ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
                        primitive::<TimestampMillisecondType>(values, nulls, arrow)
                    }
                    ArrowType::Timestamp(..) => primitive::<TimestampMicrosecondType>(values, nulls, arrow),
                    _ => primitive::<Int64Type>(values, nulls, arrow),
                }
            }
            Data::Float(values) => primitive::<Float32Type>(std::mem::take(values), nulls, arrow),
            Data::Double(values) => primitive::<Float64Type>(std::mem::take(values), nulls, arrow),
            Data::Decimal(values, _) => primitive::<Decimal128Type>(std::mem::take(values), nulls, arrow),
            Data::Bytes(offsets, values, _) => {
                let offsets = take_offsets(offsets);
                let values = Buffer::from_vec(std::mem::take(values));
                match arrow {
                    ArrowType::Utf8 => Arc::new(StringArray::try_new(offsets, values, nulls).map_err(text)?),
                    _ => Arc::new(BinaryArray::try_new(offsets, values, nulls).map_err(text)?),
                }
            }
            Data::List(offsets, child) => {
                let ArrowType::List(field) = arrow else {
                    return Err(format!("{arrow} is no list"));
                };
                let list = ListArray::try_new(Arc::clone(field), take_offsets(offsets), child.finish()?, nulls);
                Arc::new(list.map_err(text)?)
            }
            Data::Map(offsets, keys, values) => {
                let ArrowType::Map(entries, _) = arrow else {
                    return Err(format!("{arrow} is no map"));
                };
                let ArrowType::Struct(fields) = entries.data_type() else {
                    return Err(format!("{arrow} is no map"));
                };
                let pairs =
                    StructArray::try_new(fields.clone(), vec![keys.finish()?, values.finish()?], None).map_err(text)?;
                let map = MapArray::try_new(Arc::clone(entries), take_offsets(offsets), pairs, nulls, false);
                Arc::new(map.map_err(text)?)
            }
            Data::Row(_, columns) => {
                let ArrowType::Struct(fields) = arrow else {
                    return Err(format!("{arrow} is no row"));
                };
                let columns = columns.iter_mut().map(Self::finish).collect::<Result<_, _>>()?;
                Arc::new(StructArray::try_new(fields.clone(), columns, nulls).map_err(text)?)
            }
        })
    }
}

fn entry_types(entries: &Field) -> Result<[&ArrowType; 2], String> {
    match entries.data_type() {
        ArrowType::Struct(fields) => match fields.as_ref() {
            [key, value] => Ok([key.data_type(), value.data_type()]),
            _ => Err("a map of other than key and value".to_owned()),
        },
        other => Err(format!("a map of {other}")),
    }
}

fn last(offsets: &[i32]) -> i32 {
    offsets.last().copied().unwrap_or(0)
}

/// Offsets only grow: each is the count of items so far.
fn take_offsets(offsets: &mut Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(offsets, vec![0])))
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>, arrow: &ArrowType) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls).with_data_type(arrow.clone()))
}

fn narrow<T: ArrowPrimitiveType>(values: Vec<i32>, nulls: Option<NullBuffer>) -> Result<ArrayRef, String>
where
    T::Native: TryFrom<i32>,
{
    let values = values
        .into_iter()
        .map(|value| T::Native::try_from(value).map_err(|_| format!("{value} is out of the range of its type")));
    let values = values.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

/// A big-endian two's complement number.
fn decimal(bytes: &[u8]) -> Result<i128, String> {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    let start = wide
        .len()
        .checked_sub(bytes.len())
        .ok_or_else(|| format!("a decimal of {} bytes", bytes.len()))?;
    if let Some(low) = wide.get_mut(start..) {
        low.copy_from_slice(bytes);
    }
    Ok(i128::from_be_bytes(wide))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
