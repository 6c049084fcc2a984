//! The schema versions of a table.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use paimon_format::kv::SchemaSource;
use paimon_format::storage::{Storage, StorageError};
use paimon_format::types::DataField;
use paimon_format::{ErrorKind, FormatError};

use super::table_schema::TableSchema;
use crate::error::{ManifestError, Result};
use crate::numbered::list_ids;

const DIR: &str = "schema";
const PREFIX: &str = "schema-";

/// The schema versions of a table, also as the [`SchemaSource`] of readers. Cheap to clone; clones share the versions read so far, which never change.
///
/// Source: `org.apache.paimon.schema.SchemaManager`.
#[derive(Clone, Debug)]
pub struct SchemaStore {
    storage: Arc<dyn Storage>,
    read: Arc<Mutex<HashMap<i64, Arc<TableSchema>>>>,
}

impl SchemaStore {
    /// The schemas below a table's root.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            read: Arc::default(),
        }
    }

    /// All versions, ascending; empty when there is no table. Cost: a listing.
    pub async fn list_ids(&self) -> Result<Vec<i64>> {
        list_ids(self.storage.as_ref(), DIR, PREFIX).await
    }

    /// The latest version; `None` when there is no table. Cost: a listing, and a read the first time.
    pub async fn latest(&self) -> Result<Option<Arc<TableSchema>>> {
        match self.list_ids().await?.last() {
            Some(id) => Ok(Some(self.get(*id).await?)),
            None => Ok(None),
        }
    }

    /// A version by its id. Errors: `NotFound`, `Corrupt` (the file and the column are named), `Unsupported`.
    pub async fn get(&self, id: i64) -> Result<Arc<TableSchema>> {
        if let Some(schema) = self.cached(id) {
            return Ok(schema);
        }
        let path = TableSchema::path(id);
        let bytes = self.storage.read_all(&path).await.map_err(|error| match error.kind() {
            ErrorKind::NotFound => ManifestError::NotFound(format!("schema {id} does not exist")),
            _ => error.into(),
        })?;
        let schema = Arc::new(TableSchema::from_json(&path, &bytes)?);
        if schema.id != id {
            return Err(ManifestError::corrupt(
                path,
                format!("it holds the schema of id {}", schema.id),
            ));
        }
        self.lock().insert(id, Arc::clone(&schema));
        Ok(schema)
    }

    /// Writes a new version, unless there is one of its id: `false`, nothing changed.
    ///
    /// After an unclear answer the file is read back, so an error means that it could not be found out.
    pub async fn create(&self, schema: &TableSchema) -> Result<bool> {
        let path = TableSchema::path(schema.id);
        let json = Bytes::from(schema.to_json()?);
        match self.storage.put_if_absent(&path, json.clone()).await {
            Ok(true) => Ok(true),
            // It may be ours, written by a try of the storage itself whose answer was lost.
            Ok(false) => Ok(self.storage.read_all(&path).await? == json),
            Err(error) => match self.storage.read_all(&path).await {
                Ok(found) => Ok(found == json),
                Err(_) => Err(error.into()),
            },
        }
    }

    fn cached(&self, id: i64) -> Option<Arc<TableSchema>> {
        self.lock().get(&id).map(Arc::clone)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<i64, Arc<TableSchema>>> {
        // Nothing panics while it is held.
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Readers of data files ask for the columns of older versions.
#[async_trait]
impl SchemaSource for SchemaStore {
    async fn fields(&self, schema_id: i64) -> Result<Arc<[DataField]>, FormatError> {
        match self.get(schema_id).await {
            Ok(schema) => Ok(schema.fields.as_slice().into()),
            Err(ManifestError::Format(error)) => Err(error),
            Err(ManifestError::NotFound(_)) => Err(StorageError::NotFound {
                path: TableSchema::path(schema_id),
            }
            .into()),
            Err(ManifestError::Unsupported(message)) => Err(FormatError::Unsupported(message)),
            Err(other) => Err(FormatError::corrupt(TableSchema::path(schema_id), other)),
        }
    }
}
