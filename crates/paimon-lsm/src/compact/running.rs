//! A compaction in the background.

use std::sync::Arc;

use futures::channel::oneshot;
use futures::future::{Either, select};
use paimon_format::env::StopSignal;

use super::{CompactResult, CompactTask, MergeTreeCompactRewriter};
use crate::LsmError;

/// A task that runs on its own, as its owner goes on.
///
/// Dropped before its result was fetched, it is cancelled: none of its files is left, unless it had just ended.
#[derive(Debug)]
pub struct RunningCompaction {
    result: oneshot::Receiver<Result<CompactResult, LsmError>>,
    /// Dropping it cancels the task; `None`: cancelled.
    cancel: Option<oneshot::Sender<()>>,
}

impl RunningCompaction {
    /// Starts a task. Must be called where [`Runtime::spawn`](paimon_format::env::Runtime::spawn) works.
    pub fn start(rewriter: &Arc<MergeTreeCompactRewriter>, task: CompactTask) -> Self {
        let (result_sender, result) = oneshot::channel();
        let (cancel, mut cancelled) = oneshot::channel();
        let runtime = Arc::clone(&rewriter.env().runtime);
        let rewriter = Arc::clone(rewriter);
        rewriter.reporter().submitted();
        runtime.spawn(Box::pin(async move {
            let began_ms = rewriter.reporter().began();
            let outcome = rewriter.run(&task, &mut cancelled).await;
            let done = outcome.as_ref().ok().and_then(Option::as_ref);
            rewriter.reporter().ended(began_ms, done);
            if let Some(outcome) = outcome.transpose()
                && let Err(Ok(result)) = result_sender.send(outcome)
            {
                // Nobody waits for it any more.
                rewriter.discard(&result).await;
            }
        }));
        Self {
            result,
            cancel: Some(cancel),
        }
    }

    /// Asks the task to stop. It deletes what it wrote, unless it has ended already.
    pub fn cancel(&mut self) {
        self.cancel = None;
    }

    /// Waits for the end. `None`: it was cancelled. May be dropped and called again.
    ///
    /// Errors: those of the task; `Internal` when it ended without a result.
    pub async fn finished(&mut self) -> Result<Option<CompactResult>, LsmError> {
        let outcome = (&mut self.result).await;
        self.outcome(outcome)
    }

    /// As [`finished`](Self::finished), which comes soon when it is time to stop: the task is cancelled then.
    pub async fn finished_or_stopped(&mut self, stop: &StopSignal) -> Result<Option<CompactResult>, LsmError> {
        if let Either::Left((finished, _)) = select(Box::pin(self.finished()), stop.asked()).await {
            return finished;
        }
        self.cancel();
        self.finished().await
    }

    /// The result, if there is one now. Errors: as [`finished`](Self::finished).
    pub fn try_finished(&mut self) -> Option<Result<Option<CompactResult>, LsmError>> {
        let outcome = self.result.try_recv();
        match outcome {
            Ok(None) => None,
            Ok(Some(outcome)) => Some(self.outcome(Ok(outcome))),
            Err(gone) => Some(self.outcome(Err(gone))),
        }
    }

    fn outcome(
        &self,
        outcome: Result<Result<CompactResult, LsmError>, oneshot::Canceled>,
    ) -> Result<Option<CompactResult>, LsmError> {
        match outcome {
            Ok(result) => result.map(Some),
            Err(oneshot::Canceled) if self.cancel.is_none() => Ok(None),
            Err(oneshot::Canceled) => Err(LsmError::Internal(
                "the compaction task ended without a result (a panic, or a stopped runtime)".into(),
            )),
        }
    }
}
