//! One thread, one order: a runtime for tests and for embedders without threads.
#![expect(
    clippy::disallowed_methods,
    reason = "a task that has to wait under a foreign executor needs a thread"
)]

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::time::Duration;

use futures::StreamExt;
use futures::executor;
use futures::future::{BoxFuture, poll_fn};
use futures::stream::FuturesUnordered;
use futures::task::{ArcWake, Poll, waker_ref};
use tokio::runtime::Handle;

use super::Runtime;

/// Does all work at once on the calling thread; the same calls always run in the same order. Clones share their tasks.
///
/// Jobs run inside the call that starts them, under any executor. Spawned tasks run within [`block_on`](Self::block_on) of this
/// runtime; inside tokio they are tokio's; elsewhere a task runs inside the call that spawns it, as far as it gets without
/// waiting, and what is left of it in a thread of its own (so the order is no longer fixed). Sleeping takes no time, it lets
/// others run.
#[derive(Clone, Default)]
pub struct InlineRuntime {
    tasks: Arc<Mutex<Tasks>>,
}

#[derive(Default)]
struct Tasks {
    /// Whether a `block_on` takes what is spawned.
    driven: bool,
    spawned: VecDeque<BoxFuture<'static, ()>>,
}

impl InlineRuntime {
    /// No tasks yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a future to its end, and the tasks that it spawns beside it. Tasks that are still running at the end are dropped.
    pub fn block_on<T>(&self, main: impl Future<Output = T>) -> T {
        let mut main = pin!(main);
        let mut tasks = FuturesUnordered::new();
        let _driven = Driven::by(self);
        executor::block_on(poll_fn(|context| {
            loop {
                if let Poll::Ready(result) = main.as_mut().poll(context) {
                    return Poll::Ready(result);
                }
                let running = tasks.len();
                tasks.extend(self.take_spawned());
                let ended = matches!(tasks.poll_next_unpin(context), Poll::Ready(Some(())));
                if !ended && tasks.len() == running && self.is_idle() {
                    return Poll::Pending;
                }
            }
        }))
    }

    fn take_spawned(&self) -> VecDeque<BoxFuture<'static, ()>> {
        self.with_tasks(|tasks| std::mem::take(&mut tasks.spawned))
    }

    fn is_idle(&self) -> bool {
        self.with_tasks(|tasks| tasks.spawned.is_empty())
    }

    fn with_tasks<T>(&self, work: impl FnOnce(&mut Tasks) -> T) -> T {
        work(&mut self.tasks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A running `block_on`. Tasks that nobody took go with it.
struct Driven<'a>(&'a InlineRuntime);

impl<'a> Driven<'a> {
    fn by(runtime: &'a InlineRuntime) -> Self {
        runtime.with_tasks(|tasks| tasks.driven = true);
        Self(runtime)
    }
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        // Dropped outside of the lock: a task may spawn when it ends.
        let left = self.0.with_tasks(std::mem::take);
        drop(left);
    }
}

/// Whether a task was woken since it was last polled.
#[derive(Default)]
struct Woken(AtomicBool);

impl ArcWake for Woken {
    fn wake_by_ref(woken: &Arc<Self>) {
        woken.0.store(true, Ordering::Release);
    }
}

/// Polls a task until it has to wait for others. Gives back what is left of it.
fn run_now(mut task: BoxFuture<'static, ()>) -> Option<BoxFuture<'static, ()>> {
    let woken = Arc::new(Woken::default());
    loop {
        let waker = waker_ref(&woken);
        if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return None;
        }
        if !woken.0.swap(false, Ordering::AcqRel) {
            return Some(task);
        }
    }
}

impl Runtime for InlineRuntime {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if let Ok(tokio) = Handle::try_current() {
            tokio.spawn(task);
            return;
        }
        let undriven = self.with_tasks(|tasks| {
            if !tasks.driven {
                return Some(task);
            }
            tasks.spawned.push_back(task);
            None
        });
        if let Some(waiting) = undriven.and_then(run_now) {
            std::thread::spawn(|| executor::block_on(waiting));
        }
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

impl fmt::Debug for InlineRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineRuntime").finish_non_exhaustive()
    }
}
