//! The wrapper.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use paimon_format::env::Env;
use paimon_format::storage::{FileStatus, Storage, StorageError, StorageWriter};

use super::plan::{CallKind, Fault, FaultPlan};

/// A call, in the order of their starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedCall {
    /// Its kind.
    pub call: CallKind,
    /// Its path.
    pub path: String,
    /// What went wrong, if anything was made to.
    pub fault: Option<Fault>,
}

impl fmt::Display for LoggedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.call, self.path)?;
        match self.fault {
            Some(fault) => write!(f, " ! {fault:?}"),
            None => Ok(()),
        }
    }
}

/// A storage that answers by plan. Clones share plan and log.
#[derive(Clone, Debug)]
pub struct FaultyStorage {
    inner: Arc<dyn Storage>,
    env: Env,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    plan: FaultPlan,
    calls: Vec<LoggedCall>,
}

impl FaultyStorage {
    /// Wraps a storage. Delays are `env`'s.
    pub fn new(inner: Arc<dyn Storage>, env: Env, plan: FaultPlan) -> Self {
        let state = State {
            plan,
            calls: Vec::new(),
        };
        Self {
            inner,
            env,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Goes on by another plan.
    pub fn follow(&self, plan: FaultPlan) {
        self.with_state(|state| state.plan = plan);
    }

    /// All calls so far.
    pub fn calls(&self) -> Vec<LoggedCall> {
        self.with_state(|state| state.calls.clone())
    }

    /// All calls since the last take.
    pub fn take_calls(&self) -> Vec<LoggedCall> {
        self.with_state(|state| std::mem::take(&mut state.calls))
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Logs the call and makes it as the plan says.
    async fn call<T>(
        &self,
        call: CallKind,
        path: &str,
        work: impl Future<Output = Result<T, StorageError>> + Send,
    ) -> Result<T, StorageError> {
        let fault = self.with_state(|state| {
            let fault = state.plan.fault(call, path);
            state.calls.push(LoggedCall {
                call,
                path: path.to_owned(),
                fault,
            });
            fault
        });
        match fault {
            None => work.await,
            Some(Fault::Fail) => Err(StorageError::unavailable(path, "503 by plan")),
            Some(Fault::Refuse) => Err(StorageError::refused(path, "403 by plan")),
            Some(Fault::LoseAnswer) => {
                // Whatever it said, nobody hears it.
                let _ = work.await;
                Err(StorageError::unavailable(path, "time-out by plan"))
            }
            Some(Fault::Delay(time)) => {
                self.env.runtime.sleep(time).await;
                work.await
            }
        }
    }
}

#[async_trait]
impl Storage for FaultyStorage {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        self.call(CallKind::Read, path, self.inner.read(path, ranges)).await
    }

    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        self.call(CallKind::Read, path, self.inner.read_all(path)).await
    }

    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        self.call(CallKind::Size, path, self.inner.size(path)).await
    }

    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        let writer = self.call(CallKind::Create, path, self.inner.create(path)).await?;
        Ok(Box::new(FaultyWriter {
            inner: writer,
            path: path.to_owned(),
            storage: self.clone(),
        }))
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        self.call(CallKind::PutIfAbsent, path, self.inner.put_if_absent(path, bytes))
            .await
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.call(CallKind::Put, path, self.inner.put(path, bytes)).await
    }

    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        let files = self.inner.list(dir).try_collect::<Vec<_>>();
        stream::once(self.call(CallKind::List, dir, files))
            .map_ok(|files| stream::iter(files.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        self.call(CallKind::Delete, path, self.inner.delete(path)).await
    }
}

struct FaultyWriter {
    inner: Box<dyn StorageWriter>,
    path: String,
    storage: FaultyStorage,
}

#[async_trait]
impl StorageWriter for FaultyWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.storage
            .call(CallKind::Write, &self.path, self.inner.write(bytes))
            .await
    }

    async fn finish(self: Box<Self>) -> Result<u64, StorageError> {
        self.storage
            .call(CallKind::Finish, &self.path, self.inner.finish())
            .await
    }

    async fn abort(self: Box<Self>) {
        self.inner.abort().await;
    }
}
