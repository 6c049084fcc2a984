//! Being asked to end.
//!
//! A command that ends by itself (`write`, `ingest`, `compact`, `compact-task run`, `rescale`) stops early, takes back what is not committed, and says
//! so with the signal's exit code. One that only ends when it is asked to (`compact --watch`, `changelog --follow`) has done its job then.

use std::fmt;

use futures::FutureExt;
use futures::future::{self, BoxFuture, Either, Shared};
use paimon::StopSignal;

/// What asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C: SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// The exit code that shells give to processes that a signal ended: 128 and its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "ctrl-c",
            Self::Terminate => "SIGTERM",
        })
    }
}

/// The first signal that asks the process to end. Clones are told at the same time.
#[derive(Clone)]
pub(crate) struct Signals(Shared<BoxFuture<'static, Signal>>);

impl Signals {
    /// Listens: from now on no such signal ends the process by itself.
    pub(crate) fn listen() -> Self {
        let signals = future::select(ctrl_c(), terminated());
        let first = signals.map(|signal| match signal {
            Either::Left(_) => Signal::Interrupt,
            Either::Right(_) => Signal::Terminate,
        });
        let signals = Self(first.boxed().shared());
        // The system is told with the first poll.
        signals.asked();
        signals
    }

    /// The signal that came, if one did.
    pub(crate) fn asked(&self) -> Option<Signal> {
        self.0.clone().now_or_never()
    }

    /// The signal, when it comes.
    pub(crate) async fn signal(&self) -> Signal {
        self.0.clone().await
    }

    /// Does work that may be dropped at any time; the signal, if one comes before its end.
    pub(crate) async fn unless_asked<T>(&self, work: impl Future<Output = T>) -> Result<T, Signal> {
        match future::select(self.0.clone(), std::pin::pin!(work)).await {
            Either::Left((signal, _)) => Err(signal),
            Either::Right((done, _)) => Ok(done),
        }
    }

    /// Tells work of the library.
    pub(crate) fn stop(&self) -> StopSignal {
        StopSignal::new(self.0.clone().map(|_| ()))
    }
}

/// Ends when the process is interrupted (ctrl-c).
pub(crate) fn ctrl_c() -> BoxFuture<'static, ()> {
    Box::pin(async {
        if tokio::signal::ctrl_c().await.is_err() {
            future::pending::<()>().await;
        }
    })
}

#[cfg(unix)]
fn terminated() -> BoxFuture<'static, ()> {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminated) => Box::pin(async move {
            terminated.recv().await;
        }),
        Err(_) => Box::pin(future::pending()),
    }
}

#[cfg(not(unix))]
fn terminated() -> BoxFuture<'static, ()> {
    Box::pin(future::pending())
}
