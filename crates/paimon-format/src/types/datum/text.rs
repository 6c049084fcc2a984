//! Values from text and as text.

use serde_json::Value;

use super::hex::hex_of_bytes;
use super::number::{ParsedDecimal, format_decimal, format_f32, format_f64, parse_decimal, parse_f32, parse_f64};
use super::temporal::{
    format_date, format_time, format_timestamp, is_digits, parse_date, parse_timestamp, time_of_day,
};
use crate::error::FormatError;
use crate::types::{DataType, Datum, MAX_LENGTH, TypeKind};

impl Datum {
    /// Reads a partition value, a literal or a default value: what `org.apache.paimon.utils.TypeUtils.castFromString` accepts. ARRAY, MAP
    /// and ROW are JSON. A TIMESTAMP WITH LOCAL TIME ZONE is read as UTC; Java takes the time zone of its process.
    ///
    /// Errors: `Invalid` with the text and the type; `Unsupported` for types that have no text.
    pub fn parse(text: &str, data_type: &DataType) -> Result<Self, FormatError> {
        let refuse = || FormatError::invalid(format!("{text:?} is no value of {data_type}"));
        let parsed = match &data_type.kind {
            TypeKind::Char(length) | TypeKind::VarChar(length) => {
                let fits = *length == MAX_LENGTH || text.chars().count() <= *length as usize;
                fits.then(|| Self::String(text.to_owned()))
            }
            TypeKind::Binary(length) | TypeKind::VarBinary(length) => {
                (text.len() <= *length as usize).then(|| Self::Bytes(text.into()))
            }
            TypeKind::Boolean => parse_boolean(text).map(Self::Boolean),
            TypeKind::TinyInt => text.parse().ok().map(Self::Int8),
            TypeKind::SmallInt => text.parse().ok().map(Self::Int16),
            TypeKind::Int => text.parse().ok().map(Self::Int32),
            TypeKind::BigInt => text.parse().ok().map(Self::Int64),
            TypeKind::Float => exact_f32(text).map(Self::Float32),
            TypeKind::Double => parse_f64(text).map(Self::Float64),
            TypeKind::Decimal(precision, scale) => match parse_decimal(text, *precision, *scale) {
                Some(ParsedDecimal::Value(value)) => Some(Self::Decimal(value)),
                Some(ParsedDecimal::Overflow) | None => None,
            },
            TypeKind::Date => parse_date(text).map(Self::Date),
            TypeKind::Time(_) => time_of_day(text).map(Self::Time),
            TypeKind::Timestamp(precision) if is_digits(text) => epoch(text, *precision),
            TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => {
                let parsed = parse_timestamp(text, *precision);
                parsed.map(|(millis, nanos)| Self::Timestamp { millis, nanos })
            }
            TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Row(_) => match serde_json::from_str(text) {
                Ok(json) => from_json(&json, data_type)?,
                Err(_) => array_of_words(text, &data_type.kind),
            },
            TypeKind::Variant | TypeKind::Blob | TypeKind::Vector(..) | TypeKind::Multiset(_) => {
                return Err(FormatError::unsupported(format!("a value of {data_type} as text")));
            }
        };
        parsed.ok_or_else(refuse)
    }

    /// The text that Java's cast to STRING gives: `null`, `[1, 2]`, `{k -> v}`, `{a, b}`, timestamps without a zone (UTC). Bytes are shown
    /// as UTF-8 where they are that, else as `x'…'`.
    pub fn to_text(&self, data_type: &DataType) -> String {
        match (self, &data_type.kind) {
            (Self::Null, _) => "null".to_owned(),
            (Self::Boolean(value), _) => value.to_string(),
            (Self::Int8(value), _) => value.to_string(),
            (Self::Int16(value), _) => value.to_string(),
            (Self::Int32(value), _) => value.to_string(),
            (Self::Int64(value), _) => value.to_string(),
            (Self::Float32(value), _) => format_f32(*value),
            (Self::Float64(value), _) => format_f64(*value),
            (Self::String(value), _) => value.clone(),
            (Self::Bytes(value), _) => text_of_bytes(value),
            (Self::Decimal(value), TypeKind::Decimal(_, scale)) => format_decimal(*value, *scale),
            (Self::Decimal(value), _) => format_decimal(*value, 0),
            (Self::Date(days), _) => format_date((*days).into()),
            (Self::Time(ms), TypeKind::Time(precision)) => format_time(*ms, *precision),
            (Self::Time(ms), _) => format_time(*ms, 3),
            (
                Self::Timestamp { millis, nanos },
                TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision),
            ) => format_timestamp(*millis, *nanos, *precision),
            (Self::Timestamp { millis, nanos }, _) => format_timestamp(*millis, *nanos, 0),
            (Self::Variant { value, metadata }, _) => format!("{{{}, {}}}", quoted_hex(value), quoted_hex(metadata)),
            (Self::Array(elements), TypeKind::Array(element)) => {
                joined('[', elements.iter().map(|value| value.to_text(element)), ']')
            }
            (Self::Map(entries), TypeKind::Map(key, value)) => joined('{', texts(entries, key, value), '}'),
            (Self::Map(entries), TypeKind::Multiset(element)) => {
                joined('{', texts(entries, element, &DataType::not_null(TypeKind::Int)), '}')
            }
            (Self::Row(values), TypeKind::Row(fields)) => {
                let values = values.iter().zip(fields);
                joined('{', values.map(|(value, field)| value.to_text(&field.data_type)), '}')
            }
            // A value of another type than said: still something to look at.
            (Self::Array(_) | Self::Map(_) | Self::Row(_), _) => format!("{self:?}"),
        }
    }
}

