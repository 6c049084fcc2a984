//! Seeing from outside what a writer is doing, while it does it.

use std::sync::{Arc, Mutex, PoisonError};

use paimon_format::env::Clock;

/// What the writer of a bucket is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketWriteState {
    /// Sorted runs of its tree, uncommitted files included. Zero for a write-only writer, which knows no tree.
    pub sorted_runs: usize,
    /// Bytes of buffered records in memory.
    pub buffered_bytes: u64,
    /// It has been waiting since then for a compaction, as the tree has too many runs (milliseconds since the epoch). `None`: it is not.
    pub stalled_since_ms: Option<i64>,
    /// How often it has waited for that reason.
    pub stalls: u64,
    /// How long it has waited for that reason, in milliseconds, without the present wait.
    pub stalled_ms: u64,
}

/// Shows the state of one writer to other tasks. Clones show the same one.
#[derive(Clone, Debug, Default)]
pub struct WriteWatch {
    state: Arc<Mutex<BucketWriteState>>,
}

impl WriteWatch {
    /// The state now.
    pub fn state(&self) -> BucketWriteState {
        self.with(|state| *state)
    }

    pub(super) fn update(&self, sorted_runs: usize, buffered_bytes: u64) {
        self.with(|state| {
            state.sorted_runs = sorted_runs;
            state.buffered_bytes = buffered_bytes;
        });
    }

    /// The writer waits until what is returned is dropped.
    pub(super) fn stall(&self, clock: &Arc<dyn Clock>) -> Stall {
        let since_ms = clock.now_ms();
        self.with(|state| {
            state.stalls += 1;
            state.stalled_since_ms = Some(since_ms);
        });
        Stall {
            watch: self.clone(),
            clock: Arc::clone(clock),
            since_ms,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut BucketWriteState) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A wait, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Stall {
    watch: WriteWatch,
    clock: Arc<dyn Clock>,
    since_ms: i64,
}

impl Drop for Stall {
    fn drop(&mut self) {
        let waited_ms = u64::try_from(self.clock.now_ms().saturating_sub(self.since_ms)).unwrap_or(0);
        self.watch.with(|state| {
            state.stalled_since_ms = None;
            state.stalled_ms = state.stalled_ms.saturating_add(waited_ms);
        });
        tracing::debug!(waited_ms, "waited for compaction: the tree had too many runs");
    }
}
