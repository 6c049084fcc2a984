//! `scenario.json`: a table and what happens to it.

use std::collections::BTreeMap;

use paimon::SchemaChange;
use paimon::format::types::DataType;
use serde::Deserialize;
use serde_json::Value;

/// A table and the steps that one long-lived writer takes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Scenario {
    /// Unique.
    pub(crate) name: String,
    /// Columns, without ids.
    pub(crate) columns: Vec<Column>,
    /// Primary key.
    pub(crate) primary_keys: Vec<String>,
    /// Partition columns.
    pub(crate) partition_keys: Vec<String>,
    /// Table options.
    pub(crate) options: BTreeMap<String, String>,
    /// What happens.
    pub(crate) steps: Vec<Step>,
}

/// A column as it is declared.
#[derive(Deserialize)]
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub(crate) data_type: DataType,
}

/// One step.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub(crate) enum Step {
    /// Rows into the write buffer, each `[kind, value…]`.
    Write { rows: Vec<Vec<Value>> },
    /// Flush, pick, wait, commit.
    Commit {
        #[serde(default = "yes")]
        wait: bool,
    },
    /// Compaction of all or the named buckets, then a commit.
    Compact {
        #[serde(default = "yes")]
        full: bool,
        #[serde(default = "yes")]
        commit: bool,
        partition: Option<Vec<Value>>,
        bucket: Option<i32>,
    },
    /// A new writer; its options hold until the next one.
    Reopen {
        #[serde(default)]
        options: BTreeMap<String, String>,
    },
    /// A batch read.
    Read {
        #[serde(default)]
        options: BTreeMap<String, String>,
    },
    /// A new schema and a new writer.
    Alter { changes: Vec<Change> },
    /// Snapshot expiry.
    Expire {},
    /// A new tag.
    Tag {},
    /// A tag goes.
    DeleteTag {},
    /// Back to a snapshot.
    Rollback {},
}

/// A change of the schema.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Change {
    /// A new column.
    Add {
        add: String,
        #[serde(rename = "type")]
        data_type: DataType,
    },
    /// Another name.
    Rename { rename: String, to: String },
    /// A column goes.
    Drop { drop: String },
    /// Another type.
    Widen {
        widen: String,
        #[serde(rename = "type")]
        data_type: DataType,
    },
    /// An option.
    SetOption {
        #[serde(rename = "setOption")]
        key: String,
        value: String,
    },
}

impl From<&Change> for SchemaChange {
    fn from(change: &Change) -> Self {
        match change {
            Change::Add { add, data_type } => Self::AddColumn {
                name: add.clone(),
                data_type: data_type.clone(),
                comment: None,
            },
            Change::Rename { rename, to } => Self::RenameColumn {
                name: rename.clone(),
                to: to.clone(),
            },
            Change::Drop { drop } => Self::DropColumn { name: drop.clone() },
            Change::Widen { widen, data_type } => Self::UpdateColumnType {
                name: widen.clone(),
                data_type: data_type.clone(),
            },
            Change::SetOption { key, value } => Self::SetOption {
                key: key.clone(),
                value: value.clone(),
            },
        }
    }
}

impl Step {
    /// The step's name, when this engine cannot take it yet.
    pub(crate) fn not_built(&self) -> Option<&'static str> {
        match self {
            Self::Expire {} => Some("expire"),
            Self::Tag {} => Some("tag"),
            Self::DeleteTag {} => Some("delete-tag"),
            Self::Rollback {} => Some("rollback"),
            Self::Write { .. }
            | Self::Commit { .. }
            | Self::Compact { .. }
            | Self::Alter { .. }
            | Self::Reopen { .. }
            | Self::Read { .. } => None,
        }
    }
}

fn yes() -> bool {
    true
}
