//! Paimon's types as Arrow types, and back.
//!
//! | Paimon | Arrow |
//! |---|---|
//! | BOOLEAN, TINYINT … BIGINT, FLOAT, DOUBLE | Boolean, Int8 … Int64, Float32, Float64 |
//! | CHAR, VARCHAR | Utf8 |
//! | BINARY, VARBINARY | Binary |
//! | DECIMAL(p, s) | Decimal128(p, s) |
//! | DATE | Date32 |
//! | TIME(p) | Time32(Millisecond) |
//! | TIMESTAMP(p) | Timestamp: Millisecond for p ≤ 3, Microsecond for p ≤ 6, else Nanosecond |
//! | TIMESTAMP(p) WITH LOCAL TIME ZONE | the same with the zone `UTC` |
//! | ARRAY | List of `element` |
//! | MAP | Map of `entries { key, value }`, the key not null |
//! | MULTISET | Map of `entries { key, value }`, the value Int32 not null |
//! | ROW | Struct |
//! | VARIANT | Struct of `value` and `metadata`, both Binary not null |
//! | BLOB, VECTOR | refused by name |
//!
//! Every field carries its id as metadata under [`FIELD_ID_KEY`], as `org.apache.paimon.format.parquet.ParquetSchemaConverter`
//! numbers them; the ids inside arrays and maps follow from the id of the enclosing field.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Fields, Schema, TimeUnit};

use crate::error::FormatError;
use crate::types::{DataField, DataType, TypeKind};

/// The metadata key of an Arrow field that holds its Paimon field id as decimal text.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// The time zone of every TIMESTAMP WITH LOCAL TIME ZONE column.
pub const UTC: &str = "UTC";

/// The parts of a VARIANT with their ids.
const VARIANT_FIELDS: [(&str, i32); 2] = [("value", 0), ("metadata", 1)];
/// `org.apache.paimon.table.SpecialFields.STRUCTURED_TYPE_FIELD_ID_BASE`: where the ids of elements, keys and values start.
const NESTED_ID_BASE: i32 = i32::MAX / 4;
/// `org.apache.paimon.table.SpecialFields.STRUCTURED_TYPE_FIELD_DEPTH_LIMIT`: ids set aside for one field.
const NESTED_IDS_PER_FIELD: i32 = 1 << 10;
/// How deep types may nest; protects the recursion from schemas made to exhaust the stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// The Arrow schema of a list of fields, in order.
///
/// Errors: `Unsupported` names the column and its type.
pub fn arrow_schema(fields: &[DataField]) -> Result<Schema, FormatError> {
    let fields: Vec<Field> = fields.iter().map(arrow_field).collect::<Result<_, _>>()?;
    Ok(Schema::new(fields))
}

/// The Arrow field of a column, with its id and the ids of its nested fields.
///
/// Errors: `Unsupported` names the column and its type.
pub fn arrow_field(field: &DataField) -> Result<Field, FormatError> {
    let place = Place {
        column: &field.name,
        field_id: field.id,
        depth: 0,
        total_depth: 0,
    };
    let arrow = to_arrow(&field.data_type, place)?;
    Ok(with_id(
        Field::new(&field.name, arrow, field.data_type.nullable),
        field.id,
    ))
}

/// A copy of `field` that carries `id`.
pub(crate) fn with_id(field: Field, id: i32) -> Field {
    field.with_metadata(HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]))
}

/// Where in a column's type the conversion is.
#[derive(Clone, Copy)]
struct Place<'a> {
    column: &'a str,
    /// The id of the column or of the enclosing ROW field.
    field_id: i32,
    /// Arrays and maps entered since that field: part of the ids.
    depth: i32,
    /// All types entered since the column.
    total_depth: usize,
}

impl Place<'_> {
    fn nested(self) -> Self {
        Self {
            depth: self.depth + 1,
            total_depth: self.total_depth + 1,
            ..self
        }
    }

    /// The id of an array's element or a map's value. Wraps as Java's `int` does.
    fn element_id(self) -> i32 {
        NESTED_ID_BASE
            .wrapping_add(self.field_id.wrapping_mul(NESTED_IDS_PER_FIELD))
            .wrapping_add(self.depth)
    }

    /// The id of a map's key.
    fn key_id(self) -> i32 {
        NESTED_ID_BASE
            .wrapping_sub(self.field_id.wrapping_mul(NESTED_IDS_PER_FIELD))
            .wrapping_sub(self.depth)
    }
}

