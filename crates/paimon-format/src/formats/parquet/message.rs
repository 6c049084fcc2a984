//! The Parquet schema of Arrow columns, as Java writes it.
//!
//! Source: `org.apache.paimon.format.parquet.ParquetSchemaConverter`.

use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema, TimeUnit};
use parquet::basic::{
    ConvertedType, DecimalType, IntType, LogicalType, Repetition, TimeType, TimeUnit as ParquetTimeUnit, TimestampType,
    Type as PhysicalType,
};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{PrimitiveTypeBuilder, Type, TypePtr};

use crate::types::FIELD_ID_KEY;

/// The name of every data file's schema.
const ROOT: &str = "paimon_schema";

/// The Parquet schema of columns with the Arrow types of [`arrow_schema`](crate::types::arrow_schema).
pub(super) fn message_type(schema: &Schema) -> Result<TypePtr> {
    let fields = schema.fields().iter().map(|field| parquet_type(field, field.name()));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(ROOT).with_fields(fields).build()?))
}

fn parquet_type(field: &Field, name: &str) -> Result<TypePtr> {
    let id = field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse().ok());
    let repetition = if field.is_nullable() {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let primitive = |physical| Type::primitive_type_builder(name, physical);
    let annotated = |physical, logical| primitive(physical).with_logical_type(Some(logical));
    let group = |fields| Type::group_type_builder(name).with_fields(fields);
    let built = match field.data_type() {
        ArrowType::List(element) => {
            let element = parquet_type(element, "element")?;
            let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
            let list = list.with_fields(vec![element]).build()?;
            group(vec![Arc::new(list)])
                .with_logical_type(Some(LogicalType::List))
                .with_repetition(repetition)
                .with_id(id)
                .build()
        }
        ArrowType::Map(entries, _) => {
            let ArrowType::Struct(pair) = entries.data_type() else {
                return Err(unknown(field));
            };
            let [key, value] = pair.as_ref() else {
                return Err(unknown(field));
            };
            let pair = Type::group_type_builder("key_value").with_repetition(Repetition::REPEATED);
            let pair = pair.with_converted_type(ConvertedType::MAP_KEY_VALUE);
            let pair = pair
                .with_fields(vec![parquet_type(key, "key")?, parquet_type(value, "value")?])
                .build()?;
            group(vec![Arc::new(pair)])
                .with_logical_type(Some(LogicalType::Map))
                .with_repetition(repetition)
                .with_id(id)
                .build()
        }
        ArrowType::Struct(fields) => {
            let fields = fields.iter().map(|field| parquet_type(field, field.name()));
            group(fields.collect::<Result<Vec<_>>>()?)
                .with_repetition(repetition)
                .with_id(id)
                .build()
        }
        flat => {
            let builder = match flat {
                ArrowType::Boolean => primitive(PhysicalType::BOOLEAN),
                ArrowType::Int8 => annotated(PhysicalType::INT32, integer(8)),
                ArrowType::Int16 => annotated(PhysicalType::INT32, integer(16)),
                ArrowType::Int32 => primitive(PhysicalType::INT32),
                ArrowType::Int64 => primitive(PhysicalType::INT64),
                ArrowType::Float32 => primitive(PhysicalType::FLOAT),
                ArrowType::Float64 => primitive(PhysicalType::DOUBLE),
                ArrowType::Utf8 => annotated(PhysicalType::BYTE_ARRAY, LogicalType::String),
                ArrowType::Binary => primitive(PhysicalType::BYTE_ARRAY),
                ArrowType::Decimal128(precision, scale) => decimal(name, *precision, *scale),
                ArrowType::Date32 => annotated(PhysicalType::INT32, LogicalType::Date),
                ArrowType::Time32(TimeUnit::Millisecond) => annotated(PhysicalType::INT32, time_of_day()),
                ArrowType::Timestamp(TimeUnit::Millisecond, zone) => {
                    annotated(PhysicalType::INT64, timestamp(zone.is_some(), ParquetTimeUnit::MILLIS))
                }
                ArrowType::Timestamp(TimeUnit::Microsecond, zone) => {
                    annotated(PhysicalType::INT64, timestamp(zone.is_some(), ParquetTimeUnit::MICROS))
                }
                ArrowType::Timestamp(TimeUnit::Nanosecond, _) => primitive(PhysicalType::INT96),
                _ => return Err(unknown(field)),
            };
            builder.with_repetition(repetition).with_id(id).build()
        }
    };
    Ok(Arc::new(built?))
}

fn unknown(field: &Field) -> ParquetError {
    ParquetError::NYI(format!(
        "column {} of the Arrow type {}",
        field.name(),
        field.data_type()
    ))
}

fn integer(bit_width: i8) -> LogicalType {
    LogicalType::Integer(IntType {
        bit_width,
        is_signed: true,
    })
}

/// TIME is adjusted to UTC in Java's files, though it has no zone.
fn time_of_day() -> LogicalType {
    LogicalType::Time(TimeType {
        is_adjusted_to_u_t_c: true,
        unit: ParquetTimeUnit::MILLIS,
    })
}

fn timestamp(is_adjusted_to_u_t_c: bool, unit: ParquetTimeUnit) -> LogicalType {
    LogicalType::Timestamp(TimestampType {
        is_adjusted_to_u_t_c,
        unit,
    })
}

/// The smallest physical type that holds the precision.
fn decimal(name: &str, precision: u8, scale: i8) -> PrimitiveTypeBuilder<'_> {
    let (physical, length) = match precision {
        0..=9 => (PhysicalType::INT32, -1),
        10..=18 => (PhysicalType::INT64, -1),
        _ => (PhysicalType::FIXED_LEN_BYTE_ARRAY, decimal_bytes(precision)),
    };
    let logical = LogicalType::Decimal(DecimalType {
        scale: scale.into(),
        precision: precision.into(),
    });
    Type::primitive_type_builder(name, physical)
        .with_logical_type(Some(logical))
        .with_precision(precision.into())
        .with_scale(scale.into())
        .with_length(length)
}

/// The fewest bytes that hold all values of a precision: 2^(8n - 1) ≥ 10^p.
fn decimal_bytes(precision: u8) -> i32 {
    let digits = f64::from(precision) * std::f64::consts::LOG2_10;
    ((digits + 1.0) / 8.0).ceil() as i32
}
