//! Files in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};

use super::path::{check_dir, check_file, join};
use super::{FileStatus, Storage, StorageError, StorageWriter};
use crate::env::Clock;

/// [`Storage`] in memory. Clones share their files; [`below`](Self::below) gives a folder of them.
#[derive(Clone, Debug)]
pub struct MemoryStorage {
    clock: Arc<dyn Clock>,
    files: Arc<Mutex<BTreeMap<String, StoredFile>>>,
    root: String,
}

#[derive(Debug)]
struct StoredFile {
    bytes: Bytes,
    modified_ms: i64,
}

impl MemoryStorage {
    /// No files yet. The clock dates them.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            files: Arc::default(),
            root: String::new(),
        }
    }

    /// The same files, seen from a folder.
    ///
    /// Errors: `Refused` for a name that is no path.
    pub fn below(&self, dir: &str) -> Result<Self, StorageError> {
        check_file(dir)?;
        Ok(Self {
            root: join(&self.root, dir),
            ..self.clone()
        })
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<String, StoredFile>> {
        // No code panics while it holds the lock, and every change is a single call.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, path: &str) -> Result<String, StorageError> {
        check_file(path)?;
        Ok(join(&self.root, path))
    }

    fn stored(&self, bytes: Bytes) -> StoredFile {
        StoredFile {
            bytes,
            modified_ms: self.clock.now_ms(),
        }
    }

    fn children(&self, dir: &str) -> Result<Vec<FileStatus>, StorageError> {
        check_dir(dir)?;
        let mut prefix = if dir.is_empty() {
            self.root.clone()
        } else {
            self.key(dir)?
        };
        if !prefix.is_empty() {
            prefix.push('/');
        }
        let files = self.files();
        let (mut children, mut folders) = (Vec::new(), BTreeSet::new());
        for (key, file) in files.range(prefix.clone()..) {
            let Some(rest) = key.strip_prefix(&prefix) else { break };
            let (name, is_dir) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
            if is_dir && !folders.insert(name) {
                continue;
            }
            children.push(FileStatus {
                path: join(dir, name),
                size: if is_dir { 0 } else { file.bytes.len() as u64 },
                modified_ms: (!is_dir).then_some(file.modified_ms),
                is_dir,
            });
        }
        Ok(children)
    }
}

#[async_trait]
impl Storage for MemoryStorage {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        let bytes = self.read_all(path).await?;
        let slice = |range: &Range<u64>| {
            let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
            (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
        };
        let out_of_range = |range: &Range<u64>| StorageError::OutOfRange {
            path: path.to_owned(),
            range: range.clone(),
            size: bytes.len() as u64,
        };
        ranges
            .iter()
            .map(|range| slice(range).ok_or_else(|| out_of_range(range)))
            .collect()
    }

    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        let key = self.key(path)?;
        let files = self.files();
        let file = files.get(&key).ok_or_else(|| StorageError::not_found(path))?;
        Ok(file.bytes.clone())
    }

    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        let key = self.key(path)?;
        Ok(self.files().get(&key).map(|file| file.bytes.len() as u64))
    }

    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        self.key(path)?;
        Ok(Box::new(MemoryWriter {
            storage: self.clone(),
            path: path.to_owned(),
            bytes: BytesMut::new(),
        }))
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        let key = self.key(path)?;
        let file = self.stored(bytes);
        let mut files = self.files();
        let absent = !files.contains_key(&key);
        if absent {
            files.insert(key, file);
        }
        Ok(absent)
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        let key = self.key(path)?;
        let file = self.stored(bytes);
        self.files().insert(key, file);
        Ok(())
    }

    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        match self.children(dir) {
            Ok(children) => stream::iter(children.into_iter().map(Ok)).boxed(),
            Err(error) => stream::once(async move { Err(error) }).boxed(),
        }
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        let key = self.key(path)?;
        self.files().remove(&key);
        Ok(())
    }
}

struct MemoryWriter {
    storage: MemoryStorage,
    path: String,
    bytes: BytesMut,
}

#[async_trait]
impl StorageWriter for MemoryWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<u64, StorageError> {
        let bytes = self.bytes.freeze();
        let size = bytes.len() as u64;
        if self.storage.put_if_absent(&self.path, bytes).await? {
            Ok(size)
        } else {
            Err(StorageError::refused(&self.path, "there is such a file already"))
        }
    }

    async fn abort(self: Box<Self>) {}
}
