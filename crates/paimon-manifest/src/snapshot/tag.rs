//! Tags: named snapshots that do not expire with the others.

use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::model::Snapshot;
use super::store::SnapshotStore;
use crate::error::{ManifestError, Result};

const DIR: &str = "tag";
const PREFIX: &str = "tag-";

/// A named snapshot: `tag/tag-<name>`.
///
/// Source: `org.apache.paimon.tag.Tag`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tag {
    /// The snapshot, whether or not its own file still exists.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// Local time of creation: year, month, day, hour, minute, second, nanoseconds; zero parts at the end may be missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_create_time: Option<Vec<i64>>,
    /// How long it is kept, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag_time_retained: Option<f64>,
}

impl Tag {
    /// Reads the JSON of the file at `path`, which errors name.
    pub fn from_json(path: &str, json: &[u8]) -> Result<Self> {
        serde_json::from_slice(json)
            .map_err(|error| ManifestError::corrupt(path, format!("not the JSON of a tag: {error}")))
    }

    /// Its file, relative to the table.
    pub fn path(name: &str) -> String {
        format!("{DIR}/{PREFIX}{name}")
    }
}

impl SnapshotStore {
    /// A tag, if it is there. Errors: `Corrupt`, `Invalid` for a name that cannot be one.
    pub async fn find_tag(&self, name: &str) -> Result<Option<Tag>> {
        if name.trim().is_empty() || name.contains('/') {
            return Err(ManifestError::invalid(format!("{name:?} is no tag name")));
        }
        self.read(&Tag::path(name), Tag::from_json).await
    }

    /// A tag. Errors: `NotFound`, `Corrupt`.
    pub async fn tag(&self, name: &str) -> Result<Tag> {
        self.find_tag(name)
            .await?
            .ok_or_else(|| ManifestError::NotFound(format!("tag {name} does not exist")))
    }

    /// Names of all tags, sorted. Cost: a listing.
    pub async fn tag_names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self
            .storage()
            .list(DIR)
            .try_filter_map(|file| async move {
                let name = file.path.rsplit('/').next().unwrap_or_default();
                Ok(name.strip_prefix(PREFIX).map(str::to_string))
            })
            .try_collect()
            .await?;
        names.sort_unstable();
        Ok(names)
    }
}
