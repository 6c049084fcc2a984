//! Values as JSON, without loss: what the command line reads and writes, and what golden files hold.

use serde_json::{Number, Value};

use super::hex::{bytes_of_hex, hex_of_bytes};
use super::number::{ParsedDecimal, format_decimal, parse_decimal};
use super::temporal::{format_date, format_time, format_timestamp, parse_date, parse_timestamp, time_of_day};
use crate::error::FormatError;
use crate::types::{DataType, Datum, TypeKind};

impl Datum {
    /// The value as JSON: booleans and numbers as they are; `"NaN"`, `"Infinity"`, `"-Infinity"`; text as text; bytes as lower-case
    /// hex; DECIMAL as text with all digits of its scale; `"yyyy-MM-dd"`, `"HH:mm:ss.SSS"`, `"yyyy-MM-dd HH:mm:ss"` with the precision's
    /// digits of fraction, and a `Z` behind it WITH LOCAL TIME ZONE (UTC); ARRAY and ROW as arrays; MAP and MULTISET as arrays of
    /// `[key, value]` sorted by the JSON text of the entry; VARIANT as `[value hex, metadata hex]`.
    ///
    /// A value of another type than said comes as its debug text.
    pub fn to_json(&self, data_type: &DataType) -> Value {
        match (self, &data_type.kind) {
            (Self::Null, _) => Value::Null,
            (Self::Boolean(value), _) => Value::Bool(*value),
            (Self::Int8(value), _) => Value::from(*value),
            (Self::Int16(value), _) => Value::from(*value),
            (Self::Int32(value), _) => Value::from(*value),
            (Self::Int64(value), _) => Value::from(*value),
            (Self::Float32(value), _) => float_to_json(f64::from(*value), || value.to_string()),
            (Self::Float64(value), _) => float_to_json(*value, || value.to_string()),
            (Self::String(value), _) => Value::from(value.as_str()),
            (Self::Bytes(value), _) => Value::from(hex_of_bytes(value)),
            (Self::Decimal(value), TypeKind::Decimal(_, scale)) => Value::from(format_decimal(*value, *scale)),
            (Self::Date(days), _) => Value::from(format_date((*days).into())),
            (Self::Time(ms), _) => Value::from(format!("{}.{:03}", format_time(*ms, 0), ms.rem_euclid(1000))),
            (Self::Timestamp { millis, nanos }, TypeKind::Timestamp(precision)) => {
                Value::from(format_timestamp(*millis, *nanos, *precision))
            }
            (Self::Timestamp { millis, nanos }, TypeKind::LocalZonedTimestamp(precision)) => {
                Value::from(format!("{}Z", format_timestamp(*millis, *nanos, *precision)))
            }
            (Self::Variant { value, metadata }, _) => {
                Value::Array(vec![hex_of_bytes(value).into(), hex_of_bytes(metadata).into()])
            }
            (Self::Array(elements), TypeKind::Array(element)) => {
                elements.iter().map(|value| value.to_json(element)).collect()
            }
            (Self::Map(entries), TypeKind::Map(key, value)) => entries_to_json(entries, key, value),
            (Self::Map(entries), TypeKind::Multiset(element)) => {
                entries_to_json(entries, element, &DataType::not_null(TypeKind::Int))
            }
            (Self::Row(values), TypeKind::Row(fields)) => values
                .iter()
                .zip(fields)
                .map(|(value, field)| value.to_json(&field.data_type))
                .collect(),
            _ => Value::from(format!("{self:?}")),
        }
    }

