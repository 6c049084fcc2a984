//! One thread, one order: a runtime for tests and for embedders without threads.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::time::Duration;

use futures::future::{BoxFuture, poll_fn};
use futures::task::{ArcWake, Poll, waker};

use super::Runtime;

/// Does all work at once on the calling thread; the same calls always run in the same order.
///
/// A job runs inside the call that starts it. A spawned task runs inside the call that spawns it as far as it gets, and then
/// inside whatever wakes it, so any executor will do, `futures::executor::block_on` too. Sleeping takes no time: it lets
/// others run once. So a task must not poll in a loop for what another one does.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineRuntime;

impl Runtime for InlineRuntime {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        Arc::new(InlineTask {
            task: Mutex::new(Some(task)),
            state: AtomicU8::new(IDLE),
        })
        .run();
    }

    fn cpu(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn sleep(&self, _time: Duration) -> BoxFuture<'static, ()> {
        let mut slept = false;
        Box::pin(poll_fn(move |context| {
            if std::mem::replace(&mut slept, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }))
    }
}

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
/// Woken while it ran: runs once more.
const WOKEN: u8 = 2;

/// A task that is polled by whoever wakes it.
struct InlineTask {
    /// `None` when it has ended.
    task: Mutex<Option<BoxFuture<'static, ()>>>,
    state: AtomicU8,
}

impl InlineTask {
    fn run(self: &Arc<Self>) {
        let enter = |state| Some(if state == IDLE { RUNNING } else { WOKEN });
        let before = self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter);
        if before != Ok(IDLE) {
            return;
        }
        loop {
            self.poll();
            let left = self
                .state
                .compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire);
            if left.is_ok() {
                return;
            }
            self.state.store(RUNNING, Ordering::Release);
        }
    }

    fn poll(self: &Arc<Self>) {
        // Locked by the one thread that set RUNNING. A panic of the task goes to the one who woke it.
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = waker(Arc::clone(self));
        if let Some(running) = task.as_mut()
            && running.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            *task = None;
        }
    }
}

impl ArcWake for InlineTask {
    fn wake_by_ref(task: &Arc<Self>) {
        task.run();
    }
}

impl fmt::Debug for InlineTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineTask").finish_non_exhaustive()
    }
}
