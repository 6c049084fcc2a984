//! The schemas in Debezium's events: of a row (Kafka Connect), and of a table in statements.

use paimon::format::types::{DataType, MAX_LENGTH, TypeKind};

use super::mysql_type::MySqlType;
use crate::json::Json;
use crate::value::{Dialect, Encoding, SourceType, TimeUnit};

/// The columns of the rows in an event, in order.
#[derive(Debug)]
pub(super) struct RowSchema {
    columns: Vec<(String, SourceType)>,
}

impl RowSchema {
    /// From the schema of the whole event: the fields of `after`, else of `before`. Events that are about no row have neither.
    pub(super) fn of_envelope(schema: &Json<'_>) -> Self {
        let fields = |json: &Json<'_>, name: &str| -> Option<Vec<(String, SourceType)>> {
            let found = array(json.get("fields"))
                .iter()
                .find(|field| text(field, "field") == Some(name))?;
            let columns = array(found.get("fields")).iter();
            Some(
                columns
                    .filter_map(|field| Some((text(field, "field")?.to_owned(), source_type(field))))
                    .collect(),
            )
        };
        Self {
            columns: fields(schema, "after")
                .or_else(|| fields(schema, "before"))
                .unwrap_or_default(),
        }
    }

    /// A column's source type. `position` is where it most likely is.
    pub(super) fn column(&self, name: &str, position: usize) -> Option<&SourceType> {
        let here = self.columns.get(position).filter(|(column, _)| column == name);
        let found = here.or_else(|| self.columns.iter().find(|(column, _)| column == name));
        found.map(|(_, source)| source)
    }
}

fn array<'a, 'j>(json: Option<&'a Json<'j>>) -> &'a [Json<'j>] {
    match json {
        Some(Json::Array(elements)) => elements,
        _ => &[],
    }
}

fn text<'a>(json: &'a Json<'_>, member: &str) -> Option<&'a str> {
    json.get(member).and_then(Json::as_str)
}

/// Source: `org.apache.paimon.flink.action.cdc.format.debezium.DebeziumSchemaUtils`.
fn source_type(field: &Json<'_>) -> SourceType {
    let plain = Encoding::Plain(Dialect::Debezium);
    let parameter = |name: &str| field.get("parameters").and_then(|parameters| text(parameters, name));
    let number = |name: &str| parameter(name).and_then(|text| text.parse::<i32>().ok());
    let known = |encoding: Encoding, kind: TypeKind| (encoding, Some(kind));
    let string = TypeKind::VarChar(MAX_LENGTH);
    use TimeUnit::{Micro, Milli, Nano};
    let (encoding, declared) = match text(field, "name").unwrap_or_default() {
        "io.debezium.time.Date" | "org.apache.kafka.connect.data.Date" => known(Encoding::EpochDays, TypeKind::Date),
        "io.debezium.time.Time" | "org.apache.kafka.connect.data.Time" => {
            known(Encoding::TimeOfDay(Milli), TypeKind::Time(3))
        }
        "io.debezium.time.MicroTime" => known(Encoding::TimeOfDay(Micro), TypeKind::Time(3)),
        "io.debezium.time.NanoTime" => known(Encoding::TimeOfDay(Nano), TypeKind::Time(3)),
        "io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp" => {
            known(Encoding::Epoch(Milli), TypeKind::Timestamp(3))
        }
        "io.debezium.time.MicroTimestamp" => known(Encoding::Epoch(Micro), TypeKind::Timestamp(6)),
        "io.debezium.time.NanoTimestamp" => known(Encoding::Epoch(Nano), TypeKind::Timestamp(9)),
        "io.debezium.time.ZonedTimestamp" => known(plain, TypeKind::Timestamp(6)),
        "io.debezium.data.VariableScaleDecimal" => known(Encoding::VariableDecimal, string),
        "io.debezium.data.Bits" => {
            let bytes = number("length")
                .and_then(|bits| u32::try_from(bits).ok())
                .map_or(MAX_LENGTH, |bits| bits.div_ceil(8));
            known(Encoding::Bits, TypeKind::Binary(bytes.max(1)))
        }
        name if name.ends_with("org.apache.kafka.connect.data.Decimal") => {
            let scale = number("scale").unwrap_or(0);
            known(
                Encoding::Decimal { scale },
                decimal(number("connect.decimal.precision"), scale),
            )
        }
        _ => {
            let kind = match text(field, "type").unwrap_or_default() {
                "int8" => Some(TypeKind::TinyInt),
                "int16" => Some(TypeKind::SmallInt),
                "int32" => Some(TypeKind::Int),
                "int64" => Some(TypeKind::BigInt),
                "float" | "float32" => Some(TypeKind::Float),
                "double" | "float64" => Some(TypeKind::Double),
                "boolean" => Some(TypeKind::Boolean),
                "bytes" => Some(TypeKind::VarBinary(MAX_LENGTH)),
                "string" => Some(string),
                "array" => return array_type(field),
                _ => None,
            };
            let encoding = match kind {
                Some(TypeKind::VarBinary(_)) => Encoding::Base64,
                _ => plain,
            };
            (encoding, kind)
        }
    };
    SourceType {
        encoding,
        declared: declared.map(DataType::nullable),
    }
}

fn array_type(field: &Json<'_>) -> SourceType {
    let element = field
        .get("items")
        .map_or(SourceType::unknown(Dialect::Debezium), source_type);
    SourceType {
        encoding: Encoding::Array(Box::new(element.encoding)),
        declared: element
            .declared
            .map(|element| DataType::nullable(TypeKind::Array(Box::new(element)))),
    }
}

/// A decimal that fits, else text.
fn decimal(precision: Option<i32>, scale: i32) -> TypeKind {
    let precision = u8::try_from(precision.unwrap_or(38))
        .ok()
        .filter(|precision| (1..=38).contains(precision));
    match (precision, u8::try_from(scale)) {
        (Some(precision), Ok(scale)) if scale <= precision => TypeKind::Decimal(precision, scale),
        _ => TypeKind::VarChar(MAX_LENGTH),
    }
}

/// The columns that a statement of MySQL leaves the table with; those of unknown types are left out.
pub(super) fn ddl_columns(event: &Json<'_>) -> Vec<(String, DataType)> {
    let mut columns = Vec::new();
    for change in array(event.get("tableChanges")) {
        let Some(table) = change.get("table") else { continue };
        for column in array(table.get("columns")) {
            let number = |member: &str| match column.get(member) {
                Some(Json::Number(text)) => text.parse::<u32>().ok(),
                _ => None,
            };
            let declared = text(column, "typeName")
                .and_then(|name| MySqlType::new(name, number("length"), number("scale"), Vec::new()).paimon_type());
            if let (Some(name), Some(declared)) = (text(column, "name"), declared) {
                columns.push((name.to_owned(), declared));
            }
        }
    }
    columns
}