    /// Reads what [`to_json`](Self::to_json) writes. Numbers may come as text too, timestamps with `T`, and a ROW or a MAP with text keys
    /// as an object.
    ///
    /// Errors: `Invalid` with the JSON and the type; `Unsupported` for types that hold no values here.
    pub fn from_json(json: &Value, data_type: &DataType) -> Result<Self, FormatError> {
        if json.is_null() {
            return Ok(Self::Null);
        }
        let refuse = || FormatError::invalid(format!("{json} is no value of {data_type}"));
        let text = || json.as_str().ok_or_else(refuse);
        let value = match &data_type.kind {
            TypeKind::Boolean => json.as_bool().map(Self::Boolean),
            TypeKind::TinyInt => integer(json).and_then(|value| value.try_into().ok()).map(Self::Int8),
            TypeKind::SmallInt => integer(json).and_then(|value| value.try_into().ok()).map(Self::Int16),
            TypeKind::Int => integer(json).and_then(|value| value.try_into().ok()).map(Self::Int32),
            TypeKind::BigInt => integer(json).map(Self::Int64),
            TypeKind::Float => return number_or_text(json, data_type),
            TypeKind::Double => return number_or_text(json, data_type),
            TypeKind::Char(_) | TypeKind::VarChar(_) => return Self::parse(text()?, data_type),
            TypeKind::Binary(length) | TypeKind::VarBinary(length) => bytes_of_hex(text()?)
                .filter(|bytes| bytes.len() <= *length as usize)
                .map(Self::Bytes),
            TypeKind::Decimal(precision, scale) => {
                let digits = match json {
                    Value::Number(number) => number.to_string(),
                    _ => text()?.to_owned(),
                };
                match parse_decimal(&digits, *precision, *scale) {
                    Some(ParsedDecimal::Value(value)) => Some(Self::Decimal(value)),
                    Some(ParsedDecimal::Overflow) | None => None,
                }
            }
            TypeKind::Date => parse_date(text()?).map(Self::Date),
            TypeKind::Time(_) => time_of_day(text()?).map(Self::Time),
            TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => {
                let text = text()?;
                let text = text.strip_suffix('Z').unwrap_or(text);
                parse_timestamp(text, *precision).map(|(millis, nanos)| Self::Timestamp { millis, nanos })
            }
            TypeKind::Variant => match json.as_array().map(Vec::as_slice) {
                Some([Value::String(value), Value::String(metadata)]) => bytes_of_hex(value)
                    .zip(bytes_of_hex(metadata))
                    .map(|(value, metadata)| Self::Variant { value, metadata }),
                _ => None,
            },
            TypeKind::Array(element) => {
                let elements = json.as_array().ok_or_else(refuse)?;
                let elements = elements.iter().map(|value| Self::from_json(value, element));
                Some(Self::Array(elements.collect::<Result<_, _>>()?))
            }
            TypeKind::Map(key, value) => Some(Self::Map(entries_from_json(json, key, value)?)),
            TypeKind::Multiset(element) => {
                let count = DataType::not_null(TypeKind::Int);
                Some(Self::Map(entries_from_json(json, element, &count)?))
            }
            TypeKind::Row(fields) => match json {
                Value::Array(values) if values.len() == fields.len() => {
                    let values = values.iter().zip(fields);
                    let values = values.map(|(value, field)| Self::from_json(value, &field.data_type));
                    Some(Self::Row(values.collect::<Result<_, _>>()?))
                }
                Value::Object(members)
                    if members
                        .keys()
                        .all(|name| fields.iter().any(|field| field.name == *name)) =>
                {
                    let values = fields.iter().map(|field| {
                        let value = members.get(&field.name).unwrap_or(&Value::Null);
                        Self::from_json(value, &field.data_type)
                    });
                    Some(Self::Row(values.collect::<Result<_, _>>()?))
                }
                _ => None,
            },
            TypeKind::Blob | TypeKind::Vector(..) => {
                return Err(FormatError::unsupported(format!("a value of {data_type} as JSON")));
            }
        };
        value.ok_or_else(refuse)
    }
}

/// A finite float keeps its shortest text (an `f32` as `f32`), so that reading it back gives the same bits.
fn float_to_json(value: f64, shortest: impl Fn() -> String) -> Value {
    if value.is_nan() {
        return Value::from("NaN");
    }
    if value.is_infinite() {
        return Value::from(if value > 0.0 { "Infinity" } else { "-Infinity" });
    }
    let number = shortest().parse().ok().and_then(Number::from_f64);
    number.map_or(Value::Null, Value::Number)
}

fn number_or_text(json: &Value, data_type: &DataType) -> Result<Datum, FormatError> {
    match json {
        Value::Number(number) => Datum::parse(&number.to_string(), data_type),
        Value::String(text) => Datum::parse(text, data_type),
        _ => Err(FormatError::invalid(format!("{json} is no value of {data_type}"))),
    }
}

fn integer(json: &Value) -> Option<i64> {
    json.as_i64().or_else(|| json.as_str()?.parse().ok())
}

