//! Asking long work to stop.

use std::fmt;

use futures::FutureExt;
use futures::future::{self, BoxFuture, Shared};

/// Tells work that it should come to its end: cleanly, and soon. Clones are told at the same time.
#[derive(Clone)]
pub struct StopSignal(Shared<BoxFuture<'static, ()>>);

impl StopSignal {
    /// Stops when this future ends: an interrupt, a channel, a timer.
    pub fn new(when: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(when.boxed().shared())
    }

    /// Never stops.
    pub fn never() -> Self {
        Self::new(future::pending())
    }

    /// Whether it is time.
    pub fn is_asked(&self) -> bool {
        self.asked().now_or_never().is_some()
    }

    /// Ends when it is time.
    pub fn asked(&self) -> impl Future<Output = ()> + Send + Unpin + 'static {
        self.0.clone()
    }
}

impl fmt::Debug for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopSignal").field("asked", &self.is_asked()).finish()
    }
}
