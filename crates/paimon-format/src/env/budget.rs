//! Budgets: bytes of memory or disk that a process shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, Notify};

use crate::error::FormatError;

/// Bytes that all buckets of a process share. Cheap to clone; clones share the count.
///
/// Whoever waits is served in the order of arrival, so a large task is not starved by small ones.
///
/// A task reserves once, up front, and derives its window and batch sizes from what it was granted: nobody waits for memory
/// while holding some, so nobody waits for ever.
#[derive(Clone, Debug)]
pub struct Budget {
    total: u64,
    state: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    free: AtomicU64,
    released: Notify,
    /// Held by the one who waits for bytes; the others queue here.
    turn: Mutex<()>,
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
            state: Arc::new(BudgetState {
                free: AtomicU64::new(total),
                released: Notify::new(),
                turn: Mutex::new(()),
            }),
        }
    }

    /// All bytes, taken or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that are free now.
    pub fn free(&self) -> u64 {
        self.state.free.load(Ordering::Acquire)
    }

    /// Takes `bytes` if they are free now.
    pub fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        self.state
            .free
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| free.checked_sub(bytes))
            .ok()?;
        Some(Reservation {
            bytes,
            budget: self.clone(),
        })
    }

    /// Takes `bytes` of each of several budgets if they are free in all of them.
    pub fn try_reserve_of_each<'a>(
        budgets: impl IntoIterator<Item = &'a Self>,
        bytes: u64,
    ) -> Option<Vec<Reservation>> {
        let budgets = budgets.into_iter();
        budgets.map(|budget| budget.try_reserve(bytes)).collect()
    }

    /// Takes between `min` and `max` bytes: as much as is free, waiting until `min` are.
    ///
    /// Errors: `Invalid` when `min` is more than the whole budget.
    pub async fn reserve(&self, min: u64, max: u64) -> Result<Reservation, FormatError> {
        if min > self.total {
            return Err(FormatError::invalid(format!(
                "this task needs at least {min} bytes, but the whole budget is {}",
                self.total
            )));
        }
        let _turn = self.state.turn.lock().await;
        loop {
            // Made before looking: a release from here on is seen, also one before the first poll.
            let released = self.state.released.notified();
            let free = self.free();
            if free < min {
                released.await;
            } else if let Some(reservation) = self.try_reserve(free.min(max).max(min)) {
                return Ok(reservation);
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
        self.budget.state.free.fetch_add(self.bytes, Ordering::AcqRel);
        self.budget.state.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::executor::block_on;

    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn grants_what_is_free_between_min_and_max() {
        let budget = Budget::new(100);
        let first = block_on(budget.reserve(10, 70)).unwrap();
        let second = block_on(budget.reserve(10, 70)).unwrap();
        assert_eq!((first.bytes(), second.bytes(), budget.free()), (70, 30, 0));
        drop(first);
        assert_eq!(budget.free(), 70);
        assert!(budget.try_reserve(71).is_none());
    }

    #[test]
    fn bytes_of_several_budgets_are_taken_of_all_or_of_none() {
        let budgets = [Budget::new(100), Budget::new(50)];
        let free = || budgets.each_ref().map(Budget::free);
        assert!(Budget::try_reserve_of_each(&budgets, 51).is_none());
        assert_eq!(free(), [100, 50]);
        let held = Budget::try_reserve_of_each(&budgets, 50);
        assert_eq!(free(), [50, 0]);
        drop(held);
        assert_eq!(free(), [100, 50]);
    }

    #[test]
    fn refuses_what_can_never_be_granted() {
        let error = block_on(Budget::new(100).reserve(101, 200)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "this task needs at least 101 bytes, but the whole budget is 100"
        );
    }

    #[test]
    fn a_large_task_is_not_starved_by_later_small_ones() {
        let budget = Budget::new(100);
        let held = budget.try_reserve(60).unwrap();
        let mut large = Box::pin(budget.reserve(80, 80));
        assert!((&mut large).now_or_never().is_none());
        let mut small = Box::pin(budget.reserve(10, 10));
        assert!(
            (&mut small).now_or_never().is_none(),
            "40 bytes are free, but the large task comes first"
        );
        drop(held);
        assert_eq!(large.now_or_never().unwrap().unwrap().bytes(), 80);
        assert!(small.now_or_never().is_some());
    }

    #[test]
    fn a_waiting_task_that_gives_up_lets_the_next_one_in() {
        let budget = Budget::new(100);
        let _held = budget.try_reserve(60).unwrap();
        let mut large = Box::pin(budget.reserve(80, 80));
        assert!((&mut large).now_or_never().is_none());
        drop(large);
        assert!(budget.reserve(10, 10).now_or_never().is_some());
    }

    /// Many threads release and wait at the same moments; a lost wake-up would hang here.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    #[expect(clippy::disallowed_methods, reason = "the race needs threads")]
    async fn no_release_is_missed() {
        let budget = Budget::new(3);
        let work = (0..8).map(|_| {
            let budget = budget.clone();
            tokio::task::spawn(async move {
                for _ in 0..2_000 {
                    let held = budget.reserve(2, 3).await.unwrap();
                    tokio::task::yield_now().await;
                    drop(held);
                }
            })
        });
        futures::future::join_all(work).await;
        assert_eq!(budget.free(), 3);
    }
}
