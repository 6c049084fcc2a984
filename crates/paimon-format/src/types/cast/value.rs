//! The cast of one value, by the rules of `org.apache.paimon.casting`.

use crate::error::FormatError;
use crate::types::datum::number::{
    ParsedDecimal, fits, format_decimal, format_f64, parse_decimal, parse_f32, parse_f64, parse_integer_cast, pow10,
    rescale,
};
use crate::types::datum::temporal::{DAY_MS, is_digits, parse_date, parse_time, parse_timestamp};
use crate::types::datum::text::{epoch, parse_boolean};
use crate::types::{DataType, Datum, MAX_LENGTH, TypeKind};

/// The longest CHAR or BINARY that values are padded to: more than this a value would fill memory by its type alone.
const MAX_PADDED: u32 = 1 << 20;

/// Whether Java has a rule for the pair.
pub(super) fn supported(from: &TypeKind, to: &TypeKind) -> bool {
    use TypeKind::{
        Array, BigInt, Binary, Boolean, Char, Date, Decimal, Double, Float, Int, LocalZonedTimestamp, Map, Row,
        SmallInt, Time, Timestamp, TinyInt, VarBinary, VarChar,
    };
    let is_number = |kind: &TypeKind| matches!(kind, TinyInt | SmallInt | Int | BigInt | Float | Double | Decimal(..));
    match (from, to) {
        (_, Char(length) | Binary(length)) if *length > MAX_PADDED => false,
        (from, to) if is_number(from) && is_number(to) => true,
        (Boolean, to) => is_number(to) || matches!(to, Char(_) | VarChar(_)),
        (TinyInt | SmallInt | Int | BigInt, Boolean) => true,
        (Int | BigInt, Timestamp(_) | LocalZonedTimestamp(_)) => true,
        (from, Char(_) | VarChar(_)) if is_number(from) => true,
        (Date | Time(_) | Timestamp(_) | LocalZonedTimestamp(_), VarChar(MAX_LENGTH)) => true,
        (Array(element), Char(_) | VarChar(_)) => has_text(&element.kind),
        (Map(key, value), Char(_) | VarChar(_)) => has_text(&key.kind) && has_text(&value.kind),
        (Row(fields), Char(_) | VarChar(_)) => fields.iter().all(|field| has_text(&field.data_type.kind)),
        (Char(_) | VarChar(_) | Binary(_) | VarBinary(_), Char(_) | VarChar(_) | Binary(_) | VarBinary(_)) => {
            // Binary to CHAR goes unchecked in Java: any bytes become the string.
            true
        }
        (Char(_) | VarChar(_), to) => {
            is_number(to) || matches!(to, Boolean | Date | Time(_) | Timestamp(_) | LocalZonedTimestamp(_))
        }
        (
            Timestamp(_) | LocalZonedTimestamp(_),
            Timestamp(_) | LocalZonedTimestamp(_) | Date | Time(_) | Int | BigInt,
        ) => true,
        (Date | Time(_), Timestamp(_) | LocalZonedTimestamp(_)) => true,
        _ => false,
    }
}

/// Whether a value inside an array, a map or a row becomes text.
fn has_text(kind: &TypeKind) -> bool {
    supported(kind, &TypeKind::VarChar(MAX_LENGTH))
}

/// `value`, of type `from`, as a value of type `to`.
pub(super) fn cast(value: &Datum, from: &DataType, to: &DataType, column: &str) -> Result<Datum, FormatError> {
    let result = match (value, &to.kind) {
        (Datum::Null, _) => Some(Datum::Null),
        (value, TypeKind::Char(_) | TypeKind::VarChar(_)) => to_string(value, from, &to.kind),
        (Datum::Int8(value), kind) => from_integer((*value).into(), kind),
        (Datum::Int16(value), kind) => from_integer((*value).into(), kind),
        (Datum::Int32(value), kind) => from_integer((*value).into(), kind),
        (Datum::Int64(value), kind) => from_integer(*value, kind),
        (Datum::Float32(value), kind) => from_float((*value).into(), kind),
        (Datum::Float64(value), kind) => from_float(*value, kind),
        (Datum::Boolean(value), kind) => from_integer((*value).into(), kind),
        (Datum::Decimal(value), kind) => from_decimal(*value, &from.kind, kind),
        (Datum::String(text), kind) => from_string(text, kind),
        (Datum::Bytes(bytes), kind) => to_bytes(bytes, kind),
        (Datum::Date(days), TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_)) => {
            Some(timestamp(i64::from(*days) * DAY_MS))
        }
        (Datum::Time(ms), TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_)) => Some(timestamp((*ms).into())),
        (Datum::Timestamp { millis, nanos }, kind) => from_timestamp(*millis, *nanos, &from.kind, kind),
        _ => None,
    };
    result.ok_or_else(|| {
        FormatError::invalid(format!(
            "column {column}: {:?} of type {from} cannot be cast to {to}",
            value.to_text(from)
        ))
    })
}

