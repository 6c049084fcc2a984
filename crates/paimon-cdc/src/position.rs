//! How far a stream has been taken in.

use std::collections::BTreeMap;
use std::sync::Arc;

const INPUT: &str = "ingest.input";
const LINE: &str = "ingest.line";
const START: &str = "ingest.start";
const END: &str = "ingest.end";
const CHECKSUM: &str = "ingest.checksum";

/// The end of a record in its input. Snapshots note the last one that they hold: the number of records as the commit identifier, the rest as
/// properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Records from the first input's first to this one; rises with every record.
    pub records: i64,
    /// The input's name.
    pub input: Arc<str>,
    /// The record's line in it, counted from 1.
    pub line: u64,
    /// The byte where the record begins.
    pub start: u64,
    /// The byte behind it, where the next one begins.
    pub end: u64,
    /// CRC-32 of the record without its line's end, if it was read whole.
    pub checksum: Option<u32>,
}

impl Position {
    /// As snapshot properties.
    pub(crate) fn properties(&self) -> BTreeMap<String, String> {
        let mut properties = BTreeMap::from([
            (INPUT.to_owned(), self.input.to_string()),
            (LINE.to_owned(), self.line.to_string()),
            (START.to_owned(), self.start.to_string()),
            (END.to_owned(), self.end.to_string()),
        ]);
        if let Some(checksum) = self.checksum {
            properties.insert(CHECKSUM.to_owned(), format!("{checksum:08x}"));
        }
        properties
    }

    /// From a snapshot's identifier and properties. Errors: the property that is missing or no number.
    pub(crate) fn from_properties(records: i64, properties: &BTreeMap<String, String>) -> Result<Self, String> {
        let text = |key: &str| properties.get(key).ok_or_else(|| format!("it has no property '{key}'"));
        let number = |key: &str| {
            let text = text(key)?;
            text.parse()
                .map_err(|_| format!("property '{key}' = {text:?}: expected a number"))
        };
        Ok(Self {
            records,
            input: text(INPUT)?.as_str().into(),
            line: number(LINE)?,
            start: number(START)?,
            end: number(END)?,
            checksum: match properties.get(CHECKSUM) {
                None => None,
                Some(text) => Some(
                    u32::from_str_radix(text, 16)
                        .map_err(|_| format!("property '{CHECKSUM}' = {text:?}: expected hexadecimal digits"))?,
                ),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_properties() {
        let position = Position {
            records: 7,
            input: "in.jsonl".into(),
            line: 3,
            start: 10,
            end: 20,
            checksum: Some(0xab),
        };
        assert_eq!(
            Position::from_properties(7, &position.properties()),
            Ok(position.clone())
        );
        let unread = Position {
            checksum: None,
            ..position
        };
        assert_eq!(Position::from_properties(7, &unread.properties()), Ok(unread.clone()));
        assert_eq!(
            Position::from_properties(7, &BTreeMap::new()).unwrap_err(),
            "it has no property 'ingest.input'"
        );
        let mut wrong = unread.properties();
        wrong.insert(START.to_owned(), "x".to_owned());
        assert_eq!(
            Position::from_properties(7, &wrong).unwrap_err(),
            "property 'ingest.start' = \"x\": expected a number"
        );
    }
}
