//! Maxwell.

use paimon::format::types::{DataType, RowKind};

use super::change::{Change, ChangeDecoder, Decoded, before, image, message, text_of};
use super::mysql_type::MySqlType;
use crate::error::RecordError;
use crate::json::Json;
use crate::value::{Dialect, SourceType};

static UNKNOWN: SourceType = SourceType::unknown(Dialect::Maxwell);

/// `maxwell-json`: a row a message, without types.
///
/// `insert` and `bootstrap-insert` are +I, `delete` is -D, `update` an update whose old row has the values in `old` where it has some.
/// The bounds of a bootstrap change nothing; `table-create` and `table-alter` name the table's columns.
///
/// Source: `org.apache.paimon.flink.action.cdc.format.maxwell.MaxwellRecordParser`, which knows the first, third and fourth alone.
#[derive(Debug, Default)]
pub struct MaxwellJson;

impl ChangeDecoder for MaxwellJson {
    fn decode(
        &mut self,
        record: &str,
        changes: &mut dyn FnMut(Change<'_>) -> Result<(), RecordError>,
    ) -> Result<Decoded, RecordError> {
        let Some(message) = message(record)? else {
            return Ok(Decoded::Nothing);
        };
        let row = || match message.get("data") {
            Some(data) => image("data", data, &UNKNOWN),
            None => Err(RecordError::new("there is no `data`")),
        };
        match text_of(&message, "type")? {
            "insert" | "bootstrap-insert" => changes(Change::Row(RowKind::Insert, row()?))?,
            "delete" => changes(Change::Row(RowKind::Delete, row()?))?,
            "update" => {
                let after = row()?;
                let before = match message.get("old") {
                    Some(old) => Some(before(&after, image("old", old, &UNKNOWN)?)),
                    None => None,
                };
                changes(Change::Update { before, after })?;
            }
            "table-create" | "table-alter" => return Ok(Decoded::Columns(columns(&message))),
            "bootstrap-start" | "bootstrap-complete" | "table-drop" | "database-create" | "database-alter"
            | "database-drop" => {
                return Ok(Decoded::Nothing);
            }
            other => {
                return Err(RecordError::new(format!(
                    "`type` is {other:?}; expected insert, update or delete"
                )));
            }
        }
        Ok(Decoded::Changes)
    }
}

/// The columns in a statement's `def`. Digits of decimals and lengths of texts are not told.
fn columns(message: &Json<'_>) -> Vec<(String, DataType)> {
    let Some(Json::Array(columns)) = message.get("def").and_then(|def| def.get("columns")) else {
        return Vec::new();
    };
    let columns = columns.iter().filter_map(|column| {
        let text = |member: &str| column.get(member).and_then(Json::as_str);
        let unsigned = column.get("signed") == Some(&Json::Bool(false));
        let name = format!("{}{}", text("type")?, if unsigned { " unsigned" } else { "" });
        let digits = match column.get("column-length") {
            Some(Json::Number(digits)) => digits.parse().ok(),
            _ => None,
        };
        let declared = MySqlType::new(&name, digits, None, Vec::new()).paimon_type()?;
        Some((text("name")?.to_owned(), declared))
    });
    columns.collect()
}
