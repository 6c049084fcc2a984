//! Avro schemas: those that Java writes for Paimon's types, and those of files.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::error::FormatError;
use crate::types::{DataField, DataType, TypeKind};

/// The name of every data file's record.
const ROOT: &str = "org.apache.paimon.avro.generated.record";
/// How deep types may nest; protects the recursion from files made to exhaust the stack.
const MAX_DEPTH: usize = 128;

/// The schema of a file with these columns.
///
/// Source: `org.apache.paimon.format.avro.AvroSchemaConverter`. Errors: `Unsupported` names the column.
pub(super) fn to_json(fields: &[DataField]) -> Result<Value, FormatError> {
    record(ROOT, fields)
}

fn record(name: &str, fields: &[DataField]) -> Result<Value, FormatError> {
    let fields = fields.iter().map(|field| {
        let mut made = json!({
            "name": field.name,
            "type": data_type(&field.data_type, &format!("{name}_{}", field.name), &field.name)?,
        });
        if field.data_type.nullable
            && let Some(made) = made.as_object_mut()
        {
            made.insert("default".to_owned(), Value::Null);
        }
        Ok(made)
    });
    let fields = fields.collect::<Result<Vec<Value>, FormatError>>()?;
    Ok(match name.rsplit_once('.') {
        Some((namespace, name)) => json!({"type": "record", "name": name, "namespace": namespace, "fields": fields}),
        None => json!({"type": "record", "name": name, "fields": fields}),
    })
}

fn data_type(of: &DataType, name: &str, column: &str) -> Result<Value, FormatError> {
    let refuse = |why: &str| {
        Err(FormatError::unsupported(format!(
            "column {column} of type {of} in Avro files{why}"
        )))
    };
    let made = match &of.kind {
        TypeKind::Boolean => json!("boolean"),
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::Int => json!("int"),
        TypeKind::BigInt => json!("long"),
        TypeKind::Float => json!("float"),
        TypeKind::Double => json!("double"),
        TypeKind::Char(_) | TypeKind::VarChar(_) => json!("string"),
        TypeKind::Binary(_) | TypeKind::VarBinary(_) => json!("bytes"),
        TypeKind::Date => json!({"type": "int", "logicalType": "date"}),
        TypeKind::Time(0..=3) => json!({"type": "int", "logicalType": "time-millis"}),
        TypeKind::Timestamp(0..=3) => json!({"type": "long", "logicalType": "timestamp-millis"}),
        TypeKind::Timestamp(4..=6) => json!({"type": "long", "logicalType": "timestamp-micros"}),
        TypeKind::LocalZonedTimestamp(0..=3) => json!({"type": "long", "logicalType": "local-timestamp-millis"}),
        TypeKind::LocalZonedTimestamp(4..=6) => json!({"type": "long", "logicalType": "local-timestamp-micros"}),
        TypeKind::Decimal(precision, scale) => {
            json!({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})
        }
        TypeKind::Array(element) => json!({"type": "array", "items": data_type(element, name, column)?}),
        TypeKind::Map(key, value) => map(key, value, name, column)?,
        // Java's counts are nullable here, unlike in Parquet files.
        TypeKind::Multiset(element) => map(element, &DataType::nullable(TypeKind::Int), name, column)?,
        TypeKind::Row(fields) => record(name, fields)?,
        TypeKind::Time(_) => return refuse(", which have times of at most milliseconds"),
        TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_) => {
            return refuse(", which have timestamps of at most microseconds");
        }
        TypeKind::Variant | TypeKind::Blob | TypeKind::Vector(..) => return refuse(""),
    };
    Ok(if of.nullable { json!(["null", made]) } else { made })
}

/// A map of strings is Avro's map, any other one an array of pairs.
fn map(key: &DataType, value: &DataType, name: &str, column: &str) -> Result<Value, FormatError> {
    if matches!(key.kind, TypeKind::Char(_) | TypeKind::VarChar(_)) {
        return Ok(json!({"type": "map", "values": data_type(value, name, column)?}));
    }
    let mut value_field = json!({"name": "value", "type": data_type(value, &format!("{name}_value"), column)?});
    if value.nullable
        && let Some(value_field) = value_field.as_object_mut()
    {
        value_field.insert("default".to_owned(), Value::Null);
    }
    let key_field = json!({"name": "key", "type": data_type(key, &format!("{name}_key"), column)?});
    let mut pair = json!({"type": "record", "name": name, "fields": [key_field, value_field]});
    if let (Some((namespace, name)), Some(pair)) = (name.rsplit_once('.'), pair.as_object_mut()) {
        pair.insert("name".to_owned(), json!(name));
        pair.insert("namespace".to_owned(), json!(namespace));
    }
    Ok(json!({"type": "array", "items": pair, "logicalType": "map"}))
}

