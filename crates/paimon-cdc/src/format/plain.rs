//! Plain JSON rows.

use paimon::format::types::RowKind;

use super::change::{Change, ChangeDecoder, Decoded, image};
use crate::error::RecordError;
use crate::json::{Json, parse};
use crate::value::{Dialect, SourceType};

static UNKNOWN: SourceType = SourceType::unknown(Dialect::Paimon);

/// `json`: a row a record, as an object by column name.
///
/// All rows are +I, unless a member says what they are.
///
/// Source: `org.apache.paimon.flink.action.cdc.format.json.JsonRecordParser`, which knows no kinds.
#[derive(Debug)]
pub struct PlainJson {
    kind_field: Option<String>,
}

impl PlainJson {
    /// `kind_field`: the member that holds `+I`, `-U`, `+U` or `-D`; it is no column.
    pub fn new(kind_field: Option<String>) -> Self {
        Self { kind_field }
    }
}

impl ChangeDecoder for PlainJson {
    fn decode(
        &mut self,
        record: &str,
        changes: &mut dyn FnMut(Change<'_>) -> Result<(), RecordError>,
    ) -> Result<Decoded, RecordError> {
        let row = parse(record)?;
        if row == Json::Null {
            return Ok(Decoded::Nothing);
        }
        let mut image = image("row", &row, &UNKNOWN)?;
        let kind = match &self.kind_field {
            None => RowKind::Insert,
            Some(name) => {
                let text = row.get(name);
                let kind = text.and_then(Json::as_str).and_then(RowKind::from_short_string);
                image.retain(|field| field.name != name);
                kind.ok_or_else(|| {
                    let found = text.map_or_else(|| "nothing".to_owned(), Json::to_string);
                    RecordError::new(format!("field {name}: expected +I, -U, +U or -D, found {found}"))
                })?
            }
        };
        changes(Change::Row(kind, image))?;
        Ok(Decoded::Changes)
    }
}
