//! The environment: the only door to time, randomness, threads and shared budgets.
//!
//! Everything that decides something takes an [`Env`]; a test or a simulator gives another one and gets the same run every time.

mod budget;
mod inline;
mod stop;
mod system;
#[cfg(feature = "test-util")]
mod testing;

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::BoxFuture;

use crate::error::FormatError;

pub use budget::{Budget, Reservation};
pub use inline::InlineRuntime;
pub use stop::StopSignal;
pub use system::{SystemClock, SystemIds, TokioRuntime};
#[cfg(feature = "test-util")]
pub use testing::{CountingIds, TickingClock};

/// Wall-clock time.
pub trait Clock: Debug + Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
    /// The local offset from UTC at an instant, in milliseconds (`_CREATION_TIME` and off-peak hours are local time).
    fn local_offset_ms(&self, at_ms: i64) -> i64;
}

/// Unique names and other random draws.
pub trait FileIds: Debug + Send + Sync {
    /// A random (version 4) UUID as 36 lower-case characters.
    fn uuid(&self) -> String;
    /// Uniform in `0..bound`; 0 when `bound` is 0. Used for back-off only.
    fn jitter(&self, bound: u64) -> u64;
}

/// Where work runs.
pub trait Runtime: Debug + Send + Sync {
    /// Runs a task in the background until it ends. A task that the runtime drops (on shutdown) ends early.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Runs CPU-bound work on the CPU pool. [`Env::cpu`] gives the result; a job must not panic.
    fn cpu(&self, job: Box<dyn FnOnce() + Send>);
    /// Runs blocking file calls off the async threads. [`Env::blocking`] gives the result; a job must not panic.
    fn blocking(&self, job: Box<dyn FnOnce() + Send>);
    /// Ends after the time has passed.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// Everything outside the program that it may use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Unique names.
    pub ids: Arc<dyn FileIds>,
    /// Threads.
    pub runtime: Arc<dyn Runtime>,
    /// Memory for write buffers, decode windows, batches and open row groups.
    pub memory: Budget,
    /// Memory for what is kept only to be faster next time.
    pub cache: Budget,
    /// Local disk for spills and lookup files.
    pub disk: Budget,
    /// Folder for spills and lookup files.
    pub temp: PathBuf,
}

impl Env {
    /// The system's clock and random names, with a runtime and budgets in bytes; memory as [`with_memory`](Self::with_memory).
    pub fn system(runtime: Arc<dyn Runtime>, memory_bytes: u64, disk_bytes: u64, temp: impl Into<PathBuf>) -> Self {
        let env = Self {
            clock: Arc::new(SystemClock),
            ids: Arc::new(SystemIds),
            runtime,
            memory: Budget::new(0),
            cache: Budget::new(0),
            disk: Budget::new(disk_bytes),
            temp: temp.into(),
        };
        env.with_memory(memory_bytes)
    }

    /// The same with so many bytes of memory: a quarter of what is beyond 32 MiB is for caches. Caches get 4 MiB at least, beside a memory
    /// that is too small to be shared.
    #[must_use]
    pub fn with_memory(self, bytes: u64) -> Self {
        let cache = bytes.saturating_sub(32 << 20) / 4;
        Self {
            memory: Budget::new(bytes - cache),
            cache: Budget::new(cache.max(4 << 20)),
            ..self
        }
    }

    /// Runs CPU-bound work on the CPU pool and waits for its result.
    ///
    /// Errors: `Internal` when the work panicked (with the panic's message) or its pool is gone.
    pub async fn cpu<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, FormatError> {
        let (job, result) = job_of(work);
        self.runtime.cpu(job);
        wait_for(result).await
    }

    /// Runs blocking file calls off the async threads and waits for their result. Errors as [`Env::cpu`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FormatError> {
        let (job, result) = job_of(work);
        self.runtime.blocking(job);
        wait_for(result).await
    }
}

/// What a job left: its result, or what it panicked with.
type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// The work as a job that never panics: a rayon pool would take the process down.
fn job_of<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> (Box<dyn FnOnce() + Send>, oneshot::Receiver<Outcome<T>>) {
    let (sender, receiver) = oneshot::channel();
    let job = Box::new(move || {
        // The receiver is gone when the waiting future was dropped: nobody wants the result any more.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    (job, receiver)
}

async fn wait_for<T>(result: oneshot::Receiver<Outcome<T>>) -> Result<T, FormatError> {
    match result.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => {
            let message = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            Err(FormatError::internal(format!(
                "a background job panicked: {}",
                message.unwrap_or("no message")
            )))
        }
        Err(_) => Err(FormatError::internal(
            "a background job was dropped: its thread pool has stopped",
        )),
    }
}

#[cfg(test)]
mod tests;
