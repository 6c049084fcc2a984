//! Arrow columns of single values.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, Time32MillisecondType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, MapArray, PrimitiveArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{Field, Fields};

use crate::types::{DataType, Datum, TypeKind};

/// One column of these values.
pub(crate) fn column_of(values: &[Datum], data_type: &DataType) -> ArrayRef {
    match &data_type.kind {
        TypeKind::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
            Datum::Boolean(value) => Some(*value),
            _ => None,
        }))),
        TypeKind::TinyInt => primitive::<Int8Type>(values, |value| match value {
            Datum::Int8(value) => Some(*value),
            _ => None,
        }),
        TypeKind::SmallInt => primitive::<Int16Type>(values, |value| match value {
            Datum::Int16(value) => Some(*value),
            _ => None,
        }),
        TypeKind::Int => primitive::<Int32Type>(values, |value| match value {
            Datum::Int32(value) => Some(*value),
            _ => None,
        }),
        TypeKind::Date => primitive::<Date32Type>(values, |value| match value {
            Datum::Date(value) => Some(*value),
            _ => None,
        }),
        TypeKind::Time(_) => primitive::<Time32MillisecondType>(values, |value| match value {
            Datum::Time(value) => Some(*value),
            _ => None,
        }),
        TypeKind::BigInt => primitive::<Int64Type>(values, |value| match value {
            Datum::Int64(value) => Some(*value),
            _ => None,
        }),
        TypeKind::Float => primitive::<Float32Type>(values, |value| match value {
            Datum::Float32(value) => Some(*value),
            _ => None,
        }),
        TypeKind::Double => primitive::<Float64Type>(values, |value| match value {
            Datum::Float64(value) => Some(*value),
            _ => None,
        }),
        TypeKind::Decimal(precision, scale) => {
            let values = values.iter().map(|value| match value {
                Datum::Decimal(value) => Some(*value),
                _ => None,
            });
            let array = PrimitiveArray::<Decimal128Type>::from_iter(values);
            Arc::new(array.with_precision_and_scale(*precision, *scale as i8).unwrap())
        }
        TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => match precision {
            0..=3 => primitive::<TimestampMillisecondType>(values, |value| timestamp(value, 1, 1_000_000)),
            4..=6 => primitive::<TimestampMicrosecondType>(values, |value| timestamp(value, 1000, 1000)),
            _ => primitive::<TimestampNanosecondType>(values, |value| timestamp(value, 1_000_000, 1)),
        },
        TypeKind::Char(_) | TypeKind::VarChar(_) => {
            let mut builder = StringBuilder::new();
            for value in values {
                match value {
                    Datum::String(text) => builder.append_value(text),
                    _ => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        TypeKind::Binary(_) | TypeKind::VarBinary(_) => binary(values.iter().map(|value| match value {
            Datum::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        })),
        TypeKind::Variant => {
            let parts = |value: fn(&Datum) -> Option<&[u8]>| binary(values.iter().map(value));
            let value = parts(|value| match value {
                Datum::Variant { value, .. } => Some(value),
                _ => Some(&[]),
            });
            let metadata = parts(|value| match value {
                Datum::Variant { metadata, .. } => Some(metadata),
                _ => Some(&[]),
            });
            structure(&["value", "metadata"], vec![value, metadata], nulls(values))
        }
        TypeKind::Array(element) => {
            let lists: Vec<&[Datum]> = values.iter().map(elements).collect();
            let child = column_of(&lists.concat(), element);
            let field = Arc::new(Field::new("element", child.data_type().clone(), true));
            let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.len()));
            Arc::new(ListArray::new(field, offsets, child, Some(nulls(values))))
        }
        TypeKind::Map(key, value) => map(values, key, value),
        TypeKind::Multiset(element) => map(values, element, &DataType::not_null(TypeKind::Int)),
        TypeKind::Row(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let columns = fields.iter().enumerate().map(|(i, field)| {
                let column: Vec<Datum> = values
                    .iter()
                    .map(|value| match value {
                        Datum::Row(row) => row[i].clone(),
                        _ => Datum::Null,
                    })
                    .collect();
                column_of(&column, &field.data_type)
            });
            structure(&names, columns.collect(), nulls(values))
        }
        kind => unreachable!("no column of {kind:?}"),
    }
}

fn primitive<T: ArrowPrimitiveType>(values: &[Datum], value: impl Fn(&Datum) -> Option<T::Native>) -> ArrayRef {
    Arc::new(values.iter().map(value).collect::<PrimitiveArray<T>>())
}

fn timestamp(value: &Datum, per_milli: i64, nanos_per_unit: i32) -> Option<i64> {
    match value {
        Datum::Timestamp { millis, nanos } => Some(millis * per_milli + i64::from(nanos / nanos_per_unit)),
        _ => None,
    }
}

fn binary<'v>(values: impl Iterator<Item = Option<&'v [u8]>>) -> ArrayRef {
    let mut builder = BinaryBuilder::new();
    values.for_each(|value| builder.append_option(value));
    Arc::new(builder.finish())
}

fn nulls(values: &[Datum]) -> NullBuffer {
    values.iter().map(|value| !matches!(value, Datum::Null)).collect()
}

fn elements(value: &Datum) -> &[Datum] {
    match value {
        Datum::Array(elements) => elements,
        _ => &[],
    }
}

fn map(values: &[Datum], key: &DataType, value: &DataType) -> ArrayRef {
    let maps: Vec<&[(Datum, Datum)]> = values
        .iter()
        .map(|value| match value {
            Datum::Map(entries) => entries.as_slice(),
            _ => &[],
        })
        .collect();
    let (keys, items): (Vec<Datum>, Vec<Datum>) = maps.concat().into_iter().unzip();
    let (keys, items) = (column_of(&keys, key), column_of(&items, value));
    let fields = Fields::from(vec![
        Field::new("key", keys.data_type().clone(), false),
        Field::new("value", items.data_type().clone(), true),
    ]);
    let entries = StructArray::new(fields.clone(), vec![keys, items], None);
    let field = Arc::new(Field::new("entries", arrow_schema::DataType::Struct(fields), false));
    let offsets = OffsetBuffer::from_lengths(maps.iter().map(|map| map.len()));
    Arc::new(MapArray::new(field, offsets, entries, Some(nulls(values)), false))
}

fn structure(names: &[&str], columns: Vec<ArrayRef>, nulls: NullBuffer) -> ArrayRef {
    let fields: Fields = names
        .iter()
        .zip(&columns)
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    Arc::new(StructArray::new(fields, columns, Some(nulls)))
}