fn timestamp(millis: i64) -> Datum {
    Datum::Timestamp { millis, nanos: 0 }
}

fn from_integer(value: i64, to: &TypeKind) -> Option<Datum> {
    Some(match to {
        TypeKind::Boolean => Datum::Boolean(value != 0),
        TypeKind::TinyInt => Datum::Int8(value as i8),
        TypeKind::SmallInt => Datum::Int16(value as i16),
        TypeKind::Int => Datum::Int32(value as i32),
        TypeKind::BigInt => Datum::Int64(value),
        TypeKind::Float => Datum::Float32(value as f32),
        TypeKind::Double => Datum::Float64(value as f64),
        TypeKind::Decimal(precision, scale) => decimal(rescale(value.into(), 0, *precision, *scale)),
        TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => timestamp(value.checked_mul(1000)?),
        _ => return None,
    })
}

/// Java's casts of a FLOAT go by way of DOUBLE, or by `int`, with the same results.
fn from_float(value: f64, to: &TypeKind) -> Option<Datum> {
    Some(match to {
        TypeKind::TinyInt => Datum::Int8(value as i32 as i8),
        TypeKind::SmallInt => Datum::Int16(value as i32 as i16),
        TypeKind::Int => Datum::Int32(value as i32),
        TypeKind::BigInt => Datum::Int64(value as i64),
        TypeKind::Float => Datum::Float32(value as f32),
        TypeKind::Double => Datum::Float64(value),
        TypeKind::Decimal(precision, scale) => {
            // NaN and infinity are no decimals: an error in Java as well.
            match parse_decimal(&format_f64(value), *precision, *scale)? {
                ParsedDecimal::Value(value) => Datum::Decimal(value),
                ParsedDecimal::Overflow => Datum::Null,
            }
        }
        _ => return None,
    })
}

/// Null when the number does not fit.
fn decimal(value: Option<i128>) -> Datum {
    value.map_or(Datum::Null, Datum::Decimal)
}

fn from_decimal(value: i128, from: &TypeKind, to: &TypeKind) -> Option<Datum> {
    let TypeKind::Decimal(from_precision, from_scale) = *from else {
        return None;
    };
    let unit = pow10(from_scale)?;
    // The low bits, as `BigDecimal.longValue` has it.
    let whole = || (value / unit) as i64;
    let double = || match fits(value, 18) {
        Some(value) if from_precision <= 18 => value as f64 / unit as f64,
        _ => parse_f64(&format_decimal(value, from_scale)).unwrap_or(f64::NAN),
    };
    Some(match to {
        TypeKind::TinyInt => Datum::Int8(whole() as i8),
        TypeKind::SmallInt => Datum::Int16(whole() as i16),
        TypeKind::Int => Datum::Int32(whole() as i32),
        TypeKind::BigInt => Datum::Int64(whole()),
        TypeKind::Float => Datum::Float32(double() as f32),
        TypeKind::Double => Datum::Float64(double()),
        TypeKind::Decimal(precision, scale) => decimal(rescale(value, from_scale, *precision, *scale)),
        _ => return None,
    })
}

