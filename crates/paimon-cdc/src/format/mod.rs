//! From records of a stream to changes of rows: one file a format.

mod canal;
mod change;
mod debezium;
mod debezium_schema;
mod maxwell;
mod mysql_type;
mod plain;

pub use canal::CanalJson;
pub use change::{Change, ChangeDecoder, Decoded, Field, Image};
pub use debezium::DebeziumJson;
pub use maxwell::MaxwellJson;
pub use plain::PlainJson;

use std::str::FromStr;

/// The formats by their names.
///
/// Source: `org.apache.paimon.flink.action.cdc.format.DataFormatFactory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeFormat {
    /// `debezium-json`
    Debezium,
    /// `canal-json`
    Canal,
    /// `maxwell-json`
    Maxwell,
    /// `json`
    Json,
}

impl ChangeFormat {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Debezium, Self::Canal, Self::Maxwell, Self::Json];

    /// The name that users write.
    pub fn name(self) -> &'static str {
        match self {
            Self::Debezium => "debezium-json",
            Self::Canal => "canal-json",
            Self::Maxwell => "maxwell-json",
            Self::Json => "json",
        }
    }

    /// A decoder for one stream. `kind_field`: the member of plain JSON rows that says what the row is; other formats say it themselves.
    pub fn decoder(self, kind_field: Option<String>) -> Box<dyn ChangeDecoder> {
        match self {
            Self::Debezium => Box::new(DebeziumJson::default()),
            Self::Canal => Box::new(CanalJson::default()),
            Self::Maxwell => Box::new(MaxwellJson),
            Self::Json => Box::new(PlainJson::new(kind_field)),
        }
    }
}

/// Errors: the names there are.
impl FromStr for ChangeFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| format!("expected {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests;
