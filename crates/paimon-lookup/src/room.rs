//! Room for the records that a look-up finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A batch of records has 32-bit offsets: a look-up never finds more than half of what they reach, whatever it may.
const MOST_BYTES: u64 = 1 << 30;

/// Counts the bytes of records as they are found, in all files that are searched. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    taken: Arc<AtomicU64>,
    /// `None`: the record of one key is found whatever it weighs.
    max: Option<u64>,
}

impl Room {
    /// For the records of so many keys.
    pub(crate) fn new(keys: usize, max_bytes: u64) -> Self {
        Self {
            taken: Arc::default(),
            max: (keys > 1).then_some(max_bytes.min(MOST_BYTES)),
        }
    }

    /// `false`: there is not so much, and what was found is of no use.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        !self.is_over()
    }

    /// Whether more was found than there is room for: the search can end.
    pub(crate) fn is_over(&self) -> bool {
        self.max.is_some_and(|max| self.taken.load(Ordering::Relaxed) > max)
    }
}