fn from_string(text: &str, to: &TypeKind) -> Option<Datum> {
    let integer = || parse_integer_cast(text);
    Some(match to {
        TypeKind::Boolean => Datum::Boolean(parse_boolean(text)?),
        TypeKind::TinyInt => Datum::Int8(integer()?.try_into().ok()?),
        TypeKind::SmallInt => Datum::Int16(integer()?.try_into().ok()?),
        TypeKind::Int => Datum::Int32(integer()?.try_into().ok()?),
        TypeKind::BigInt => Datum::Int64(integer()?),
        TypeKind::Float => Datum::Float32(parse_f32(text)?),
        TypeKind::Double => Datum::Float64(parse_f64(text)?),
        TypeKind::Decimal(precision, scale) => match parse_decimal(text, *precision, *scale)? {
            ParsedDecimal::Value(value) => Datum::Decimal(value),
            ParsedDecimal::Overflow => Datum::Null,
        },
        TypeKind::Date => Datum::Date(parse_date(text)?),
        TypeKind::Time(_) => Datum::Time(parse_time(text)?),
        TypeKind::Timestamp(precision) if is_digits(text) => epoch(text, *precision)?,
        TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => {
            let (millis, nanos) = parse_timestamp(text, *precision)?;
            Datum::Timestamp { millis, nanos }
        }
        _ => return to_bytes(text.as_bytes(), to),
    })
}

fn from_timestamp(millis: i64, nanos: i32, from: &TypeKind, to: &TypeKind) -> Option<Datum> {
    let (TypeKind::Timestamp(from) | TypeKind::LocalZonedTimestamp(from)) = from else {
        return None;
    };
    Some(match to {
        TypeKind::Date => Datum::Date(millis.div_euclid(DAY_MS).try_into().ok()?),
        TypeKind::Time(_) => Datum::Time(millis.rem_euclid(DAY_MS) as i32),
        TypeKind::Int => Datum::Int32((millis / 1000) as i32),
        TypeKind::BigInt => Datum::Int64(millis / 1000),
        TypeKind::Timestamp(to) | TypeKind::LocalZonedTimestamp(to) if from > to => truncate(millis, nanos, *to),
        TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => Datum::Timestamp { millis, nanos },
        _ => return None,
    })
}

/// `DateTimeUtils.truncate`: cut to a precision, towards zero of the epoch below a millisecond's third digit.
fn truncate(millis: i64, nanos: i32, precision: u8) -> Datum {
    match precision {
        0..=3 => {
            let unit = 10_i64.pow(u32::from(3 - precision));
            // Java looks at the digits first: nothing to cut leaves the value alone, which is the same.
            timestamp(millis / unit * unit)
        }
        _ => {
            let unit = 10_i32.pow(u32::from(9 - precision.min(9)));
            Datum::Timestamp {
                millis,
                nanos: nanos / unit * unit,
            }
        }
    }
}

/// The text of a value, cut to the length of the target, and padded for CHAR unless it comes from binary or a nested type.
fn to_string(value: &Datum, from: &DataType, to: &TypeKind) -> Option<Datum> {
    let (length, pad) = match to {
        TypeKind::Char(length) => (*length as usize, true),
        TypeKind::VarChar(length) => (*length as usize, false),
        _ => return None,
    };
    let mut text = match value {
        Datum::Bytes(bytes) => return Some(Datum::String(std::str::from_utf8(bytes).ok()?.to_owned())),
        Datum::Array(_) | Datum::Map(_) | Datum::Row(_) => return Some(Datum::String(value.to_text(from))),
        value => value.to_text(from),
    };
    let chars = text.chars().count();
    if chars > length {
        text = text.chars().take(length).collect();
    } else if pad {
        text.extend(std::iter::repeat_n(' ', length - chars));
    }
    Some(Datum::String(text))
}

/// Bytes cut to the length of the target, and filled with zeros for BINARY.
fn to_bytes(bytes: &[u8], to: &TypeKind) -> Option<Datum> {
    let (length, pad) = match to {
        TypeKind::Binary(length) => (*length as usize, true),
        TypeKind::VarBinary(length) => (*length as usize, false),
        _ => return None,
    };
    let mut bytes = bytes.get(..length).unwrap_or(bytes).to_vec();
    if pad {
        bytes.resize(length, 0);
    }
    Some(Datum::Bytes(bytes))
}
