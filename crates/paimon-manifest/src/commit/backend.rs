//! How a snapshot becomes the next one of its table.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use paimon_format::ErrorKind;
use paimon_format::storage::Storage;

use crate::error::{ManifestError, Result};
use crate::snapshot::Snapshot;

/// Whether a snapshot became the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// It is there: now, or since an earlier try whose answer was lost.
    Won,
    /// Another snapshot took its id. Nothing of this one is visible, and nothing of it can become so.
    Lost,
}

/// Makes `next` the snapshot after `base`, or tells that another one is.
///
/// Exactly one of several callers with the same base wins. An unclear answer of the layer below is resolved by reading back, never
/// guessed: an error means that it could not be found out, and the snapshot may be there, or turn up later.
/// `paimon_manifest::testing::check_backend` checks an implementation.
///
/// Source: `org.apache.paimon.catalog.SnapshotCommit`.
#[async_trait]
pub trait CommitBackend: Debug + Send + Sync {
    /// Publishes a snapshot whose files are all written. `base`: the snapshot it was built on, `None` for the first.
    async fn publish(&self, base: Option<&Snapshot>, next: &Snapshot) -> Result<Published>;
}

/// Publishes by creating the snapshot file if it is absent: conditional put on object stores, an atomic link on local disk.
///
/// Safe with any number of processes that create it the same way. Java's `RenamingSnapshotCommit` checks and then renames, so next
/// to Java writers on a file system without a lock, only one side may commit at a time.
#[derive(Clone, Debug)]
pub struct PutIfAbsentCommit {
    storage: Arc<dyn Storage>,
}

impl PutIfAbsentCommit {
    /// For the table at this root.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }

    /// Whose snapshot is there? `None`: nobody's.
    async fn read_back(&self, path: &str, next: &Snapshot) -> Result<Option<Published>> {
        let bytes = match self.storage.read_all(path).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let found = Snapshot::from_json(path, &bytes)?;
        // Another process of this user may have made the same commit: of other files.
        let ours = found.delta_manifest_list == next.delta_manifest_list;
        Ok(Some(if ours { Published::Won } else { Published::Lost }))
    }
}

#[async_trait]
impl CommitBackend for PutIfAbsentCommit {
    async fn publish(&self, _base: Option<&Snapshot>, next: &Snapshot) -> Result<Published> {
        let path = Snapshot::path(next.id);
        let json = Bytes::from(next.to_json()?);
        match self.storage.put_if_absent(&path, json).await {
            Ok(true) => Ok(Published::Won),
            // "Already exists" may be the echo of our own write, repeated by the storage after a lost answer.
            Ok(false) => self
                .read_back(&path, next)
                .await?
                .ok_or_else(|| ManifestError::corrupt(&path, "the storage says that it exists, but it cannot be read")),
            Err(error) => match self.read_back(&path, next).await {
                Ok(Some(published)) => Ok(published),
                Ok(None) | Err(_) => Err(error.into()),
            },
        }
    }
}
