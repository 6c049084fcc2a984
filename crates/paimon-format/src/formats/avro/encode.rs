//! Columns into Avro's binary form, row by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, StringArray, Time32MillisecondArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType as ArrowType, TimeUnit};

use crate::types::TypeKind;

/// A column whose values are to be written: its type is looked at once.
pub(super) struct ColumnEncoder<'a> {
    /// Whether values stand behind a union branch: the column's type is nullable.
    nullable: bool,
    nulls: Option<&'a NullBuffer>,
    data: Data<'a>,
}

enum Data<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a Int8Array),
    Int16(&'a Int16Array),
    Int32(&'a Int32Array),
    Date(&'a Date32Array),
    Time(&'a Time32MillisecondArray),
    Long(&'a Int64Array),
    Millis(&'a TimestampMillisecondArray),
    Micros(&'a TimestampMicrosecondArray),
    Float(&'a Float32Array),
    Double(&'a Float64Array),
    String(&'a StringArray),
    Bytes(&'a BinaryArray),
    Decimal(&'a Decimal128Array),
    /// Offsets, elements.
    List(&'a [i32], Box<ColumnEncoder<'a>>),
    /// Offsets, keys, values: Avro's map and an array of pairs have the same bytes.
    Map(&'a [i32], Box<ColumnEncoder<'a>>, Box<ColumnEncoder<'a>>),
    Row(Vec<ColumnEncoder<'a>>),
}

impl<'a> ColumnEncoder<'a> {
    /// A column of this type, whose values stand behind a union's branch when they are `nullable`. `None` for a type that Avro files do
    /// not have.
    pub(super) fn new(kind: &TypeKind, nullable: bool, array: &'a ArrayRef) -> Option<Self> {
        let data = match array.data_type() {
            ArrowType::Boolean => Data::Boolean(array.as_boolean()),
            ArrowType::Int8 => Data::Int8(array.as_primitive::<Int8Type>()),
            ArrowType::Int16 => Data::Int16(array.as_primitive::<Int16Type>()),
            ArrowType::Int32 => Data::Int32(array.as_primitive::<Int32Type>()),
            ArrowType::Date32 => Data::Date(array.as_primitive::<Date32Type>()),
            ArrowType::Time32(TimeUnit::Millisecond) => Data::Time(array.as_primitive::<Time32MillisecondType>()),
            ArrowType::Int64 => Data::Long(array.as_primitive::<Int64Type>()),
            ArrowType::Timestamp(TimeUnit::Millisecond, _) => {
                Data::Millis(array.as_primitive::<TimestampMillisecondType>())
            }
            ArrowType::Timestamp(TimeUnit::Microsecond, _) => {
                Data::Micros(array.as_primitive::<TimestampMicrosecondType>())
            }
            ArrowType::Float32 => Data::Float(array.as_primitive::<Float32Type>()),
            ArrowType::Float64 => Data::Double(array.as_primitive::<Float64Type>()),
            ArrowType::Utf8 => Data::String(array.as_string()),
            ArrowType::Binary => Data::Bytes(array.as_binary()),
            ArrowType::Decimal128(..) => Data::Decimal(array.as_primitive::<Decimal128Type>()),
            ArrowType::List(_) => {
                let TypeKind::Array(element) = kind else { return None };
                let list = array.as_list::<i32>();
                let element = Self::new(&element.kind, element.nullable, list.values())?;
                Data::List(list.value_offsets(), Box::new(element))
            }
            ArrowType::Map(..) => {
                // A multiset's counts are nullable in Avro, though never null.
                let (key, value_kind, value_nullable) = match kind {
                    TypeKind::Map(key, value) => (key, &value.kind, value.nullable),
                    TypeKind::Multiset(element) => (element, &TypeKind::Int, true),
                    _ => return None,
                };
                let is_avro_map = matches!(key.kind, TypeKind::Char(_) | TypeKind::VarChar(_));
                let map = array.as_map();
                Data::Map(
                    map.value_offsets(),
                    Box::new(Self::new(&key.kind, key.nullable && !is_avro_map, map.keys())?),
                    Box::new(Self::new(value_kind, value_nullable, map.values())?),
                )
            }
            ArrowType::Struct(_) => {
                let TypeKind::Row(fields) = kind else { return None };
                let columns = fields.iter().zip(array.as_struct().columns());
                let columns =
                    columns.map(|(field, column)| Self::new(&field.data_type.kind, field.data_type.nullable, column));
                Data::Row(columns.collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Self {
            nullable,
            nulls: array.nulls(),
            data,
        })
    }

    /// Writes the value of a row, which is within the column.
    pub(super) fn value(&self, row: usize, into: &mut Vec<u8>) {
        if self.nullable {
            let null = self.nulls.is_some_and(|nulls| nulls.is_null(row));
            long(i64::from(!null), into);
            if null {
                return;
            }
        }
        match &self.data {
            Data::Boolean(values) => into.push(u8::from(values.value(row))),
            Data::Int8(values) => long(values.value(row).into(), into),
            Data::Int16(values) => long(values.value(row).into(), into),
            Data::Int32(values) => long(values.value(row).into(), into),
            Data::Date(values) => long(values.value(row).into(), into),
            Data::Time(values) => long(values.value(row).into(), into),
            Data::Long(values) => long(values.value(row), into),
            Data::Millis(values) => long(values.value(row), into),
            Data::Micros(values) => long(values.value(row), into),
            Data::Float(values) => into.extend_from_slice(&values.value(row).to_le_bytes()),
            Data::Double(values) => into.extend_from_slice(&values.value(row).to_le_bytes()),
            Data::String(values) => bytes(values.value(row).as_bytes(), into),
            Data::Bytes(values) => bytes(values.value(row), into),
            Data::Decimal(values) => bytes(minimal(&values.value(row).to_be_bytes()), into),
            Data::List(offsets, element) => items(offsets, row, into, |item, into| element.value(item, into)),
            Data::Map(offsets, key, value) => items(offsets, row, into, |item, into| {
                key.value(item, into);
                value.value(item, into);
            }),
            Data::Row(columns) => columns.iter().for_each(|column| column.value(row, into)),
        }
    }
}

/// A zig-zag number.
pub(super) fn long(value: i64, into: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}

/// Bytes behind their length.
pub(super) fn bytes(value: &[u8], into: &mut Vec<u8>) {
    long(value.len() as i64, into);
    into.extend_from_slice(value);
}

fn items(offsets: &[i32], row: usize, into: &mut Vec<u8>, item: impl Fn(usize, &mut Vec<u8>)) {
    let offset = |row: usize| {
        offsets
            .get(row)
            .map_or(0, |&offset| usize::try_from(offset).unwrap_or(0))
    };
    let (start, end) = (offset(row), offset(row + 1));
    if start < end {
        long((end - start) as i64, into);
        (start..end).for_each(|at| item(at, into));
    }
    long(0, into);
}

/// The fewest bytes of a big-endian two's complement number, as `java.math.BigInteger#toByteArray` has them.
fn minimal(value: &[u8; 16]) -> &[u8] {
    let negative = value[0] & 0x80 != 0;
    let fill = if negative { 0xff } else { 0 };
    let mut start = 0;
    while start < 15 && value[start] == fill && (value[start + 1] & 0x80 != 0) == negative {
        start += 1;
    }
    &value[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_as_short_as_javas() {
        for (value, wanted) in [
            (0_i128, vec![0]),
            (127, vec![0x7f]),
            (128, vec![0, 0x80]),
            (-128, vec![0x80]),
            (-129, vec![0xff, 0x7f]),
        ] {
            assert_eq!(minimal(&value.to_be_bytes()), wanted);
        }
    }

    #[test]
    fn numbers_are_zig_zag() {
        for (value, wanted) in [
            (0, vec![0]),
            (-1, vec![1]),
            (1, vec![2]),
            (-64, vec![0x7f]),
            (64, vec![0x80, 1]),
        ] {
            let mut bytes = Vec::new();
            long(value, &mut bytes);
            assert_eq!(bytes, wanted);
        }
        let mut bytes = Vec::new();
        long(i64::MIN, &mut bytes);
        assert_eq!(bytes.len(), 10);
    }
}
