//! One thread, one order: a runtime for tests and for embedders without threads.

use std::collections::VecDeque;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use futures::executor;
use futures::future::{BoxFuture, poll_fn};
use futures::stream::FuturesUnordered;
use futures::task::Poll;
use tokio::runtime::Handle;

use super::Runtime;

/// Does all work at once on the calling thread; the same calls always run in the same order. Clones share their tasks.
///
/// Jobs run inside the call that starts them, under any executor. Spawned tasks need one that runs them: inside tokio they are
/// tokio's, elsewhere they run within [`block_on`](Self::block_on) of this runtime. Sleeping takes no time, it lets others run.
#[derive(Clone, Default)]
pub struct InlineRuntime {
    spawned: Arc<Mutex<VecDeque<BoxFuture<'static, ()>>>>,
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
        std::mem::take(&mut self.spawned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_idle(&self) -> bool {
        self.spawned.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl Runtime for InlineRuntime {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        match Handle::try_current() {
            Ok(tokio) => drop(tokio.spawn(task)),
            Err(_) => self
                .spawned
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_back(task),
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
