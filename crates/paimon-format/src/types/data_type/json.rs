//! Types and fields as schema files hold them.
//!
//! An atomic type is its SQL text; ARRAY, MAP, MULTISET, VECTOR and ROW are objects whose `type` is the name with or without
//! `NOT NULL`. Source: `org.apache.paimon.types.DataTypeJsonParser` and the types' `serializeJson`.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::parser::parse_atomic;
use crate::error::FormatError;
use crate::types::{DataField, DataType, MAX_LENGTH, TypeKind};

impl Serialize for DataType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match &self.kind {
            TypeKind::Array(_) => "ARRAY",
            TypeKind::Multiset(_) => "MULTISET",
            TypeKind::Map(..) => "MAP",
            TypeKind::Vector(..) => "VECTOR",
            TypeKind::Row(_) => "ROW",
            _ => return serializer.collect_str(self),
        };
        let mut object = serializer.serialize_map(None)?;
        match self.nullable {
            true => object.serialize_entry("type", name)?,
            false => object.serialize_entry("type", &format!("{name} NOT NULL"))?,
        }
        match &self.kind {
            TypeKind::Array(element) | TypeKind::Multiset(element) => object.serialize_entry("element", element)?,
            TypeKind::Map(key, value) => {
                object.serialize_entry("key", key)?;
                object.serialize_entry("value", value)?;
            }
            TypeKind::Vector(element, length) => {
                object.serialize_entry("element", element)?;
                object.serialize_entry("length", length)?;
            }
            TypeKind::Row(fields) => object.serialize_entry("fields", fields)?,
            _ => {}
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for DataType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type_from_json(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for DataField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("id", &self.id)?;
        object.serialize_entry("name", &self.name)?;
        object.serialize_entry("type", &self.data_type)?;
        if let Some(description) = &self.description {
            object.serialize_entry("description", description)?;
        }
        if let Some(default_value) = &self.default_value {
            object.serialize_entry("defaultValue", default_value)?;
        }
        object.end()
    }
}

impl<'de> Deserialize<'de> for DataField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        field_from_json(&Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

// The parser of JSON text ends at a depth of 128, which ends these two as well.

fn type_from_json(json: &Value) -> Result<DataType, FormatError> {
    let (object, name) = match json {
        Value::String(text) => return parse_atomic(text),
        Value::Object(object) => match object.get("type") {
            Some(Value::String(name)) => (object, name),
            _ => return Err(FormatError::invalid(format!("a type without the text `type`: {json}"))),
        },
        _ => {
            return Err(FormatError::invalid(format!(
                "a type is a text or an object, not {json}"
            )));
        }
    };
    let part = |part: &str| match object.get(part) {
        Some(json) => type_from_json(json).map(Box::new),
        None => Err(FormatError::invalid(format!("the type {name} has no `{part}`"))),
    };
    let kind = if name.starts_with("ARRAY") {
        TypeKind::Array(part("element")?)
    } else if name.starts_with("VECTOR") {
        let length = object.get("length").and_then(Value::as_u64);
        match length.map(u32::try_from) {
            Some(Ok(length @ 1..=MAX_LENGTH)) => TypeKind::Vector(part("element")?, length),
            _ => {
                return Err(FormatError::invalid(format!(
                    "the type {name} has no `length` from 1 to {MAX_LENGTH}"
                )));
            }
        }
    } else if name.starts_with("MULTISET") {
        TypeKind::Multiset(part("element")?)
    } else if name.starts_with("MAP") {
        TypeKind::Map(part("key")?, part("value")?)
    } else if name.starts_with("ROW") {
        match object.get("fields") {
            Some(Value::Array(fields)) => TypeKind::Row(fields.iter().map(field_from_json).collect::<Result<_, _>>()?),
            _ => return Err(FormatError::invalid(format!("the type {name} has no list `fields`"))),
        }
    } else {
        return Err(FormatError::unsupported(format!("the type {name:?}")));
    };
    Ok(DataType {
        kind,
        nullable: !name.contains("NOT NULL"),
    })
}

fn field_from_json(json: &Value) -> Result<DataField, FormatError> {
    let text = |key: &str| json.get(key).and_then(Value::as_str);
    let Some(name) = text("name") else {
        return Err(FormatError::invalid(format!("a field without the text `name`: {json}")));
    };
    let id = json
        .get("id")
        .and_then(Value::as_i64)
        .and_then(|id| i32::try_from(id).ok());
    let Some(id) = id else {
        return Err(FormatError::invalid(format!(
            "field {name} has no `id` that is a 32-bit number"
        )));
    };
    let Some(data_type) = json.get("type") else {
        return Err(FormatError::invalid(format!("field {name} has no `type`")));
    };
    let data_type = type_from_json(data_type).map_err(|error| in_field(name, &error))?;
    Ok(DataField {
        id,
        name: name.to_owned(),
        data_type,
        description: text("description").map(str::to_owned),
        default_value: text("defaultValue").map(str::to_owned),
    })
}

fn in_field(name: &str, error: &FormatError) -> FormatError {
    match error {
        FormatError::Unsupported(message) => FormatError::unsupported(format!("field {name}: {message}")),
        error => FormatError::invalid(format!("field {name}: {error}")),
    }
}

#[cfg(test)]
mod tests;
