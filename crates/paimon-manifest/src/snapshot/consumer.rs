//! Consumers: how far named streaming readers have come.

use bytes::Bytes;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::store::SnapshotStore;
use crate::error::{ManifestError, Result};
use crate::json::to_pretty_json;

const DIR: &str = "consumer";
const PREFIX: &str = "consumer-";

/// How far a reader has come: `consumer/consumer-<id>`. Snapshots from this one on do not expire while the file is there.
///
/// Source: `org.apache.paimon.consumer.Consumer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consumer {
    /// The snapshot that it reads next.
    pub next_snapshot: i64,
}

/// The consumers of a table. Cheap to clone; holds no state.
///
/// A consumer file is overwritten in place, as Java does it: of two readers with one id the last that writes wins. When it is the
/// slower one, rows come again to a reader that starts there; none is lost.
///
/// Source: `org.apache.paimon.consumer.ConsumerManager`.
#[derive(Clone, Debug)]
pub struct ConsumerStore {
    snapshots: SnapshotStore,
}

impl ConsumerStore {
    /// The consumers of the table whose snapshots these are.
    pub fn new(snapshots: SnapshotStore) -> Self {
        Self { snapshots }
    }

    /// A consumer's progress, if it is there. Errors: `Invalid` for an id that cannot be one, `Corrupt`.
    pub async fn find(&self, id: &str) -> Result<Option<Consumer>> {
        self.snapshots.read(&path(id)?, from_json).await
    }

    /// Notes a consumer's progress. This also counts as a sign of life for `consumer.expiration-time`.
    ///
    /// Errors: `Invalid` for an id that cannot be one.
    pub async fn put(&self, id: &str, consumer: Consumer) -> Result<()> {
        let json = Bytes::from(to_pretty_json(&consumer)?);
        Ok(self.snapshots.storage().put(&path(id)?, json).await?)
    }

    /// Forgets a consumer: its snapshots may expire. An absent one counts as forgotten.
    pub async fn delete(&self, id: &str) -> Result<()> {
        Ok(self.snapshots.storage().delete(&path(id)?).await?)
    }

    /// All consumers by id, sorted. One that goes away meanwhile is left out. Cost: a listing, and a small read each.
    pub async fn all(&self) -> Result<Vec<(String, Consumer)>> {
        let mut consumers = Vec::new();
        for (id, _) in self.ids().await? {
            if let Some(consumer) = self.find(&id).await? {
                consumers.push((id, consumer));
            }
        }
        Ok(consumers)
    }

    /// The snapshot from which on none may expire, because a consumer has yet to read it; `None` without consumers.
    pub async fn min_next_snapshot(&self) -> Result<Option<i64>> {
        let consumers = self.all().await?;
        Ok(consumers.iter().map(|(_, consumer)| consumer.next_snapshot).min())
    }

    /// Forgets consumers that gave no sign of life since an instant, milliseconds since the epoch. Returns their ids. Those whose
    /// time of modification the storage does not know stay.
    pub async fn expire(&self, before_ms: i64) -> Result<Vec<String>> {
        let mut expired = Vec::new();
        for (id, modified_ms) in self.ids().await? {
            if modified_ms.is_some_and(|modified| modified < before_ms) {
                self.delete(&id).await?;
                expired.push(id);
            }
        }
        Ok(expired)
    }

    /// Ids and times of modification, sorted.
    async fn ids(&self) -> Result<Vec<(String, Option<i64>)>> {
        let mut ids: Vec<(String, Option<i64>)> = self
            .snapshots
            .storage()
            .list(DIR)
            .try_filter_map(|file| async move {
                let name = file.path.rsplit('/').next().unwrap_or_default();
                Ok(name.strip_prefix(PREFIX).map(|id| (id.to_owned(), file.modified_ms)))
            })
            .try_collect()
            .await?;
        ids.sort_unstable();
        Ok(ids)
    }
}

fn path(id: &str) -> Result<String> {
    if id.trim().is_empty() || id.contains('/') {
        return Err(ManifestError::invalid(format!("{id:?} is no consumer id")));
    }
    Ok(format!("{DIR}/{PREFIX}{id}"))
}

fn from_json(path: &str, json: &[u8]) -> Result<Consumer> {
    serde_json::from_slice(json)
        .map_err(|error| ManifestError::corrupt(path, format!("not the JSON of a consumer: {error}")))
}
