//! JSON to values.

use arrow_array::ArrayRef;
use paimon::format::FormatError;
use paimon::format::types::{DataField, DataType, Datum, TypeKind, array_from_datums};
use serde_json::Value;

/// A value of the type, from the form of the [module](super).
///
/// Errors: a text that says what was found and which type was expected. Nullability is not checked here.
pub fn decode_value(value: &Value, data_type: &DataType) -> Result<Datum, String> {
    let wrong = || format!("expected {}, found {}", data_type, shorten(value));
    let datum = match (&data_type.kind, value) {
        (_, Value::Null) => Datum::Null,
        (TypeKind::Boolean, Value::Bool(value)) => Datum::Boolean(*value),
        (TypeKind::Binary(_) | TypeKind::VarBinary(_) | TypeKind::Blob, Value::String(text)) => {
            Datum::Bytes(from_hex(text).ok_or_else(|| format!("expected hex digits, found {}", shorten(value)))?)
        }
        (TypeKind::Char(_) | TypeKind::VarChar(_), Value::String(text)) => Datum::String(text.clone()),
        (TypeKind::Float, Value::Number(number)) => Datum::Float32(number.to_string().parse().map_err(|_| wrong())?),
        (TypeKind::Double, Value::Number(number)) => Datum::Float64(number.as_f64().ok_or_else(wrong)?),
        (
            TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int | TypeKind::BigInt | TypeKind::Decimal(..),
            Value::Number(number),
        ) => Datum::parse(&number.to_string(), data_type).map_err(|_| wrong())?,
        (TypeKind::Array(element) | TypeKind::Vector(element, _), Value::Array(values)) => {
            Datum::Array(values.iter().map(|value| decode_value(value, element)).collect::<Result<_, _>>()?)
        }
        (TypeKind::Map(key, element), _) => Datum::Map(decode_entries(value, key, element).ok_or_else(wrong)??),
        (TypeKind::Multiset(element), _) => {
            let count = DataType::not_null(TypeKind::Int);
            Datum::Map(decode_entries(value, element, &count).ok_or_else(wrong)??)
        }
        (TypeKind::Row(fields), Value::Array(values)) if values.len() == fields.len() => {
            let values = values.iter().zip(fields);
            Datum::Row(
                values
                    .map(|(value, field)| decode_value(value, &field.data_type))
                    .collect::<Result<_, _>>()?,
            )
        }
        (TypeKind::Row(fields), Value::Object(object)) => {
            if let Some(name) = object.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
                return Err(format!("expected {data_type}, found a field {name:?}"));
            }
            let values = fields.iter();
            Datum::Row(
                values
                    .map(|field| decode_value(object.get(&field.name).unwrap_or(&Value::Null), &field.data_type))
                    .collect::<Result<_, _>>()?,
            )
        }
        (TypeKind::Variant, Value::Object(object)) => {
            let part = |name: &str| object.get(name).and_then(Value::as_str).and_then(from_hex).ok_or_else(wrong);
            Datum::Variant {
                value: part("value")?,
                metadata: part("metadata")?,
            }
        }
        (
            TypeKind::Float
            | TypeKind::Double
            | TypeKind::Decimal(..)
            | TypeKind::Date
            | TypeKind::Time(_)
            | TypeKind::Timestamp(_)
            | TypeKind::LocalZonedTimestamp(_),
            Value::String(text),
        ) => Datum::parse(text.strip_suffix('Z').unwrap_or(text), data_type).map_err(|_| wrong())?,
        _ => return Err(wrong()),
    };
    Ok(datum)
}

/// A column of values, one a row, in the table's Arrow type.
///
/// Errors: as [`decode_value`], with the row (from 0) in front.
pub fn decode_column<'a>(
    values: impl IntoIterator<Item = &'a Value>,
    field: &DataField,
) -> Result<ArrayRef, (usize, String)> {
    let values = values.into_iter().enumerate();
    let datums = values
        .map(|(row, value)| decode_value(value, &field.data_type).map_err(|message| (row, message)))
        .collect::<Result<Vec<_>, _>>()?;
    array_from_datums(field, &datums).map_err(|error: FormatError| (0, error.to_string()))
}

/// Pairs, or an object when keys are texts. `None`: neither.
fn decode_entries(value: &Value, key: &DataType, element: &DataType) -> Option<Result<Vec<(Datum, Datum)>, String>> {
    match value {
        Value::Array(entries) => {
            let pairs = entries.iter().map(|entry| match entry.as_array().map(Vec::as_slice) {
                Some([k, v]) => Some((k, v)),
                _ => None,
            });
            let pairs = pairs.collect::<Option<Vec<_>>>()?.into_iter();
            Some(pairs.map(|(k, v)| Ok((decode_value(k, key)?, decode_value(v, element)?))).collect())
        }
        Value::Object(object) if matches!(key.kind, TypeKind::Char(_) | TypeKind::VarChar(_)) => {
            let entries = object.iter();
            Some(entries.map(|(k, v)| Ok((Datum::String(k.clone()), decode_value(v, element)?))).collect())
        }
        _ => None,
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    let digits = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    digits.map(|pair| pair.and_then(|pair| u8::from_str_radix(pair, 16).ok())).collect()
}

/// The value's text, cut at 40 characters: a message must not repeat a megabyte.
fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
