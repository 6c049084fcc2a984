//! The real environment: the system's clock and random numbers, tokio and rayon.
#![expect(clippy::disallowed_methods, reason = "this is the one door to them")]

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::{Clock, FileIds, Runtime};
use crate::error::FormatError;

/// The system's clock and time zone.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
    }

    fn local_offset_ms(&self, at_ms: i64) -> i64 {
        let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        i64::from(TimeZone::system().to_offset(at).seconds()) * 1000
    }
}

/// Random names from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl FileIds for SystemIds {
    fn uuid(&self) -> String {
        Uuid::new_v4().to_string()
    }

    fn jitter(&self, bound: u64) -> u64 {
        // The upper two bits of the second half are the UUID's variant, the others are random.
        let random = Uuid::new_v4().as_u64_pair().1 << 2 >> 2;
        random.checked_rem(bound).unwrap_or(0)
    }
}

/// Tasks, file calls and timers on tokio, CPU work on a rayon pool.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: Handle,
    pool: Arc<rayon::ThreadPool>,
}

impl TokioRuntime {
    /// The embedder's own runtime (with its time driver enabled) and pool.
    pub fn new(handle: Handle, pool: Arc<rayon::ThreadPool>) -> Self {
        Self { handle, pool }
    }

    /// The embedder's runtime and a new pool of `threads` (0: one per core).
    ///
    /// Errors: `Internal` when the system gives no threads.
    pub fn with_threads(handle: Handle, threads: usize) -> Result<Self, FormatError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("paimon-cpu-{index}"))
            .build()
            .map_err(|error| FormatError::internal(format!("no CPU pool of {threads} threads: {error}")))?;
        Ok(Self::new(handle, Arc::new(pool)))
    }
}

impl Runtime for TokioRuntime {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.handle.spawn(task);
    }

    fn cpu(&self, job: Box<dyn FnOnce() + Send>) {
        self.pool.spawn(job);
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) {
        self.handle.spawn_blocking(job);
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let _context = self.handle.enter();
        Box::pin(tokio::time::sleep(time))
    }
}
