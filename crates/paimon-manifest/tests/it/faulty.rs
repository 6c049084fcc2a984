//! A storage whose answers are scripted.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use paimon_format::storage::{FileStatus, Storage, StorageError, StorageWriter};

/// What happens to one call instead of success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The call does nothing and fails as if the network had.
    Unavailable,
    /// The call does its work, then fails as if the answer had been lost.
    Lost,
    /// The storage does its work twice and tells the second answer, as a client does that retries by itself.
    Twice,
    /// The call is refused.
    Refused,
    /// All goes well.
    Fine,
}

/// Answers the calls on matching paths from a script, and all others as the storage below does.
#[derive(Debug)]
pub(crate) struct Scripted {
    below: Arc<dyn Storage>,
    scripts: Mutex<Vec<Script>>,
}

#[derive(Debug)]
struct Script {
    call: &'static str,
    path: String,
    answers: VecDeque<Answer>,
}

impl Scripted {
    pub(crate) fn new(below: Arc<dyn Storage>) -> Self {
        Self {
            below,
            scripts: Mutex::default(),
        }
    }

    /// The next calls of this name on paths that start so.
    pub(crate) fn script(&self, call: &'static str, path: &str, answers: &[Answer]) {
        self.scripts.lock().unwrap().push(Script {
            call,
            path: path.to_string(),
            answers: answers.iter().copied().collect(),
        });
    }

    /// The storage without a script.
    pub(crate) fn below(&self) -> Arc<dyn Storage> {
        Arc::clone(&self.below)
    }

    /// Whether all scripted answers have been given.
    pub(crate) fn exhausted(&self) -> bool {
        self.scripts
            .lock()
            .unwrap()
            .iter()
            .all(|script| script.answers.is_empty())
    }

    fn next(&self, call: &str, path: &str) -> Answer {
        let mut scripts = self.scripts.lock().unwrap();
        scripts
            .iter_mut()
            .filter(|script| script.call == call && path.starts_with(&script.path))
            .find_map(|script| script.answers.pop_front())
            .unwrap_or(Answer::Fine)
    }
}

fn failure(path: &str, answer: Answer) -> StorageError {
    let path = path.to_string();
    match answer {
        Answer::Refused => StorageError::Refused {
            path,
            message: "403 Forbidden".to_string(),
        },
        _ => StorageError::Unavailable {
            path,
            message: "503 Slow Down".to_string(),
        },
    }
}

#[async_trait]
impl Storage for Scripted {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        self.below.read(path, ranges).await
    }

    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        match self.next("read", path) {
            Answer::Fine => self.below.read_all(path).await,
            answer => Err(failure(path, answer)),
        }
    }

    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        match self.next("size", path) {
            Answer::Fine => self.below.size(path).await,
            answer => Err(failure(path, answer)),
        }
    }

    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        match self.next("create", path) {
            Answer::Fine => self.below.create(path).await,
            answer => Err(failure(path, answer)),
        }
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        match self.next("put_if_absent", path) {
            Answer::Fine => self.below.put_if_absent(path, bytes).await,
            Answer::Twice => {
                self.below.put_if_absent(path, bytes.clone()).await?;
                self.below.put_if_absent(path, bytes).await
            }
            Answer::Lost => {
                self.below.put_if_absent(path, bytes).await?;
                Err(failure(path, Answer::Lost))
            }
            answer => Err(failure(path, answer)),
        }
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        match self.next("put", path) {
            Answer::Fine => self.below.put(path, bytes).await,
            answer => Err(failure(path, answer)),
        }
    }

    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        self.below.list(dir)
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        self.below.delete(path).await
    }
}
