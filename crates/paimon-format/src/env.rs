//! The environment: the only door to time, randomness, threads and shared budgets.
//!
//! Everything that decides something takes an [`Env`]; a test or a simulator gives another one and gets the same run every time.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::BoxFuture;

use crate::error::FormatError;

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
    /// Runs a task in the background until it ends.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Runs CPU-bound work on the CPU pool.
    fn cpu(&self, job: Box<dyn FnOnce() + Send>);
    /// Runs blocking file calls off the async threads.
    fn blocking(&self, job: Box<dyn FnOnce() + Send>);
    /// Ends after the time has passed.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// Bytes that all buckets of a process share. Cheap to clone; clones share the count.
///
/// A task reserves once, up front, and derives its window and batch sizes from what it was granted: nobody waits for memory
/// while holding some, so nobody waits for ever.
#[derive(Clone, Debug)]
pub struct Budget {
    total: u64,
    free: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    free: AtomicU64,
    released: tokio::sync::Notify,
}

/// Bytes taken from a [`Budget`]; given back on drop.
#[derive(Debug)]
pub struct Reservation {
    bytes: u64,
    budget: Budget,
}

impl Budget {
    /// A budget of `total` bytes.
    pub fn new(total: u64) -> Self {
        Self {
            total,
            free: Arc::new(BudgetState {
                free: AtomicU64::new(total),
                released: tokio::sync::Notify::new(),
            }),
        }
    }

    /// All bytes, taken or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that are free now.
    pub fn free(&self) -> u64 {
        self.free.free.load(Ordering::Acquire)
    }

    /// Takes `bytes` if they are free now.
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        self.free
            .free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| free.checked_sub(bytes))
            .ok()?;
        Some(Reservation {
            bytes,
            budget: self.clone(),
        })
    }

    /// Takes between `min` and `max` bytes: as much as is free, waiting until `min` are.
    ///
    /// Errors: `Invalid` when `min` is more than the whole budget.
    pub async fn reserve(&self, min: u64, max: u64) -> Result<Reservation, FormatError> {
        if min > self.total {
            return Err(FormatError::invalid(format!(
                "the memory budget is {} bytes, but this task needs at least {min}",
                self.total
            )));
        }
        loop {
            let released = self.free.released.notified();
            let wanted = self.free().clamp(min, max.max(min));
            if let Some(reservation) = self.try_reserve(wanted) {
                return Ok(reservation);
            }
            if self.free() < min {
                released.await;
            }
        }
    }
}

impl Reservation {
    /// The bytes granted.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.free.free.fetch_add(self.bytes, Ordering::AcqRel);
        self.budget.free.released.notify_waiters();
    }
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
    /// Local disk for spills and lookup files.
    pub disk: Budget,
    /// Folder for spills.
    pub temp: PathBuf,
}

impl Env {
    /// Runs CPU-bound work on the CPU pool and waits for its result.
    ///
    /// Errors: `Internal` when the work panicked or its pool is gone.
    pub async fn cpu<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, FormatError> {
        let (sender, receiver) = oneshot::channel();
        self.runtime.cpu(Box::new(move || {
            // The receiver is gone when the waiting future was dropped: nobody wants the result any more.
            let _ = sender.send(work());
        }));
        receiver
            .await
            .map_err(|_| FormatError::internal("CPU work ended without a result (a panic, or a stopped pool)"))
    }

    /// Runs blocking file calls off the async threads and waits for their result. Errors as [`Env::cpu`].
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FormatError> {
        let (sender, receiver) = oneshot::channel();
        self.runtime.blocking(Box::new(move || {
            let _ = sender.send(work());
        }));
        receiver
            .await
            .map_err(|_| FormatError::internal("blocking work ended without a result (a panic, or a stopped pool)"))
    }
}
