//! Values to JSON.

use std::fmt::Write;

use arrow_array::RecordBatch;
use paimon::format::FormatError;
use paimon::format::types::{DataField, DataType, Datum, TypeKind};
use serde_json::{Value, json};

/// A value in the form of the [module](super).
pub fn encode_value(datum: &Datum, data_type: &DataType) -> Value {
    match (datum, &data_type.kind) {
        (Datum::Null, _) => Value::Null,
        (Datum::Boolean(value), _) => json!(value),
        (Datum::Int8(value), _) => json!(value),
        (Datum::Int16(value), _) => json!(value),
        (Datum::Int32(value), _) => json!(value),
        (Datum::Int64(value), _) => json!(value),
        (Datum::Float32(value), _) => float(f64::from(*value), value),
        (Datum::Float64(value), _) => float(*value, value),
        (Datum::String(value), _) => json!(value),
        (Datum::Bytes(value), _) => json!(hex(value)),
        (Datum::Array(values), TypeKind::Array(element) | TypeKind::Vector(element, _)) => {
            values.iter().map(|value| encode_value(value, element)).collect()
        }
        (Datum::Map(entries), TypeKind::Map(key, value)) => encode_entries(entries, key, value),
        (Datum::Map(entries), TypeKind::Multiset(element)) => {
            encode_entries(entries, element, &DataType::not_null(TypeKind::Int))
        }
        (Datum::Row(values), TypeKind::Row(fields)) => {
            let values = values.iter().zip(fields);
            values.map(|(value, field)| encode_value(value, &field.data_type)).collect()
        }
        (Datum::Variant { value, metadata }, _) => json!({"value": hex(value), "metadata": hex(metadata)}),
        // Milliseconds, whatever the precision says: files hold no more and no less.
        (Datum::Time(ms), _) => {
            let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
            json!(format!("{hours:02}:{minutes:02}:{seconds:02}.{:03}", ms % 1000))
        }
        (Datum::Timestamp { .. }, TypeKind::LocalZonedTimestamp(_)) => json!(datum.to_text(data_type) + "Z"),
        _ => json!(datum.to_text(data_type)),
    }
}

/// Rows as arrays of values, in column order.
///
/// Errors: `Internal` when the batch does not have the columns of `fields`.
pub fn encode_batch(batch: &RecordBatch, fields: &[DataField]) -> Result<Vec<Vec<Value>>, FormatError> {
    let mut rows = vec![Vec::with_capacity(fields.len()); batch.num_rows()];
    for (column, field) in batch.columns().iter().zip(fields) {
        for (row, values) in rows.iter_mut().enumerate() {
            let datum = Datum::from_array(column, row)?;
            values.push(encode_value(&datum, &field.data_type));
        }
    }
    Ok(rows)
}

fn encode_entries(entries: &[(Datum, Datum)], key: &DataType, value: &DataType) -> Value {
    let entries = entries.iter();
    entries.map(|(k, v)| json!([encode_value(k, key), encode_value(v, value)])).collect()
}

/// The shortest text that reads back as the same value, which for a FLOAT is not that of the DOUBLE.
fn float(wide: f64, shortest: &impl std::fmt::Display) -> Value {
    if wide.is_nan() {
        json!("NaN")
    } else if wide.is_infinite() {
        json!(if wide > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        shortest.to_string().parse::<f64>().map_or(Value::Null, |value| json!(value))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