/// `t`, `true`, `y`, `yes`, `1` and their opposites, in any case.
pub(crate) fn parse_boolean(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// A FLOAT whose text says no more than a FLOAT can hold: its exact value, or what Java or Rust prints for it. These differ for the smallest
/// numbers: 1.4E-45 and 1e-45.
fn exact_f32(text: &str) -> Option<f32> {
    let (double, float) = (parse_f64(text)?, parse_f32(text)?);
    let same = double == f64::from(float)
        || format_f32(float) == format_f64(double)
        || format!("{float:e}") == format!("{double:e}");
    same.then_some(float)
}

/// A count of units since the epoch: seconds, milli-, micro- or nanoseconds by the precision; other precisions have none.
pub(crate) fn epoch(text: &str, precision: u8) -> Option<Datum> {
    let units: i64 = text.parse().ok()?;
    let (millis, nanos) = match precision {
        0 => (units.checked_mul(1000)?, 0),
        3 => (units, 0),
        6 => (units.div_euclid(1000), units.rem_euclid(1000) * 1000),
        9 => (units.div_euclid(1_000_000), units.rem_euclid(1_000_000)),
        _ => return None,
    };
    Some(Datum::Timestamp {
        millis,
        nanos: nanos as i32,
    })
}

/// `Ok(None)` when the JSON is of another kind than the type.
fn from_json(json: &Value, data_type: &DataType) -> Result<Option<Datum>, FormatError> {
    let part = |json: &Value, data_type: &DataType| match json {
        Value::Null => Ok(Datum::Null),
        Value::String(text) => Datum::parse(text, data_type),
        other => match &data_type.kind {
            TypeKind::Array(_) | TypeKind::Map(..) | TypeKind::Row(_) => from_json(other, data_type)?
                .ok_or_else(|| FormatError::invalid(format!("{other} is no value of {data_type}"))),
            _ => Datum::parse(&other.to_string(), data_type),
        },
    };
    Ok(match (json, &data_type.kind) {
        (Value::Array(elements), TypeKind::Array(element)) => {
            let elements = elements.iter().map(|json| part(json, element));
            Some(Datum::Array(elements.collect::<Result<_, _>>()?))
        }
        (Value::Object(entries), TypeKind::Map(key, value)) => {
            let entries = entries
                .iter()
                .map(|(name, json)| Ok((Datum::parse(name, key)?, part(json, value)?)));
            Some(Datum::Map(entries.collect::<Result<_, FormatError>>()?))
        }
        (Value::Object(object), TypeKind::Row(fields)) => {
            let fields = fields.iter().map(|field| match object.get(&field.name) {
                Some(json) => part(json, &field.data_type),
                None => Ok(Datum::Null),
            });
            Some(Datum::Row(fields.collect::<Result<_, _>>()?))
        }
        _ => None,
    })
}

/// `[a,b]` or `a,b` for an ARRAY of strings: the form of older clients.
fn array_of_words(text: &str, kind: &TypeKind) -> Option<Datum> {
    let TypeKind::Array(element) = kind else {
        return None;
    };
    let TypeKind::VarChar(_) = element.kind else {
        return None;
    };
    let text = text.strip_prefix('[').unwrap_or(text);
    let text = text.strip_suffix(']').unwrap_or(text);
    let mut words: Vec<_> = text.split(',').map(|word| Datum::String(word.to_owned())).collect();
    // Java's `split` drops empty strings at the end, but keeps a lone one.
    while words.len() > 1 && matches!(words.last(), Some(Datum::String(word)) if word.is_empty()) {
        words.pop();
    }
    Some(Datum::Array(words))
}

fn texts<'a>(
    entries: &'a [(Datum, Datum)],
    key: &'a DataType,
    value: &'a DataType,
) -> impl Iterator<Item = String> + 'a {
    entries
        .iter()
        .map(move |(k, v)| format!("{} -> {}", k.to_text(key), v.to_text(value)))
}

fn joined(open: char, parts: impl Iterator<Item = String>, close: char) -> String {
    let parts: Vec<String> = parts.collect();
    format!("{open}{}{close}", parts.join(", "))
}

fn text_of_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => quoted_hex(bytes),
    }
}

fn quoted_hex(bytes: &[u8]) -> String {
    format!("x'{}'", hex_of_bytes(bytes))
}
