//! From what a source writes to a value of the column's type.

mod binary;
mod source;
mod temporal;

use paimon::format::types::{DataField, DataType, Datum, TypeKind};

use crate::error::RecordError;
use crate::json::Json;

pub use source::{Dialect, Encoding, SourceType, TimeUnit};

/// The value that `json` stands for in a column of type `wanted`, written as `encoding` says.
///
/// Numbers may come as text and text as numbers; fractions beyond a DECIMAL's scale round half up and those beyond a timestamp's
/// precision are cut, as in Java. A local timestamp without zone is UTC.
///
/// Errors: what was found, and the type; an integer, text or decimal that the type cannot hold is never changed to fit.
///
/// Source: `org.apache.paimon.utils.TypeUtils#castFromCdcValueString`.
pub fn decode(json: &Json<'_>, wanted: &DataType, encoding: &Encoding) -> Result<Datum, RecordError> {
    if *json == Json::Null {
        return match wanted.nullable {
            true => Ok(Datum::Null),
            false => Err(RecordError::new("NOT NULL, but there is no value")),
        };
    }
    match &wanted.kind {
        TypeKind::Char(_) | TypeKind::VarChar(_) => text(json, wanted, encoding),
        TypeKind::Binary(length) | TypeKind::VarBinary(length) => {
            let bytes = binary::decode(json, encoding)?;
            match bytes.len() <= *length as usize {
                true => Ok(Datum::Bytes(bytes)),
                false => Err(RecordError::new(format!("{} bytes do not fit {wanted}", bytes.len()))),
            }
        }
        TypeKind::Decimal(..) => parse(&decimal_text(json, encoding, wanted)?, wanted),
        TypeKind::Date | TypeKind::Time(_) | TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => {
            temporal::decode(json, wanted, encoding)
        }
        TypeKind::Boolean => match json {
            Json::Bool(value) => Ok(Datum::Boolean(*value)),
            Json::Number(text) => parse(text, wanted),
            Json::String(text) => parse(text, wanted),
            _ => Err(refuse(json, wanted)),
        },
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::Int
        | TypeKind::BigInt
        | TypeKind::Float
        | TypeKind::Double => match json {
            Json::Number(text) => number(text, wanted),
            Json::String(text) => parse(text, wanted),
            Json::Bool(value) => parse(if *value { "1" } else { "0" }, wanted),
            _ => Err(refuse(json, wanted)),
        },
        TypeKind::Array(element) => array(json, element, wanted, encoding),
        TypeKind::Map(key, value) => entries(json, key, value, wanted, encoding),
        TypeKind::Multiset(element) => entries(json, element, &DataType::not_null(TypeKind::Int), wanted, encoding),
        TypeKind::Row(fields) => row(json, fields, wanted, encoding),
        TypeKind::Variant | TypeKind::Blob | TypeKind::Vector(..) => Err(RecordError::new(format!(
            "values of {wanted} are not read from change streams"
        ))),
    }
}

/// What Paimon's own text form of the type allows.
fn parse(text: &str, wanted: &DataType) -> Result<Datum, RecordError> {
    Datum::parse(text, wanted).map_err(|error| match text.len() {
        0..=200 => RecordError::new(error),
        bytes => RecordError::new(format!("a text of {bytes} bytes is no value of {wanted}")),
    })
}

/// As [`parse`], of a number, which a DOUBLE or FLOAT must not make infinite.
fn number(text: &str, wanted: &DataType) -> Result<Datum, RecordError> {
    match parse(text, wanted)? {
        Datum::Float64(value) if value.is_infinite() => {
            Err(RecordError::new(format!("{text} is no value of {wanted}")))
        }
        Datum::Float32(value) if value.is_infinite() => {
            Err(RecordError::new(format!("{text} is no value of {wanted}")))
        }
        value => Ok(value),
    }
}

fn refuse(json: &Json<'_>, wanted: &DataType) -> RecordError {
    RecordError::new(format!("{} is no value of {wanted}", json.what()))
}

fn text(json: &Json<'_>, wanted: &DataType, encoding: &Encoding) -> Result<Datum, RecordError> {
    let text = match encoding {
        Encoding::Enum(names) => names_of(json, names, false)?.concat(),
        Encoding::Set(names) => names_of(json, names, true)?.join(","),
        Encoding::VariableDecimal => decimal_text(json, encoding, wanted)?,
        Encoding::Base64 | Encoding::Bits => String::from_utf8(binary::decode(json, encoding)?)
            .map_err(|_| RecordError::new(format!("bytes that are no UTF-8 in {wanted}")))?,
        other => match (other.natural_type(), other) {
            (Some(natural), _) => decode(json, &natural, other)?.to_text(&natural),
            (None, Encoding::Plain(dialect)) => plain_text(json, *dialect),
            (None, _) => json.to_string(),
        },
    };
    parse(&text, wanted)
}

/// Text as it is, everything else as compact JSON; a SET that comes as an array joined by commas, where the dialect has it so.
fn plain_text(json: &Json<'_>, dialect: Dialect) -> String {
    match json {
        Json::String(text) => text.clone().into_owned(),
        Json::Array(elements) if dialect == Dialect::Maxwell => {
            // No member of a SET holds a comma: such an array is JSON.
            let names = elements
                .iter()
                .map(|element| element.as_str().filter(|text| !text.contains(',')));
            match names.collect::<Option<Vec<_>>>() {
                Some(names) => names.join(","),
                None => json.to_string(),
            }
        }
        other => other.to_string(),
    }
}

