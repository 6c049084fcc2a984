//! The JSON of a schema version.

use std::collections::HashSet;

use paimon_format::options::Options;
use paimon_format::types::DataField;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::error::{ManifestError, Result};
use crate::json::to_pretty_json;

/// A version of a table's schema: `schema/schema-<id>`.
///
/// Source: `org.apache.paimon.schema.TableSchema`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableSchema {
    /// The layout of the file: 3 since Paimon 0.9.
    pub version: i32,
    /// 0, 1, 2 … without gaps.
    pub id: i64,
    /// Columns in order.
    pub fields: Vec<DataField>,
    /// The largest field id ever given, nested ones included.
    pub highest_field_id: i32,
    /// Names of the partition columns, in the order of the path.
    pub partition_keys: Vec<String>,
    /// Names of the primary-key columns, partition columns among them.
    pub primary_keys: Vec<String>,
    /// Table options.
    pub options: Options,
    /// A comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// When this version was made, in milliseconds since the epoch.
    pub time_millis: i64,
}

/// What is in the file; columns are parsed one by one, so that an error names its column.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredSchema {
    #[serde(default = "oldest_version")]
    version: i32,
    id: i64,
    fields: Vec<Json>,
    highest_field_id: i32,
    partition_keys: Vec<String>,
    primary_keys: Vec<String>,
    options: Options,
    #[serde(default)]
    comment: Option<String>,
    #[serde(default)]
    time_millis: i64,
}

fn oldest_version() -> i32 {
    1
}

impl TableSchema {
    /// The version of new schemas.
    pub const VERSION: i32 = 3;

    /// Its file, relative to the table.
    pub fn path(id: i64) -> String {
        format!("schema/schema-{id}")
    }

    /// Reads the JSON of the file at `path`, which errors name with the column. Older versions get the options that they imply.
    ///
    /// Errors: `Corrupt`; `Unsupported` for versions that are not known yet.
    pub fn from_json(path: &str, json: &[u8]) -> Result<Self> {
        let stored: StoredSchema = serde_json::from_slice(json)
            .map_err(|error| ManifestError::corrupt(path, format!("not the JSON of a schema: {error}")))?;
        if stored.version > Self::VERSION {
            return Err(ManifestError::Unsupported(format!(
                "{path} has schema version {}, but only versions up to {} are known",
                stored.version,
                Self::VERSION
            )));
        }
        let fields = stored
            .fields
            .into_iter()
            .map(|field| parse_field(path, field))
            .collect::<Result<Vec<_>>>()?;
        let mut options = stored.options;
        if stored.version <= 1 && options.get("bucket").is_none() {
            options.set("bucket", "1");
        }
        if stored.version <= 2 && options.get("file.format").is_none() {
            options.set("file.format", "orc");
        }
        let schema = Self {
            version: stored.version,
            id: stored.id,
            fields,
            highest_field_id: stored.highest_field_id,
            partition_keys: stored.partition_keys,
            primary_keys: stored.primary_keys,
            options,
            comment: stored.comment,
            time_millis: stored.time_millis,
        };
        schema
            .check_names()
            .map_err(|message| ManifestError::corrupt(path, message))?;
        Ok(schema)
    }

    /// The text of its file, as Java lays it out.
    pub fn to_json(&self) -> Result<String> {
        to_pretty_json(self)
    }

    /// A column by name.
    pub fn field(&self, name: &str) -> Option<&DataField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The position of a column by name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// Names are unique, and keys are columns.
    pub(super) fn check_names(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        for field in &self.fields {
            if !names.insert(field.name.as_str()) {
                return Err(format!("two columns are named {}", field.name));
            }
        }
        for (what, keys) in [
            ("primary key", &self.primary_keys),
            ("partition key", &self.partition_keys),
        ] {
            let mut seen = HashSet::new();
            for key in keys {
                if !names.contains(key.as_str()) {
                    return Err(format!("the {what} column {key} is not a column of the table"));
                }
                if !seen.insert(key) {
                    return Err(format!("the {what} column {key} is named twice"));
                }
            }
        }
        Ok(())
    }
}

fn parse_field(path: &str, json: Json) -> Result<DataField> {
    let name = json
        .get("name")
        .and_then(Json::as_str)
        .unwrap_or("without a name")
        .to_string();
    serde_json::from_value(json).map_err(|error| ManifestError::corrupt(path, format!("column {name}: {error}")))
}
