//! Object stores, through the `object_store` crate.
//!
//! The only public signature of this workspace that names a type of `object_store` is [`ObjectStorage::new`]: embedders with
//! another version of that crate implement [`Storage`] themselves.

mod ranges;
mod upload;

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::path::{check_dir, check_file, join};
use super::{FileStatus, Storage, StorageError, StorageWriter};
use crate::env::Env;

/// Requests of one read that are under way together.
const REQUESTS_AT_A_TIME: usize = 8;

/// [`Storage`] over an object store. Every write is one object, visible with all its bytes or not at all.
///
/// Temporary failures (5xx) are retried with back-off below, by the store's own `RetryConfig`. If such a retry follows a
/// conditional write that did happen, `put_if_absent` answers `false` although the bytes are ours: a committer reads back.
/// Calls must be polled where the store's HTTP client works: inside a tokio runtime.
#[derive(Clone, Debug)]
pub struct ObjectStorage {
    store: Arc<dyn ObjectStore>,
    root: String,
    env: Env,
}

impl ObjectStorage {
    /// The objects of `store` below the key `root` (empty: all of them). Names a type of `object_store` 0.13.
    ///
    /// Errors: `Refused` if `root` is no path.
    pub fn new(store: Arc<dyn ObjectStore>, root: &str, env: Env) -> Result<Self, StorageError> {
        check_dir(root)?;
        Ok(Self {
            store,
            root: root.to_owned(),
            env,
        })
    }

    /// The key of a path, literally: `Path::parse` does not escape, `Path::from` would.
    fn location(&self, path: &str) -> Result<Path, StorageError> {
        check_file(path)?;
        parse_key(path, &join(&self.root, path))
    }

    async fn size_at(&self, path: &str, location: &Path) -> Result<Option<u64>, StorageError> {
        match self.store.head(location).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(read_error(path, error)),
        }
    }

    async fn children(&self, dir: &str) -> Result<Vec<FileStatus>, StorageError> {
        check_dir(dir)?;
        let key = if dir.is_empty() {
            self.root.clone()
        } else {
            join(&self.root, dir)
        };
        let prefix = parse_key(dir, &key)?;
        let listed = self
            .store
            .list_with_delimiter(Some(&prefix))
            .await
            .map_err(|error| write_error(dir, error))?;
        let below = if key.is_empty() { key } else { format!("{key}/") };
        let path = |location: &Path| Some(join(dir, location.as_ref().strip_prefix(&below)?));
        // A directory marker has the key of the directory itself: no child.
        let files = listed
            .objects
            .iter()
            .filter_map(|object| file(path(&object.location)?, object));
        let folders = listed.common_prefixes.iter().filter_map(|prefix| folder(path(prefix)?));
        Ok(files.chain(folders).collect())
    }

    /// What to say when ranges could not be read: too short a file, or the store's own error.
    async fn range_error(
        &self,
        path: &str,
        location: &Path,
        ranges: &[Range<u64>],
        error: Option<Error>,
    ) -> StorageError {
        match self.size_at(path, location).await {
            Ok(None) => return StorageError::not_found(path),
            Ok(Some(size)) => {
                let beyond = |range: &&Range<u64>| range.start > range.end || range.end > size;
                if let Some(range) = ranges.iter().find(beyond) {
                    return StorageError::OutOfRange {
                        path: path.to_owned(),
                        range: range.clone(),
                        size,
                    };
                }
            }
            Err(error) => return error,
        }
        match error {
            Some(error) => read_error(path, error),
            None => StorageError::unavailable(path, "the store sent fewer bytes than it was asked for"),
        }
    }
}