/// The names that an ENUM's index (from 1) or a SET's bit mask stands for. A text that is no number is a name already.
fn names_of(json: &Json<'_>, names: &[String], set: bool) -> Result<Vec<String>, RecordError> {
    let text = match json {
        Json::Number(text) => *text,
        Json::String(text) => text,
        _ => return Err(RecordError::new(format!("{} is no ENUM or SET", json.what()))),
    };
    let Ok(number) = text.parse::<u64>() else {
        return Ok(vec![text.to_owned()]);
    };
    let named = names.iter().enumerate();
    if set {
        let bits = named
            .clone()
            .map(|(i, _)| 1_u64.checked_shl(i as u32).unwrap_or(0))
            .sum::<u64>();
        if number & !bits != 0 {
            return Err(RecordError::new(format!(
                "{number} is no SET of {} members",
                names.len()
            )));
        }
        let chosen = named.filter(|(i, _)| number & 1_u64.checked_shl(*i as u32).unwrap_or(0) != 0);
        return Ok(chosen.map(|(_, name)| name.clone()).collect());
    }
    // MySQL keeps a value that is none of an ENUM as index 0, the empty text.
    if number == 0 {
        return Ok(vec![String::new()]);
    }
    let name = usize::try_from(number - 1).ok().and_then(|i| names.get(i));
    let name = name.ok_or_else(|| RecordError::new(format!("{number} is no index of an ENUM of {}", names.len())))?;
    Ok(vec![name.clone()])
}

/// A decimal as digits, perhaps with an exponent.
fn decimal_text(json: &Json<'_>, encoding: &Encoding, wanted: &DataType) -> Result<String, RecordError> {
    match (encoding, json) {
        (Encoding::Decimal { scale }, Json::String(text)) => binary::decimal(text, *scale),
        (Encoding::VariableDecimal, Json::Object(_)) => {
            let scale = match json.get("scale") {
                Some(Json::Number(scale)) => scale.parse::<i32>().ok(),
                _ => None,
            };
            match (scale, json.get("value").and_then(Json::as_str)) {
                (Some(scale), Some(value)) => binary::decimal(value, scale),
                _ => Err(RecordError::new("expected a decimal of `scale` and `value`")),
            }
        }
        (_, Json::Number(text)) => Ok((*text).to_owned()),
        (_, Json::String(text)) => Ok(text.clone().into_owned()),
        _ => Err(refuse(json, wanted)),
    }
}

fn array(json: &Json<'_>, element: &DataType, wanted: &DataType, encoding: &Encoding) -> Result<Datum, RecordError> {
    let inner = encoding.element();
    match (json, encoding) {
        (Json::Array(elements), _) => {
            let elements = elements.iter().map(|json| decode(json, element, &inner));
            Ok(Datum::Array(elements.collect::<Result<_, _>>()?))
        }
        (_, Encoding::Set(names)) => {
            let names = names_of(json, names, true)?.into_iter();
            let names = names.map(|name| decode(&Json::String(name.into()), element, &inner));
            Ok(Datum::Array(names.collect::<Result<_, _>>()?))
        }
        (Json::String(text), _) => parse(text, wanted),
        _ => Err(refuse(json, wanted)),
    }
}

/// An object, or an array of `[key, value]`.
fn entries(
    json: &Json<'_>,
    key: &DataType,
    value: &DataType,
    wanted: &DataType,
    encoding: &Encoding,
) -> Result<Datum, RecordError> {
    let inner = encoding.element();
    let entries: Result<Vec<_>, RecordError> = match json {
        Json::Object(members) => members
            .iter()
            .map(|(name, json)| Ok((parse(name, key)?, decode(json, value, &inner)?)))
            .collect(),
        Json::Array(pairs) => pairs
            .iter()
            .map(|pair| match pair {
                Json::Array(pair) => match pair.as_slice() {
                    [k, v] => Ok((decode(k, key, &inner)?, decode(v, value, &inner)?)),
                    _ => Err(refuse(json, wanted)),
                },
                _ => Err(refuse(json, wanted)),
            })
            .collect(),
        Json::String(text) if !matches!(wanted.kind, TypeKind::Multiset(_)) => return parse(text, wanted),
        _ => Err(refuse(json, wanted)),
    };
    Ok(Datum::Map(entries?))
}

/// An object by field name, or an array in order.
fn row(json: &Json<'_>, fields: &[DataField], wanted: &DataType, encoding: &Encoding) -> Result<Datum, RecordError> {
    let inner = encoding.element();
    let part = |field: &DataField, json: &Json<'_>| {
        decode(json, &field.data_type, &inner)
            .map_err(|error| RecordError::new(format!("field {}: {error}", field.name)))
    };
    let values: Result<Vec<_>, RecordError> = match json {
        Json::Object(members) => {
            if let Some((name, _)) = members
                .iter()
                .find(|(name, _)| !fields.iter().any(|field| field.name == *name))
            {
                return Err(RecordError::new(format!("{name:?} is no field of {wanted}")));
            }
            fields
                .iter()
                .map(|field| part(field, json.get(&field.name).unwrap_or(&Json::Null)))
                .collect()
        }
        Json::Array(values) if values.len() == fields.len() => fields
            .iter()
            .zip(values)
            .map(|(field, json)| part(field, json))
            .collect(),
        Json::String(text) => return parse(text, wanted),
        _ => Err(refuse(json, wanted)),
    };
    Ok(Datum::Row(values?))
}

#[cfg(test)]
mod tests;