fn to_arrow(data_type: &DataType, place: Place<'_>) -> Result<ArrowType, FormatError> {
    if place.total_depth > MAX_DEPTH {
        return Err(FormatError::unsupported(format!(
            "column {} nests types more than {MAX_DEPTH} deep",
            place.column
        )));
    }
    Ok(match &data_type.kind {
        TypeKind::Boolean => ArrowType::Boolean,
        TypeKind::TinyInt => ArrowType::Int8,
        TypeKind::SmallInt => ArrowType::Int16,
        TypeKind::Int => ArrowType::Int32,
        TypeKind::BigInt => ArrowType::Int64,
        TypeKind::Float => ArrowType::Float32,
        TypeKind::Double => ArrowType::Float64,
        TypeKind::Char(_) | TypeKind::VarChar(_) => ArrowType::Utf8,
        TypeKind::Binary(_) | TypeKind::VarBinary(_) => ArrowType::Binary,
        TypeKind::Decimal(precision, scale) => match i8::try_from(*scale) {
            Ok(arrow_scale) if (1..=38).contains(precision) && scale <= precision => {
                ArrowType::Decimal128(*precision, arrow_scale)
            }
            _ => return Err(unsupported(place.column, data_type)),
        },
        TypeKind::Date => ArrowType::Date32,
        TypeKind::Time(_) => ArrowType::Time32(TimeUnit::Millisecond),
        TypeKind::Timestamp(precision) => ArrowType::Timestamp(time_unit(*precision), None),
        TypeKind::LocalZonedTimestamp(precision) => ArrowType::Timestamp(time_unit(*precision), Some(UTC.into())),
        TypeKind::Variant => ArrowType::Struct(variant_fields()),
        TypeKind::Array(element) => {
            let place = place.nested();
            let arrow = to_arrow(element, place)?;
            let field = Field::new("element", arrow, element.nullable);
            ArrowType::List(Arc::new(with_id(field, place.element_id())))
        }
        TypeKind::Map(key, value) => {
            let place = place.nested();
            map_type(to_arrow(key, place)?, to_arrow(value, place)?, value.nullable, place)
        }
        TypeKind::Multiset(element) => {
            let place = place.nested();
            map_type(to_arrow(element, place)?, ArrowType::Int32, false, place)
        }
        TypeKind::Row(fields) => {
            let fields = fields.iter().map(|field| {
                let nested = Place {
                    field_id: field.id,
                    depth: 0,
                    total_depth: place.total_depth + 1,
                    ..place
                };
                let arrow = to_arrow(&field.data_type, nested)?;
                Ok(with_id(
                    Field::new(&field.name, arrow, field.data_type.nullable),
                    field.id,
                ))
            });
            ArrowType::Struct(fields.collect::<Result<Fields, FormatError>>()?)
        }
        TypeKind::Blob | TypeKind::Vector(..) => return Err(unsupported(place.column, data_type)),
    })
}

fn variant_fields() -> Fields {
    Fields::from(
        VARIANT_FIELDS
            .map(|(name, id)| with_id(Field::new(name, ArrowType::Binary, false), id))
            .to_vec(),
    )
}

/// Whether a struct is a VARIANT. No ROW looks the same: the id of its first field is greater than that of the column.
pub(crate) fn is_variant(fields: &Fields) -> bool {
    let has_id = |field: &Field, id: i32| {
        field
            .metadata()
            .get(FIELD_ID_KEY)
            .is_some_and(|text| *text == id.to_string())
    };
    fields.len() == VARIANT_FIELDS.len()
        && fields.iter().zip(VARIANT_FIELDS).all(|(field, (name, id))| {
            field.name() == name && field.data_type() == &ArrowType::Binary && has_id(field, id)
        })
}

fn map_type(key: ArrowType, value: ArrowType, value_nullable: bool, place: Place<'_>) -> ArrowType {
    let entries = Fields::from(vec![
        with_id(Field::new("key", key, false), place.key_id()),
        with_id(Field::new("value", value, value_nullable), place.element_id()),
    ]);
    ArrowType::Map(
        Arc::new(Field::new("entries", ArrowType::Struct(entries), false)),
        false,
    )
}

fn unsupported(column: &str, data_type: &DataType) -> FormatError {
    FormatError::unsupported(format!("column {column} has type {data_type}"))
}