/// A file's type, as far as its bytes depend on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AvroType {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum,
    Union(Vec<AvroType>),
    Array(Box<AvroType>),
    Map(Box<AvroType>),
    Record(Vec<(String, AvroType)>),
}

impl AvroType {
    /// From a file's `avro.schema`. The error says where it is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let json = serde_json::from_str(text).map_err(|error| format!("its schema is no JSON: {error}"))?;
        parse(&json, "", &mut BTreeMap::new(), 0)
    }
}

fn parse(
    json: &Value,
    namespace: &str,
    named: &mut BTreeMap<String, AvroType>,
    depth: usize,
) -> Result<AvroType, String> {
    if depth > MAX_DEPTH {
        return Err(format!("its schema nests types more than {MAX_DEPTH} deep"));
    }
    let wrong = || format!("its schema has {json} where a type is expected");
    match json {
        Value::String(name) => match primitive(name) {
            Some(primitive) => Ok(primitive),
            None => {
                let found = named.get(&full_name(name, namespace)).or_else(|| named.get(name));
                found
                    .cloned()
                    .ok_or_else(|| format!("its schema has no type {name} (yet)"))
            }
        },
        Value::Array(branches) => {
            let branches = branches.iter().map(|branch| parse(branch, namespace, named, depth + 1));
            Ok(AvroType::Union(branches.collect::<Result<_, _>>()?))
        }
        Value::Object(object) => {
            let name = || object.get("name").and_then(Value::as_str).ok_or_else(wrong);
            let inner = object.get("namespace").and_then(Value::as_str);
            let kind = object.get("type").ok_or_else(wrong)?;
            let Value::String(kind) = kind else {
                return parse(kind, namespace, named, depth + 1);
            };
            let named_type = match kind.as_str() {
                "record" => {
                    let full = full_name(name()?, inner.unwrap_or(namespace));
                    let space = full.rsplit_once('.').map_or("", |(space, _)| space).to_owned();
                    let fields = object.get("fields").and_then(Value::as_array).ok_or_else(wrong)?;
                    let fields = fields.iter().map(|field| {
                        let name = field.get("name").and_then(Value::as_str).ok_or_else(wrong)?;
                        let json = field.get("type").ok_or_else(wrong)?;
                        Ok((name.to_owned(), parse(json, &space, named, depth + 1)?))
                    });
                    AvroType::Record(fields.collect::<Result<_, String>>()?)
                }
                "fixed" => {
                    let size = object.get("size").and_then(Value::as_u64).ok_or_else(wrong)?;
                    AvroType::Fixed(usize::try_from(size).map_err(|_| wrong())?)
                }
                "enum" => AvroType::Enum,
                "array" => {
                    let items = object.get("items").ok_or_else(wrong)?;
                    return Ok(AvroType::Array(Box::new(parse(items, namespace, named, depth + 1)?)));
                }
                "map" => {
                    let values = object.get("values").ok_or_else(wrong)?;
                    return Ok(AvroType::Map(Box::new(parse(values, namespace, named, depth + 1)?)));
                }
                other => return parse(&Value::String(other.to_owned()), namespace, named, depth + 1),
            };
            named.insert(full_name(name()?, inner.unwrap_or(namespace)), named_type.clone());
            Ok(named_type)
        }
        _ => Err(wrong()),
    }
}

fn primitive(name: &str) -> Option<AvroType> {
    Some(match name {
        "null" => AvroType::Null,
        "boolean" => AvroType::Boolean,
        "int" => AvroType::Int,
        "long" => AvroType::Long,
        "float" => AvroType::Float,
        "double" => AvroType::Double,
        "bytes" => AvroType::Bytes,
        "string" => AvroType::String,
        _ => return None,
    })
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}
