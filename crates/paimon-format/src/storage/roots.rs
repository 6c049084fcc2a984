//! Where a table's files lie.

use std::sync::Arc;

use bytes::Bytes;

use super::{Storage, StorageFactory};
use crate::FormatError;
use crate::meta::FileLocation;

/// The roots below which a table's files lie: its own and, where a factory opens them, external ones.
#[derive(Clone, Debug)]
pub struct FileRoots {
    table: Arc<dyn Storage>,
    external: Option<Arc<dyn StorageFactory>>,
}

impl FileRoots {
    /// Files below the table's root alone.
    pub fn new(table: Arc<dyn Storage>) -> Self {
        Self { table, external: None }
    }

    /// Opens files that are not below the table's root.
    #[must_use]
    pub fn with_external(self, factory: Arc<dyn StorageFactory>) -> Self {
        Self {
            external: Some(factory),
            ..self
        }
    }

    /// The table's root.
    pub fn table(&self) -> &Arc<dyn Storage> {
        &self.table
    }

    /// The storage that holds a file, and the file's path in it.
    ///
    /// Errors: `Unsupported` for an external file without a factory; those of the factory.
    pub async fn locate(&self, location: FileLocation) -> Result<(Arc<dyn Storage>, String), FormatError> {
        let path = match location {
            FileLocation::Table(path) => return Ok((Arc::clone(&self.table), path)),
            FileLocation::External(path) => path,
        };
        let split = path.rsplit_once('/');
        let (Some(factory), Some((directory, name))) = (&self.external, split) else {
            return Err(FormatError::unsupported(format!(
                "{path}: a file outside of the table's root"
            )));
        };
        Ok((factory.open(directory).await?, name.to_owned()))
    }

    /// Writes a new file of these bytes.
    ///
    /// Errors: those of [`locate`](Self::locate) and of [`Storage::create`]; `Unavailable`: there may be a file.
    pub async fn write_new(&self, location: FileLocation, bytes: Bytes) -> Result<(), FormatError> {
        let (storage, path) = self.locate(location).await?;
        let mut writer = storage.create(&path).await?;
        writer.write(bytes).await?;
        writer.finish().await?;
        Ok(())
    }

    /// Removes a file, as [`Storage::delete`] does. Errors: its, and those of [`locate`](Self::locate).
    pub async fn delete(&self, location: FileLocation) -> Result<(), FormatError> {
        let (storage, path) = self.locate(location).await?;
        Ok(storage.delete(&path).await?)
    }
}
