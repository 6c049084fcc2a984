//! Being asked to end.

use futures::future::{self, BoxFuture};

/// Ends when the process is interrupted (ctrl-c) or, where there is such a thing, terminated (SIGTERM).
pub(crate) fn interrupted() -> BoxFuture<'static, ()> {
    Box::pin(async {
        future::select(ctrl_c(), terminated()).await;
    })
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
