//! The block loop: sections of overlapping runs in, merged batches out.
//!
//! ```text
//! files of a run ─► RunReader ─┐                              ┌─► Assembler ─► data files
//! files of a run ─► RunReader ─┼─► MergePlan ─► MergeStage ───┤
//! spilled run    ─► RunReader ─┘                  ▲           └─► Assembler ─► changelog files
//!                                    old rows ────┘
//! ```
//!
//! One call on the CPU pool a block; a block with keys whose old rows are looked up takes two, and one look-up between them.
//!
//! Files open when their turn comes; while a block is merged, the next batch of every run that has none waiting is read. A section
//! with one run passes through unmerged. A section with more runs than may be open at once is merged in passes: the smallest
//! runs go to local spill files first, all their versions kept.

mod block;
mod job;
mod outputs;
mod reader;
mod sections;
mod shares;
mod stage;
mod streams;
mod work;

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use paimon_format::env::Env;
use paimon_format::kv::{KvBatch, KvFiles, KvSchema};
use paimon_merge::engine::MergeEngine;

use crate::LsmError;
use sections::MergeStream;
use work::Output;

pub use job::{JobLookup, MergeJob, PipelineSettings, StageKind};
pub use outputs::{MergeSinks, Merged};
pub use shares::MIN_MERGE_BYTES;
pub(crate) use streams::{
    BLOCK_BYTES, BufferedRuns, STREAMS_OUTPUT_BYTES, collect_buffered, merge_buffered, spill_streams,
};
pub(crate) use work::SortedBlocks;

/// Merges files of one bucket. Cheap to clone; it holds no state between calls.
///
/// Source: `org.apache.paimon.mergetree.MergeTreeReaders`, `org.apache.paimon.mergetree.MergeSorter`,
/// `org.apache.paimon.mergetree.compact.{MergeTreeCompactRewriter, ChangelogMergeTreeRewriter}`.
#[derive(Clone, Debug)]
pub struct MergePipeline {
    env: Env,
    files: Arc<dyn KvFiles>,
    schema: Arc<KvSchema>,
    engine: Arc<dyn MergeEngine>,
    settings: PipelineSettings,
}

impl MergePipeline {
    /// A pipeline whose batches have `schema`: the table's, or the part of it that the engine says a read needs.
    pub fn new(env: Env, files: Arc<dyn KvFiles>, schema: Arc<KvSchema>, engine: Arc<dyn MergeEngine>) -> Self {
        Self {
            env,
            files,
            schema,
            engine,
            settings: PipelineSettings::default(),
        }
    }

    /// With other settings.
    pub fn with_settings(mut self, settings: PipelineSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The merged records of a job, in key order, kinds kept unless the job drops deletes. Every key comes once. Changes are not
    /// told.
    ///
    /// Waits for memory when first polled. Errors end the stream: those of the files, and `Corrupt` naming a file whose keys are
    /// not in order. Dropping the stream removes its spill files.
    pub fn merge(&self, job: MergeJob) -> BoxStream<'static, Result<KvBatch, LsmError>> {
        let merge = MergeStream::new(self.clone(), job, (true, false));
        stream::try_unfold(merge, |mut merge| async move {
            while let Some(output) = merge.next_output().await? {
                if let Output::Data(batch) = output {
                    return Ok(Some((batch, merge)));
                }
            }
            Ok(None)
        })
        .boxed()
    }

    /// Writes the merged records of a job and their changes. On an error the sinks are aborted: none of their files is left.
    ///
    /// While a batch is written the next one is merged.
    pub async fn rewrite(&self, job: MergeJob, sinks: MergeSinks) -> Result<Merged, LsmError> {
        let merged = self.rewrite_while(job, sinks, &mut || true).await?;
        Ok(merged.unwrap_or_default())
    }

    /// As [`rewrite`](Self::rewrite), as long as `keep_on`, which is asked before every batch. `None`: it was not; the sinks were
    /// aborted.
    pub async fn rewrite_while(
        &self,
        job: MergeJob,
        mut sinks: MergeSinks,
        keep_on: &mut (dyn FnMut() -> bool + Send),
    ) -> Result<Option<Merged>, LsmError> {
        let wanted = (sinks.data.is_some(), sinks.changelog.is_some());
        let mut merge = MergeStream::new(self.clone(), job, wanted);
        let outcome = drive(&mut merge, &mut sinks, keep_on).await;
        if let Ok(true) = outcome {
            let mut merged = sinks.finish(&*self.files).await?;
            merged.deletions = merge.into_deletions();
            return Ok(Some(merged));
        }
        sinks.abort().await;
        outcome.map(|_| None)
    }
}

/// `false`: stopped.
async fn drive(
    merge: &mut MergeStream,
    sinks: &mut MergeSinks,
    keep_on: &mut (dyn FnMut() -> bool + Send),
) -> Result<bool, LsmError> {
    if !keep_on() {
        return Ok(false);
    }
    let mut next = merge.next_output().await?;
    while let Some(output) = next {
        if !keep_on() {
            return Ok(false);
        }
        let (merged, written) = futures::join!(merge.next_output(), sinks.write(&output));
        written?;
        next = merged?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