fn entries_to_json(entries: &[(Datum, Datum)], key: &DataType, value: &DataType) -> Value {
    let mut entries: Vec<_> = entries
        .iter()
        .map(|(k, v)| Value::Array(vec![k.to_json(key), v.to_json(value)]))
        .collect();
    entries.sort_by_cached_key(Value::to_string);
    Value::Array(entries)
}

fn entries_from_json(json: &Value, key: &DataType, value: &DataType) -> Result<Vec<(Datum, Datum)>, FormatError> {
    let refuse = || FormatError::invalid(format!("{json} is no map: expected an array of [key, value]"));
    match json {
        Value::Array(entries) => entries
            .iter()
            .map(|entry| match entry.as_array().map(Vec::as_slice) {
                Some([k, v]) => Ok((Datum::from_json(k, key)?, Datum::from_json(v, value)?)),
                _ => Err(refuse()),
            })
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(k, v)| Ok((Datum::parse(k, key)?, Datum::from_json(v, value)?)))
            .collect(),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::typed_values;
    use super::*;

    #[test]
    fn forms() {
        let cases = [
            (Datum::Float32(1.1), TypeKind::Float, "1.1"),
            (Datum::Float64(-0.0), TypeKind::Double, "-0.0"),
            (Datum::Float64(f64::NEG_INFINITY), TypeKind::Double, "\"-Infinity\""),
            (Datum::Bytes(vec![0, 255]), TypeKind::VarBinary(5), "\"00ff\""),
            (Datum::Decimal(-12_345), TypeKind::Decimal(10, 2), "\"-123.45\""),
            (Datum::Date(-1), TypeKind::Date, "\"1969-12-31\""),
            (Datum::Time(1), TypeKind::Time(3), "\"00:00:00.001\""),
            (Datum::Time(43_200_000), TypeKind::Time(0), "\"12:00:00.000\""),
            (
                Datum::Timestamp { millis: -1, nanos: 0 },
                TypeKind::LocalZonedTimestamp(3),
                "\"1969-12-31 23:59:59.999Z\"",
            ),
            (
                Datum::Map(vec![
                    (Datum::Int32(2), Datum::Null),
                    (Datum::Int32(1), Datum::Boolean(true)),
                ]),
                TypeKind::Map(
                    Box::new(DataType::not_null(TypeKind::Int)),
                    Box::new(DataType::nullable(TypeKind::Boolean)),
                ),
                "[[1,true],[2,null]]",
            ),
        ];
        for (value, kind, text) in cases {
            assert_eq!(value.to_json(&DataType::nullable(kind)).to_string(), text);
        }
    }

    #[test]
    fn wrong_json_names_value_and_type() {
        let int = DataType::nullable(TypeKind::Int);
        let error = Datum::from_json(&serde_json::json!(2_147_483_648_i64), &int).unwrap_err();
        assert_eq!(error.to_string(), "2147483648 is no value of INT");
        let bytes = DataType::nullable(TypeKind::VarBinary(9));
        assert!(Datum::from_json(&serde_json::json!("0"), &bytes).is_err());
        assert!(Datum::from_json(&serde_json::json!("€0"), &bytes).is_err());
        let bytes = DataType::nullable(TypeKind::Binary(1));
        let error = Datum::from_json(&serde_json::json!("0000"), &bytes).unwrap_err();
        assert_eq!(error.to_string(), "\"0000\" is no value of BINARY(1)");
        let time = DataType::nullable(TypeKind::Time(3));
        for text in ["24:00:00", "86400000", "00:00:00-1"] {
            assert!(Datum::from_json(&serde_json::json!(text), &time).is_err(), "{text}");
        }
    }

    proptest! {
        /// Maps come back sorted by the text of their entries, and timestamps cut to their precision: what was read once stays the same.
        /// A year before 0 has a text that nothing reads back, as in Java.
        #[test]
        fn reading_back((data_type, values) in typed_values(super::super::tests::arrow_types())) {
            for value in values {
                match Datum::from_json(&value.to_json(&data_type), &data_type) {
                    Ok(read) => {
                        let json = read.to_json(&data_type);
                        prop_assert_eq!(Datum::from_json(&json, &data_type).unwrap().to_json(&data_type), json);
                    }
                    Err(error) => prop_assert!(error.to_string().contains("\"-"), "{}", error),
                }
            }
        }
    }
}
