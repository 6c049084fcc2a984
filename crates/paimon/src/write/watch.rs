//! Seeing from outside what a table's writer is doing, while it does it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use paimon_format::env::Budget;
use paimon_lsm::write::{BucketWriteState, WriteWatch};

/// Shows what the buckets of a [`TableWrite`](crate::TableWrite) are doing, to metrics for example: the writer itself may be waiting in a call.
/// Clones show the same.
#[derive(Clone, Debug)]
pub struct TableWriteWatch {
    buffers: Budget,
    /// By the bucket's directory.
    buckets: Arc<Mutex<BTreeMap<String, WriteWatch>>>,
}

/// What a table's writer is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableWriteState {
    /// By the bucket's directory, relative to the table: all open buckets.
    pub buckets: BTreeMap<String, BucketWriteState>,
    /// Memory that the buffers of all buckets may take, bytes: `write-buffer-size`.
    pub buffer_bytes: u64,
    /// Memory that they take, what flushes need included.
    pub used_buffer_bytes: u64,
}

impl TableWriteState {
    /// The buckets that wait for compaction, as they have too many sorted runs.
    pub fn stalled(&self) -> impl Iterator<Item = (&str, &BucketWriteState)> {
        let buckets = self.buckets.iter().map(|(name, state)| (name.as_str(), state));
        buckets.filter(|(_, state)| state.stalled_since_ms.is_some())
    }
}

impl TableWriteWatch {
    pub(super) fn new(buffers: Budget) -> Self {
        Self {
            buffers,
            buckets: Arc::default(),
        }
    }

    /// The state now.
    pub fn state(&self) -> TableWriteState {
        let buckets = self.with(|buckets| buckets.clone());
        TableWriteState {
            buckets: buckets.into_iter().map(|(name, watch)| (name, watch.state())).collect(),
            buffer_bytes: self.buffers.total(),
            used_buffer_bytes: self.buffers.total().saturating_sub(self.buffers.free()),
        }
    }

    pub(super) fn add(&self, bucket: &str, watch: WriteWatch) {
        self.with(|buckets| buckets.insert(bucket.to_owned(), watch));
    }

    pub(super) fn remove(&self, bucket: &str) {
        self.with(|buckets| buckets.remove(bucket));
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, WriteWatch>) -> T) -> T {
        work(&mut self.buckets.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
