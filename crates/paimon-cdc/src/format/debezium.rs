//! Debezium.

use std::sync::Arc;

use paimon::format::types::RowKind;

use super::change::{Change, ChangeDecoder, Decoded, Field, Image, object, text_of};
use super::debezium_schema::{RowSchema, ddl_columns};
use crate::error::RecordError;
use crate::json::{Json, members, parse};
use crate::value::{Dialect, SourceType};

/// What Debezium for PostgreSQL writes in place of a large value that an update did not touch.
const UNAVAILABLE: &str = "__debezium_unavailable_value";
/// The same in a column of bytes: its base64.
const UNAVAILABLE_BASE64: &str = "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==";

static UNKNOWN: SourceType = SourceType::unknown(Dialect::Debezium);

/// `debezium-json`: change events with or without the schema beside them.
///
/// `r` and `c` are +I, `u` is an update, `d` a delete by what `before` knows (the key at least). Tombstones, transaction bounds (`status`
/// BEGIN, END), messages (`m`) and heartbeats change nothing; a statement (`ddl`) names the table's columns.
///
/// Source: `org.apache.paimon.flink.action.cdc.format.debezium.DebeziumJsonRecordParser`, which takes decimals as numbers only.
#[derive(Debug, Default)]
pub struct DebeziumJson {
    /// The last schema and its text: it is the same in most records.
    schema: Option<(String, Arc<RowSchema>)>,
}

impl DebeziumJson {
    fn row_schema(&mut self, text: &str) -> Result<Option<Arc<RowSchema>>, RecordError> {
        if let Some((known, schema)) = &self.schema
            && known == text
        {
            return Ok(Some(Arc::clone(schema)));
        }
        let json = parse(text)?;
        if json == Json::Null {
            return Ok(None);
        }
        let schema = Arc::new(RowSchema::of_envelope(&json));
        self.schema = Some((text.to_owned(), Arc::clone(&schema)));
        Ok(Some(schema))
    }
}

impl ChangeDecoder for DebeziumJson {
    fn decode(
        &mut self,
        record: &str,
        changes: &mut dyn FnMut(Change<'_>) -> Result<(), RecordError>,
    ) -> Result<Decoded, RecordError> {
        let top = members(record)?.unwrap_or_default();
        let member = |wanted: &str| top.iter().rev().find(|(name, _)| name == wanted).map(|(_, text)| *text);
        let (schema, event) = match (member("schema"), member("payload")) {
            (Some(schema), Some(payload)) => (self.row_schema(schema)?, parse(payload)?),
            _ => (None, parse(record)?),
        };
        if event == Json::Null {
            return Ok(Decoded::Nothing);
        }
        object("payload", &event)?;
        if event.get("op").is_none() {
            return without_operation(&event);
        }
        let image = |member: &str| match event.get(member) {
            None => Ok(None),
            Some(row) => row_image(member, row, schema.as_deref()).map(Some),
        };
        let need = |member: &str, operation: &str| {
            image(member)?.ok_or_else(|| RecordError::new(format!("there is no `{member}`, but `op` is {operation}")))
        };
        match text_of(&event, "op")? {
            operation @ ("r" | "c") => changes(Change::Row(RowKind::Insert, need("after", operation)?))?,
            "u" => changes(Change::Update {
                before: image("before")?,
                after: need("after", "u")?,
            })?,
            "d" => changes(Change::Row(RowKind::Delete, need("before", "d")?))?,
            "m" => return Ok(Decoded::Nothing),
            "t" => {
                return Err(RecordError::new(
                    "`op` is t: all rows were removed at the source, which is not applied here",
                ));
            }
            other => return Err(RecordError::new(format!("`op` is {other:?}; expected r, c, u, d or m"))),
        }
        Ok(Decoded::Changes)
    }
}

/// Events that are about no row.
fn without_operation(event: &Json<'_>) -> Result<Decoded, RecordError> {
    if event.get("ddl").is_some() || event.get("tableChanges").is_some() {
        return Ok(Decoded::Columns(ddl_columns(event)));
    }
    let transaction = matches!(event.get("status").and_then(Json::as_str), Some("BEGIN" | "END"));
    let heartbeat =
        matches!(event, Json::Object(members) if matches!(members.as_slice(), [(name, _)] if name == "ts_ms"));
    match transaction || heartbeat {
        true => Ok(Decoded::Nothing),
        false => Err(RecordError::new("there is no `op`")),
    }
}

fn row_image<'a>(what: &str, row: &'a Json<'a>, schema: Option<&'a RowSchema>) -> Result<Image<'a>, RecordError> {
    let mut image = Vec::new();
    for (position, (name, value)) in object(what, row)?.iter().enumerate() {
        if matches!(value.as_str(), Some(UNAVAILABLE | UNAVAILABLE_BASE64)) {
            return Err(RecordError::new(format!(
                "column {name}: the source did not send the value (it was not changed and is stored out of line); set REPLICA IDENTITY FULL"
            )));
        }
        let source = schema
            .and_then(|schema| schema.column(name, position))
            .unwrap_or(&UNKNOWN);
        image.push(Field { name, value, source });
    }
    Ok(image)
}
