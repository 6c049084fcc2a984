//! The schema of a container file, reduced to what decoding needs.

use std::collections::HashMap;

use serde_json::Value as Json;

/// Schemas of manifests have some 50 nodes; a limit keeps references from growing without bound.
const MAX_NODES: usize = 10_000;

/// An Avro schema without names, defaults and logical types; references are replaced by what they refer to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shape {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Array(Box<Shape>),
    Map(Box<Shape>),
    Union(Vec<Shape>),
    Record(Vec<(String, Shape)>),
}

impl Shape {
    /// From the text of `avro.schema`.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let json = serde_json::from_slice(text).map_err(|error| format!("avro.schema is not JSON: {error}"))?;
        let mut parser = Parser::default();
        parser.shape(&json)
    }

    /// What it is called in error messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Int => "int",
            Self::Long => "long",
            Self::Float => "float",
            Self::Double => "double",
            Self::Bytes => "bytes",
            Self::String => "string",
            Self::Fixed(_) => "fixed",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
            Self::Union(_) => "union",
            Self::Record(_) => "record",
        }
    }

    fn nodes(&self) -> usize {
        1 + match self {
            Self::Array(item) | Self::Map(item) => item.nodes(),
            Self::Union(branches) => branches.iter().map(Self::nodes).sum(),
            Self::Record(fields) => fields.iter().map(|(_, shape)| shape.nodes()).sum(),
            _ => 0,
        }
    }
}

#[derive(Default)]
struct Parser {
    named: HashMap<String, Shape>,
    nodes: usize,
}

impl Parser {
    fn shape(&mut self, json: &Json) -> Result<Shape, String> {
        self.count(1)?;
        match json {
            Json::String(name) => self.named(name),
            Json::Array(branches) => Ok(Shape::Union(
                branches
                    .iter()
                    .map(|branch| self.shape(branch))
                    .collect::<Result<_, _>>()?,
            )),
            Json::Object(object) => match object.get("type") {
                Some(Json::String(kind)) => self.complex(kind, object),
                Some(inner) => self.shape(inner),
                None => Err("avro.schema: an object has no \"type\"".to_string()),
            },
            other => Err(format!("avro.schema: {other} is no type")),
        }
    }

    fn complex(&mut self, kind: &str, object: &serde_json::Map<String, Json>) -> Result<Shape, String> {
        let child = |key: &str| {
            object
                .get(key)
                .ok_or_else(|| format!("avro.schema: {kind} has no \"{key}\""))
        };
        match kind {
            "array" => Ok(Shape::Array(Box::new(self.shape(child("items")?)?))),
            "map" => Ok(Shape::Map(Box::new(self.shape(child("values")?)?))),
            "enum" => self.define(object, Shape::Int),
            "fixed" => {
                let size = child("size")?
                    .as_u64()
                    .and_then(|size| usize::try_from(size).ok())
                    .ok_or("avro.schema: the size of a fixed is no number")?;
                self.define(object, Shape::Fixed(size))
            }
            "record" => {
                let fields = child("fields")?
                    .as_array()
                    .ok_or("avro.schema: the fields of a record are no array")?;
                let fields = fields.iter().map(|field| self.field(field)).collect::<Result<_, _>>()?;
                self.define(object, Shape::Record(fields))
            }
            primitive => self.named(primitive),
        }
    }

    fn field(&mut self, field: &Json) -> Result<(String, Shape), String> {
        let name = field
            .get("name")
            .and_then(Json::as_str)
            .ok_or("avro.schema: a field has no name")?;
        let shape = field
            .get("type")
            .ok_or_else(|| format!("avro.schema: field {name} has no type"))?;
        Ok((name.to_string(), self.shape(shape)?))
    }

    fn named(&mut self, name: &str) -> Result<Shape, String> {
        Ok(match name {
            "null" => Shape::Null,
            "boolean" => Shape::Boolean,
            "int" => Shape::Int,
            "long" => Shape::Long,
            "float" => Shape::Float,
            "double" => Shape::Double,
            "bytes" => Shape::Bytes,
            "string" => Shape::String,
            reference => {
                // Names are compared without their namespace: manifests use one.
                let shape = self
                    .named
                    .get(simple_name(reference))
                    .ok_or_else(|| format!("avro.schema: unknown type {reference}"))?
                    .clone();
                self.count(shape.nodes())?;
                shape
            }
        })
    }

    fn define(&mut self, object: &serde_json::Map<String, Json>, shape: Shape) -> Result<Shape, String> {
        if let Some(name) = object.get("name").and_then(Json::as_str) {
            self.count(shape.nodes())?;
            self.named.insert(simple_name(name).to_string(), shape.clone());
        }
        Ok(shape)
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes += nodes;
        if self.nodes > MAX_NODES {
            return Err(format!("avro.schema: more than {MAX_NODES} nodes"));
        }
        Ok(())
    }
}

fn simple_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
