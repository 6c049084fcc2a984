//! What is asked about old rows, and what is answered.

use std::sync::Arc;

use paimon_format::kv::KvBatch;
use serde::{Deserialize, Serialize};

/// What a look-up has to find out about a key.
///
/// Source: `org.apache.paimon.mergetree.lookup.PersistProcessor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LookupNeed {
    /// Whether it is there (first-row).
    Existence,
    /// Its record.
    Value,
    /// The file and row that hold it.
    Position,
    /// Both.
    PositionAndValue,
}

impl LookupNeed {
    /// Whether records are asked for.
    pub fn value(self) -> bool {
        matches!(self, Self::Value | Self::PositionAndValue)
    }

    /// Whether files and rows are asked for.
    pub fn position(self) -> bool {
        matches!(self, Self::Position | Self::PositionAndValue)
    }
}

/// What was found about one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Its record: a row of [`Hits::rows`].
    pub row: Option<u32>,
    /// Where it is: one of [`Hits::files`], and the row's number in it.
    pub position: Option<(u32, u64)>,
}

/// The answers to a sorted block of keys, or to the first of them, one entry a key.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// By key; `None`: no level has it. A retract that was found is a hit.
    pub found: Vec<Option<Hit>>,
    /// The records found, in no particular order, in the schema of the merge. Levels are those they were found on.
    pub rows: Option<KvBatch>,
    /// Names of the files that hold them.
    pub files: Vec<Arc<str>>,
}

impl Hits {
    /// Nothing was asked.
    pub fn none() -> Self {
        Self::default()
    }
}
