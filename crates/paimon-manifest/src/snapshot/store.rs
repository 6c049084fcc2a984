//! The snapshots of a table.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use paimon_format::ErrorKind;
use paimon_format::env::Env;
use paimon_format::storage::Storage;

use super::hint::read_hint;
use super::model::Snapshot;
use crate::error::{ManifestError, Result};
use crate::numbered::list_ids;

const DIR: &str = "snapshot";
const PREFIX: &str = "snapshot-";
const LATEST: &str = "snapshot/LATEST";
const EARLIEST: &str = "snapshot/EARLIEST";
/// How often a file that does not parse is read again: a writer without atomic rename may be seen half way.
const READ_ATTEMPTS: u32 = 5;
const READ_PAUSE: Duration = Duration::from_millis(200);
/// How far the search for the earliest snapshot follows an expiration that runs at the same time.
const EARLIEST_ATTEMPTS: i64 = 300;

/// The snapshots of a table. Cheap to clone; holds no state.
///
/// Source: `org.apache.paimon.utils.SnapshotManager`.
#[derive(Clone, Debug)]
pub struct SnapshotStore {
    storage: Arc<dyn Storage>,
    env: Env,
}

impl SnapshotStore {
    /// The snapshots below a table's root.
    pub fn new(storage: Arc<dyn Storage>, env: Env) -> Self {
        Self { storage, env }
    }

    /// The id of the latest snapshot; `None` when there is none.
    ///
    /// Cost: one small read and two existence checks; a listing when the hint is missing or wrong. Unlike Java, a hint beyond the
    /// last snapshot is noticed.
    pub async fn latest_id(&self) -> Result<Option<i64>> {
        if let Some(id) = read_hint(&*self.storage, LATEST).await? {
            let (here, next) = futures::future::try_join(self.exists(id), self.exists(id.saturating_add(1))).await?;
            if here && !next {
                return Ok(Some(id));
            }
        }
        Ok(self.list_ids().await?.last().copied())
    }

    /// The id of the earliest snapshot; `None` when there is none.
    pub async fn earliest_id(&self) -> Result<Option<i64>> {
        if let Some(id) = read_hint(&*self.storage, EARLIEST).await?
            && self.exists(id).await?
        {
            return Ok(Some(id));
        }
        Ok(self.list_ids().await?.first().copied())
    }

    /// The latest snapshot; `None` only when there is none.
    ///
    /// Errors: `NotFound` when it went away again and again (a rollback at the same time), `Corrupt`.
    pub async fn latest(&self) -> Result<Option<Snapshot>> {
        let mut vanished = 0;
        for _ in 0..READ_ATTEMPTS {
            let Some(id) = self.latest_id().await? else {
                return Ok(None);
            };
            if let Some(snapshot) = self.find(id).await? {
                return Ok(Some(snapshot));
            }
            vanished = id;
        }
        Err(ManifestError::NotFound(format!(
            "snapshot {vanished} was the latest, but it is gone"
        )))
    }

    /// The earliest snapshot; `None` when there is none. Goes on upwards when an expiration takes snapshots away meanwhile.
    pub async fn earliest(&self) -> Result<Option<Snapshot>> {
        let Some(earliest) = self.earliest_id().await? else {
            return Ok(None);
        };
        for id in earliest..=earliest.saturating_add(EARLIEST_ATTEMPTS) {
            if let Some(snapshot) = self.find(id).await? {
                return Ok(Some(snapshot));
            }
        }
        Ok(None)
    }

    /// All ids, ascending. Other files in the directory do not count. Cost: a listing.
    pub async fn list_ids(&self) -> Result<Vec<i64>> {
        list_ids(self.storage.as_ref(), DIR, PREFIX).await
    }

    /// A snapshot by its id. Errors: `NotFound` (it never was, or has expired), `Corrupt`.
    pub async fn get(&self, id: i64) -> Result<Snapshot> {
        self.find(id)
            .await?
            .ok_or_else(|| ManifestError::NotFound(format!("snapshot {id} does not exist (or has expired)")))
    }

    /// A snapshot by its id, if it is there. Errors: `Corrupt`.
    pub async fn find(&self, id: i64) -> Result<Option<Snapshot>> {
        self.read(&Snapshot::path(id), Snapshot::from_json).await
    }

    /// Whether there is a snapshot of this id.
    pub async fn exists(&self, id: i64) -> Result<bool> {
        Ok(self.storage.size(&Snapshot::path(id)).await?.is_some())
    }

    /// The newest snapshot committed at or before a time. Snapshots never go back in time. `None`: all are later, or none is there.
    ///
    /// Cost: log2 of the number of snapshots reads. Source: `SnapshotManager.earlierOrEqualTimeMills`.
    pub async fn at_or_before(&self, time_ms: i64) -> Result<Option<Snapshot>> {
        let (Some(earliest), Some(latest)) = (self.earliest().await?, self.latest_id().await?) else {
            return Ok(None);
        };
        if earliest.time_millis > time_ms {
            return Ok(None);
        }
        let mut found = earliest;
        let mut beyond = latest + 1;
        while beyond - found.id > 1 {
            let middle = self.get(found.id + (beyond - found.id) / 2).await?;
            if middle.time_millis <= time_ms {
                found = middle;
            } else {
                beyond = middle.id;
            }
        }
        Ok(Some(found))
    }

    /// The newest snapshot of a commit user, from the latest down to the first that is missing.
    ///
    /// Cost: one read a snapshot until it is found. Source: `SnapshotManager.latestSnapshotOfUser`.
    pub async fn latest_of_user(&self, user: &str) -> Result<Option<Snapshot>> {
        let mut id = self.latest_id().await?;
        while let Some(current) = id {
            match self.find(current).await? {
                Some(snapshot) if snapshot.commit_user == user => return Ok(Some(snapshot)),
                Some(_) if current > 1 => id = Some(current - 1),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Notes the latest id, so that readers need no listing. Never call it with an id that is not there: Java believes it.
    pub async fn write_latest_hint(&self, id: i64) -> Result<()> {
        Ok(self.storage.put(LATEST, Bytes::from(id.to_string())).await?)
    }

    /// Reads a JSON file, again after a pause when it does not parse.
    pub(super) async fn read<T>(&self, path: &str, parse: impl Fn(&str, &[u8]) -> Result<T>) -> Result<Option<T>> {
        let mut attempt = 1;
        loop {
            let bytes = match self.storage.read_all(path).await {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            match parse(path, &bytes) {
                Err(error) if attempt == READ_ATTEMPTS => return Err(error),
                Err(_) => self.env.runtime.sleep(READ_PAUSE).await,
                Ok(value) => return Ok(Some(value)),
            }
            attempt += 1;
        }
    }

    pub(super) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }
}