/// The Arrow unit that holds timestamps of a precision.
pub(crate) fn time_unit(precision: u8) -> TimeUnit {
    match precision {
        0..=3 => TimeUnit::Millisecond,
        4..=6 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

/// Fields for a new table from an Arrow schema; ids from 0, depth first, as `org.apache.paimon.schema.Schema` gives them.
///
/// Wider Arrow types than Paimon has become the type that holds all their values: large and view strings are STRING, unsigned
/// integers the next wider signed one, Timestamp(Second) is TIMESTAMP(0), dictionaries their values.
///
/// Errors: `Unsupported` names the column and its Arrow type.
pub fn data_fields(schema: &Schema) -> Result<Vec<DataField>, FormatError> {
    let mut next_id = 0;
    fields_from_arrow(schema.fields(), &mut next_id, "", 0)
}

fn fields_from_arrow(
    fields: &Fields,
    next_id: &mut i32,
    parent: &str,
    depth: usize,
) -> Result<Vec<DataField>, FormatError> {
    let fields = fields.iter().map(|field| {
        let id = *next_id;
        *next_id += 1;
        let path = child_path(parent, field.name());
        let data_type = from_arrow(field, next_id, &path, depth)?;
        Ok(DataField::new(id, field.name(), data_type))
    });
    fields.collect()
}

/// `parent.child`, or `child` at the top.
pub(crate) fn child_path(parent: &str, child: &str) -> String {
    if parent.is_empty() {
        child.to_owned()
    } else {
        format!("{parent}.{child}")
    }
}

fn from_arrow(field: &Field, next_id: &mut i32, path: &str, depth: usize) -> Result<DataType, FormatError> {
    let refuse = || {
        FormatError::unsupported(format!(
            "column {path} has the Arrow type {}, which no Paimon type holds",
            field.data_type()
        ))
    };
    if depth > MAX_DEPTH {
        return Err(refuse());
    }
    let kind = match field.data_type() {
        ArrowType::Boolean => TypeKind::Boolean,
        ArrowType::Int8 => TypeKind::TinyInt,
        ArrowType::Int16 | ArrowType::UInt8 => TypeKind::SmallInt,
        ArrowType::Int32 | ArrowType::UInt16 => TypeKind::Int,
        ArrowType::Int64 | ArrowType::UInt32 => TypeKind::BigInt,
        ArrowType::UInt64 => TypeKind::Decimal(20, 0),
        ArrowType::Float16 | ArrowType::Float32 => TypeKind::Float,
        ArrowType::Float64 => TypeKind::Double,
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => TypeKind::VarChar(i32::MAX as u32),
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView => TypeKind::VarBinary(i32::MAX as u32),
        ArrowType::FixedSizeBinary(length) => match u32::try_from(*length) {
            Ok(length) if length > 0 => TypeKind::Binary(length),
            _ => return Err(refuse()),
        },
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => match u8::try_from(*scale) {
            Ok(scale) if scale <= *precision && *precision <= 38 => TypeKind::Decimal(*precision, scale),
            _ => return Err(refuse()),
        },
        ArrowType::Date32 | ArrowType::Date64 => TypeKind::Date,
        ArrowType::Time32(TimeUnit::Second) => TypeKind::Time(0),
        ArrowType::Time32(_) | ArrowType::Time64(_) => TypeKind::Time(3),
        ArrowType::Timestamp(unit, zone) => {
            let precision = match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            };
            match zone {
                None => TypeKind::Timestamp(precision),
                Some(_) => TypeKind::LocalZonedTimestamp(precision),
            }
        }
        ArrowType::Dictionary(_, values) => {
            let values = Field::new(field.name(), values.as_ref().clone(), true);
            from_arrow(&values, next_id, path, depth + 1)?.kind
        }
        ArrowType::RunEndEncoded(_, values) => from_arrow(values, next_id, path, depth + 1)?.kind,
        ArrowType::List(element)
        | ArrowType::LargeList(element)
        | ArrowType::ListView(element)
        | ArrowType::LargeListView(element)
        | ArrowType::FixedSizeList(element, _) => {
            let path = child_path(path, "element");
            TypeKind::Array(Box::new(from_arrow(element, next_id, &path, depth + 1)?))
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(entries) if entries.len() == 2 => {
                let key = from_arrow(&entries[0], next_id, &child_path(path, "key"), depth + 1)?;
                let value = from_arrow(&entries[1], next_id, &child_path(path, "value"), depth + 1)?;
                TypeKind::Map(Box::new(key), Box::new(value))
            }
            _ => return Err(refuse()),
        },
        ArrowType::Struct(fields) => TypeKind::Row(fields_from_arrow(fields, next_id, path, depth + 1)?),
        ArrowType::Null | ArrowType::Duration(_) | ArrowType::Interval(_) | ArrowType::Union(..) => {
            return Err(refuse());
        }
    };
    Ok(DataType {
        kind,
        nullable: field.is_nullable(),
    })
}

#[cfg(test)]
mod tests;
