//! The JSON of a snapshot.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{ManifestError, Result};
use crate::json::to_pretty_json;

/// The property that notes the largest sequence number of a record.
///
/// Source: `org.apache.paimon.operation.SequenceSnapshotProperties`.
pub const MAX_SEQUENCE_NUMBER: &str = "sequence.generation.max-sequence-number";

/// What a snapshot did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CommitKind {
    /// New files only.
    Append,
    /// The same rows in other files.
    Compact,
    /// Files or rows were taken away.
    Overwrite,
    /// New statistics only.
    Analyze,
}

impl fmt::Display for CommitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "APPEND",
            Self::Compact => "COMPACT",
            Self::Overwrite => "OVERWRITE",
            Self::Analyze => "ANALYZE",
        })
    }
}

/// A version of the table: `snapshot/snapshot-<id>`. Fields are written in this order; unknown ones are ignored on reading.
///
/// Source: `org.apache.paimon.Snapshot`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// 3 in all tables of today; the shape is the same in older versions.
    #[serde(default)]
    pub version: i32,
    /// Random; tells a snapshot from another one of the same id after a rollback. Absent before Paimon 2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// 1, 2, 3 … without gaps.
    pub id: i64,
    /// The latest schema when it was committed.
    pub schema_id: i64,
    /// Manifest list of everything before this snapshot.
    pub base_manifest_list: String,
    /// Its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_manifest_list_size: Option<i64>,
    /// Manifest list of what this snapshot changed.
    pub delta_manifest_list: String,
    /// Its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_manifest_list_size: Option<i64>,
    /// Manifest list of this snapshot's changelog files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changelog_manifest_list: Option<String>,
    /// Its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changelog_manifest_list_size: Option<i64>,
    /// All index files that live at this snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_manifest: Option<String>,
    /// Who committed.
    pub commit_user: String,
    /// Grows with each commit of one user; `i64::MAX` for batch jobs.
    pub commit_identifier: i64,
    /// What it did.
    pub commit_kind: CommitKind,
    /// When, in milliseconds since the epoch.
    #[serde(default)]
    pub time_millis: i64,
    /// Physical rows in all files.
    #[serde(default)]
    pub total_record_count: i64,
    /// Physical rows added minus removed.
    #[serde(default)]
    pub delta_record_count: i64,
    /// Rows in the changelog files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changelog_record_count: Option<i64>,
    /// The event time up to which all is there, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watermark: Option<i64>,
    /// Statistics file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistics: Option<String>,
    /// What the committer wanted to note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<BTreeMap<String, String>>,
    /// Row tracking; primary-key tables carry it along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_row_id: Option<i64>,
    /// The statement that committed; informative. Absent before Paimon 2.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
}

impl Snapshot {
    /// The version of new snapshots.
    pub const VERSION: i32 = 3;

    /// Reads the JSON of the file at `path`, which errors name.
    pub fn from_json(path: &str, json: &[u8]) -> Result<Self> {
        serde_json::from_slice(json)
            .map_err(|error| ManifestError::corrupt(path, format!("not the JSON of a snapshot: {error}")))
    }

    /// The text of its file, as Java lays it out.
    pub fn to_json(&self) -> Result<String> {
        to_pretty_json(self)
    }

    /// Its file, relative to the table.
    pub fn path(id: i64) -> String {
        format!("snapshot/snapshot-{id}")
    }

    /// The largest sequence number of a record so far; `None` where it is not noted.
    ///
    /// Errors: `Corrupt` when the property holds no number.
    pub fn max_sequence_number(&self) -> Result<Option<i64>> {
        let noted = self.properties.as_ref().and_then(|all| all.get(MAX_SEQUENCE_NUMBER));
        let number = noted.map(|text| {
            text.parse().map_err(|_| {
                let message = format!("its property {MAX_SEQUENCE_NUMBER} is '{text}': expected a number");
                ManifestError::corrupt(Self::path(self.id), message)
            })
        });
        number.transpose()
    }

    /// Whether it is the snapshot that this user made of this committable. A commit of both new and compacted files makes two, of
    /// different kinds.
    pub fn is_of(&self, user: &str, identifier: i64, kind: CommitKind) -> bool {
        self.commit_user == user && self.commit_identifier == identifier && self.commit_kind == kind
    }
}
