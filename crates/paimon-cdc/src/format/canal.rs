//! Canal.

use std::collections::BTreeMap;

use paimon::format::types::RowKind;

use super::change::{Change, ChangeDecoder, Decoded, Field, Image, before, message, object, text_of};
use super::mysql_type::MySqlType;
use crate::error::RecordError;
use crate::json::Json;
use crate::value::{Dialect, SourceType};

static UNKNOWN: SourceType = SourceType::unknown(Dialect::Canal);

/// `canal-json`: flat messages, each with many rows of one statement. Values are text; `mysqlType` says of what.
///
/// INSERT (and ROW) is +I, DELETE is -D, UPDATE an update whose old row has the values in `old` where it has some. Statements
/// (`isDdl`) change nothing; what they did to the columns is in `mysqlType` of the rows that follow.
///
/// Source: `org.apache.paimon.flink.action.cdc.format.canal.CanalRecordParser`.
#[derive(Debug, Default)]
pub struct CanalJson {
    /// Types by their text: there are few.
    types: BTreeMap<String, SourceType>,
}

impl ChangeDecoder for CanalJson {
    fn decode(
        &mut self,
        record: &str,
        changes: &mut dyn FnMut(Change<'_>) -> Result<(), RecordError>,
    ) -> Result<Decoded, RecordError> {
        let Some(message) = message(record)? else {
            return Ok(Decoded::Nothing);
        };
        if message.get("isDdl") == Some(&Json::Bool(true)) {
            return Ok(Decoded::Nothing);
        }
        let operation = text_of(&message, "type")?;
        if !matches!(operation, "INSERT" | "ROW" | "UPDATE" | "DELETE") {
            return Err(RecordError::new(format!(
                "`type` is {operation:?}; expected INSERT, UPDATE or DELETE"
            )));
        }
        let rows = rows(&message, "data")?.ok_or_else(|| RecordError::new("there is no `data`"))?;
        self.learn_types(&message);
        let columns = Columns {
            names: message.get("mysqlType"),
            types: &self.types,
        };
        let old = match operation {
            "UPDATE" => rows_of_update(&message, rows.len())?,
            _ => None,
        };
        for (number, row) in rows.iter().enumerate() {
            let row = columns.image("data", row)?;
            changes(match operation {
                "UPDATE" => Change::Update {
                    before: match old.and_then(|old| old.get(number)) {
                        Some(old) => Some(before(&row, columns.image("old", old)?)),
                        None => None,
                    },
                    after: row,
                },
                "DELETE" => Change::Row(RowKind::Delete, row),
                _ => Change::Row(RowKind::Insert, row),
            })?;
        }
        Ok(Decoded::Changes)
    }
}

impl CanalJson {
    fn learn_types(&mut self, message: &Json<'_>) {
        let Some(Json::Object(columns)) = message.get("mysqlType") else {
            return;
        };
        for text in columns.iter().filter_map(|(_, text)| text.as_str()) {
            if !self.types.contains_key(text) {
                self.types
                    .insert(text.to_owned(), MySqlType::parse(text).canal_source());
            }
        }
    }
}

fn rows<'a>(message: &'a Json<'a>, member: &str) -> Result<Option<&'a [Json<'a>]>, RecordError> {
    match message.get(member) {
        None => Ok(None),
        Some(Json::Array(rows)) => Ok(Some(rows)),
        Some(other) => Err(RecordError::new(format!(
            "`{member}`: expected an array, found {}",
            other.what()
        ))),
    }
}

fn rows_of_update<'a>(message: &'a Json<'a>, rows_after: usize) -> Result<Option<&'a [Json<'a>]>, RecordError> {
    let old = rows(message, "old")?;
    match old {
        Some(old) if old.len() != rows_after => Err(RecordError::new(format!(
            "`old` has {} rows, but `data` has {rows_after}",
            old.len()
        ))),
        old => Ok(old),
    }
}

/// The types of a message's columns.
struct Columns<'a> {
    names: Option<&'a Json<'a>>,
    types: &'a BTreeMap<String, SourceType>,
}

impl<'a> Columns<'a> {
    fn image(&self, what: &str, row: &'a Json<'a>) -> Result<Image<'a>, RecordError> {
        let fields = object(what, row)?.iter().map(|(name, value)| {
            let text = self.names.and_then(|types| types.get(name)).and_then(Json::as_str);
            let source = text.and_then(|text| self.types.get(text)).unwrap_or(&UNKNOWN);
            Field { name, value, source }
        });
        Ok(fields.collect())
    }
}
