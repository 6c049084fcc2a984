//! JSON values whose numbers keep their digits.

use paimon::format::types::{DataType, TypeKind};
use paimon_cdc::json::Json;
use serde_json::{Map, Number, Value};

/// A value for [`Datum::from_json`](paimon::format::types::Datum::from_json). A number of a type that holds fractions comes as the text
/// that it is written in, because the nearest double is another number; `-0` is an integer.
pub(super) fn with_exact_numbers(json: Json<'_>, data_type: &DataType) -> Value {
    let kind = &data_type.kind;
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(value),
        Json::String(text) => Value::String(text.into_owned()),
        Json::Number(text) => number(text, kind),
        Json::Array(elements) => match kind {
            TypeKind::Array(element) => each(elements, element),
            TypeKind::Row(fields) if fields.len() == elements.len() => elements
                .into_iter()
                .zip(fields)
                .map(|(value, field)| with_exact_numbers(value, &field.data_type))
                .collect(),
            TypeKind::Map(key, value) => pairs(elements, key, value),
            TypeKind::Multiset(element) => pairs(elements, element, &DataType::not_null(TypeKind::Int)),
            _ => each(elements, data_type),
        },
        Json::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let of = match kind {
                    TypeKind::Map(_, of) => Some(of.as_ref()),
                    TypeKind::Row(fields) => fields
                        .iter()
                        .find(|field| field.name == name)
                        .map(|field| &field.data_type),
                    _ => None,
                };
                let value = with_exact_numbers(value, of.unwrap_or(data_type));
                (name.into_owned(), value)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

fn number(text: &str, kind: &TypeKind) -> Value {
    if matches!(kind, TypeKind::Decimal(..) | TypeKind::Float | TypeKind::Double) {
        return Value::from(text);
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Value::from(integer);
    }
    // Of another type: the number is there to be shown in the refusal.
    match text.parse::<Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::from(text),
    }
}

fn each(elements: Vec<Json<'_>>, data_type: &DataType) -> Value {
    elements
        .into_iter()
        .map(|value| with_exact_numbers(value, data_type))
        .collect()
}

/// The entries of a map, `[key, value]` each.
fn pairs(entries: Vec<Json<'_>>, key: &DataType, value: &DataType) -> Value {
    let entry = |entry| match entry {
        Json::Array(parts) => parts
            .into_iter()
            .zip([key, value].into_iter().cycle())
            .map(|(part, data_type)| with_exact_numbers(part, data_type))
            .collect(),
        other => with_exact_numbers(other, value),
    };
    entries.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use paimon::format::types::Datum;

    use super::*;

    fn read(json: &str, data_type: &str) -> String {
        let data_type: DataType = data_type.parse().unwrap();
        let value = with_exact_numbers(paimon_cdc::json::parse(json).unwrap(), &data_type);
        match Datum::from_json(&value, &data_type) {
            Ok(value) => value.to_json(&data_type).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn digits_are_kept() {
        let decimal = "DECIMAL(38, 10)";
        for digits in [
            "1234567890123456789012345678.0123456789",
            "9007199254740993.0000000001",
            "-0.0000000001",
        ] {
            assert_eq!(read(digits, decimal), format!("{digits:?}"));
        }
        assert_eq!(read("1e3", "DECIMAL(5, 1)"), "\"1000.0\"");
        assert_eq!(
            read("123456", "DECIMAL(5, 0)"),
            "\"123456\" is no value of DECIMAL(5, 0)"
        );
        assert_eq!(read("5e-324", "DOUBLE"), "5e-324");
        assert_eq!(read("0.1", "FLOAT"), "0.1");
        assert_eq!(read("9223372036854775807", "BIGINT"), "9223372036854775807");
    }

    #[test]
    fn integers_are_integers() {
        assert_eq!(read("-0", "INT"), "0");
        assert_eq!(read("1.5", "INT"), "1.5 is no value of INT");
        assert_eq!(
            read("9223372036854775808", "BIGINT"),
            "9223372036854775808 is no value of BIGINT"
        );
        assert_eq!(read("1", "STRING"), "1 is no value of STRING");
    }

    #[test]
    fn within_other_values() {
        let long = "12345678901234567890.12";
        let text = format!("{long:?}");
        assert_eq!(read(&format!("[{long}]"), "ARRAY<DECIMAL(22, 2)>"), format!("[{text}]"));
        assert_eq!(
            read(&format!("[1, {long}]"), "ROW<a INT, b DECIMAL(22, 2)>"),
            format!("[1,{text}]")
        );
        assert_eq!(
            read(&format!("{{\"b\": {long}}}"), "ROW<a INT, b DECIMAL(22, 2)>"),
            format!("[null,{text}]")
        );
        for map in [format!("[[1, {long}]]"), format!("{{\"1\": {long}}}")] {
            assert_eq!(read(&map, "MAP<INT, DECIMAL(22, 2)>"), format!("[[1,{text}]]"));
        }
    }
}
