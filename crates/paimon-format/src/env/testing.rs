//! A deterministic environment.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::{Budget, Clock, Env, FileIds, InlineRuntime};

/// A clock that goes on by a fixed step with every look at it. Clones share the time.
#[derive(Clone, Debug)]
pub struct TickingClock {
    next_ms: Arc<AtomicI64>,
    step_ms: i64,
    offset_ms: i64,
}

impl TickingClock {
    /// First `start_ms` (since the epoch), then `step_ms` later each time, in UTC.
    pub fn new(start_ms: i64, step_ms: i64) -> Self {
        Self {
            next_ms: Arc::new(AtomicI64::new(start_ms)),
            step_ms,
            offset_ms: 0,
        }
    }

    /// The same time in a zone this far from UTC.
    #[must_use]
    pub fn with_offset_ms(self, offset_ms: i64) -> Self {
        Self { offset_ms, ..self }
    }

    /// Lets time pass (or go back).
    pub fn advance_ms(&self, ms: i64) {
        self.next_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for TickingClock {
    fn now_ms(&self) -> i64 {
        self.next_ms.fetch_add(self.step_ms, Ordering::Relaxed)
    }

    fn local_offset_ms(&self, _at_ms: i64) -> i64 {
        self.offset_ms
    }
}

/// UUIDs that count: `00000000-0000-4000-8000-000000000001` is the first. No jitter. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct CountingIds(Arc<AtomicU64>);

impl FileIds for CountingIds {
    fn uuid(&self) -> String {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        format!("00000000-0000-4000-8000-{count:012x}")
    }

    fn jitter(&self, _bound: u64) -> u64 {
        0
    }
}

impl Env {
    /// For tests: the clock starts at 2024-01-01 00:00:00 UTC and ticks a millisecond a look, names count up, all work is
    /// inline, 256 MiB of memory, 1 GiB of disk in `temp`.
    pub fn fixed(temp: impl Into<PathBuf>) -> Self {
        Self {
            clock: Arc::new(TickingClock::new(1_704_067_200_000, 1)),
            ids: Arc::new(CountingIds::default()),
            runtime: Arc::new(InlineRuntime::new()),
            memory: Budget::new(256 << 20),
            cache: Budget::new(64 << 20),
            disk: Budget::new(1 << 30),
            temp: temp.into(),
        }
    }
}
