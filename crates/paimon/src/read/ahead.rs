//! Streams that are read before their turn comes.

use std::sync::Arc;

use futures::channel::mpsc;
use futures::stream::BoxStream;
use futures::{SinkExt, StreamExt, stream};
use paimon_format::env::Runtime;

use crate::error::Result;

/// The streams one after another; so many of them are read in the background at a time. Each stops at its first error. Dropping
/// what comes out ends all. Memory is bounded: a stream that is read ahead holds an item or two until they are wanted.
pub(crate) fn read_ahead<T: Send + 'static>(
    runtime: Arc<dyn Runtime>,
    streams: impl Iterator<Item = BoxStream<'static, Result<T>>> + Send + 'static,
    parallelism: usize,
) -> BoxStream<'static, Result<T>> {
    let starts = stream::iter(streams).map(move |rows| {
        let runtime = Arc::clone(&runtime);
        async move { start(&*runtime, rows) }
    });
    starts.buffered(parallelism).flatten().boxed()
}

fn start<T: Send + 'static>(
    runtime: &dyn Runtime,
    mut rows: BoxStream<'static, Result<T>>,
) -> BoxStream<'static, Result<T>> {
    let (mut sender, receiver) = mpsc::channel(0);
    runtime.spawn(Box::pin(async move {
        while let Some(item) = rows.next().await {
            let failed = item.is_err();
            // Nobody listens any more: the read was given up.
            if sender.send(item).await.is_err() || failed {
                return;
            }
        }
    }));
    receiver.boxed()
}