#[async_trait]
impl Storage for ObjectStorage {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        let location = self.location(path)?;
        if ranges.iter().any(|range| range.start > range.end) {
            return Err(self.range_error(path, &location, ranges, None).await);
        }
        let covering = ranges::coalesce(ranges);
        let requests = covering
            .iter()
            .map(|range| self.store.get_range(&location, range.clone()));
        let requests = stream::iter(requests.collect::<Vec<_>>()).buffered(REQUESTS_AT_A_TIME);
        let fetched: Vec<Bytes> = match requests.try_collect().await {
            Ok(fetched) => fetched,
            Err(error) => return Err(self.range_error(path, &location, ranges, Some(error)).await),
        };
        let parts: Option<Vec<_>> = ranges
            .iter()
            .map(|range| ranges::cut(range, &covering, &fetched))
            .collect();
        match parts {
            Some(parts) => Ok(parts),
            None => Err(self.range_error(path, &location, ranges, None).await),
        }
    }

    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        let location = self.location(path)?;
        let found = self
            .store
            .get(&location)
            .await
            .map_err(|error| read_error(path, error))?;
        found.bytes().await.map_err(|error| read_error(path, error))
    }

    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        let location = self.location(path)?;
        self.size_at(path, &location).await
    }

    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        let location = self.location(path)?;
        Ok(Box::new(upload::ObjectWriter::new(
            Arc::clone(&self.store),
            path.to_owned(),
            location,
            self.env.clone(),
        )))
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        let location = self.location(path)?;
        let create = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&location, bytes.into(), create).await {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { source, .. }) if is_failed_condition(source.as_ref()) => Ok(false),
            Err(Error::AlreadyExists { .. }) => {
                // 409 comes as the same error; it says that another write was under way, which may have failed: only a look tells.
                match self.size_at(path, &location).await? {
                    Some(_) => Ok(false),
                    None => Err(StorageError::unavailable(
                        path,
                        "another write of this name was under way",
                    )),
                }
            }
            Err(error) => Err(write_error(path, error)),
        }
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        let location = self.location(path)?;
        match self.store.put(&location, bytes.into()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(write_error(path, error)),
        }
    }

    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        stream::once(self.children(dir))
            .flat_map(|children| match children {
                Ok(children) => stream::iter(children.into_iter().map(Ok)).boxed(),
                Err(error) => stream::once(async move { Err(error) }).boxed(),
            })
            .boxed()
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        let location = self.location(path)?;
        match self.store.delete(&location).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(write_error(path, error)),
        }
    }
}

/// 412 or 304: the store looked, and the object is there.
fn is_failed_condition(source: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    matches!(
        source.downcast_ref(),
        Some(Error::Precondition { .. } | Error::NotModified { .. })
    )
}

fn parse_key(path: &str, key: &str) -> Result<Path, StorageError> {
    Path::parse(key).map_err(|error| StorageError::refused(path, error))
}

fn file(path: String, object: &ObjectMeta) -> Option<FileStatus> {
    (!path.is_empty()).then(|| FileStatus {
        path,
        size: object.size,
        modified_ms: Some(object.last_modified.timestamp_millis()),
        is_dir: false,
    })
}

fn folder(path: String) -> Option<FileStatus> {
    (!path.is_empty()).then_some(FileStatus {
        path,
        size: 0,
        modified_ms: None,
        is_dir: true,
    })
}

fn read_error(path: &str, error: Error) -> StorageError {
    match error {
        Error::NotFound { .. } => StorageError::not_found(path),
        error => write_error(path, error),
    }
}

/// An error of a call that needs no object to be there: "not found" means the bucket.
fn write_error(path: &str, error: Error) -> StorageError {
    match error {
        Error::PermissionDenied { .. }
        | Error::Unauthenticated { .. }
        | Error::NotFound { .. }
        | Error::InvalidPath { .. }
        | Error::NotSupported { .. }
        | Error::NotImplemented { .. }
        | Error::UnknownConfigurationKey { .. } => StorageError::refused(path, error),
        Error::Generic { source, .. } if is_refusal(&source.to_string()) => StorageError::refused(path, source),
        error => StorageError::unavailable(path, error),
    }
}

/// Whether an unsorted error is the store's "no". The errors of a listing hide their status; only their text has it.
fn is_refusal(message: &str) -> bool {
    const STATUS: &str = "status code: ";
    let status = message
        .find(STATUS)
        .and_then(|at| message.get(at + STATUS.len()..)?.get(..3));
    matches!(status, Some("400" | "401" | "403" | "404" | "405"))
}
