//! The block loop: sections of overlapping runs in, merged batches out.
//!
//! ```text
//! files of a run ─► RunReader ─┐
//! files of a run ─► RunReader ─┼─► MergePlan ─► kernel ─► Assembler ─► KvBatch
//! spilled run    ─► RunReader ─┘    (one call on the CPU pool a block)
//! ```
//!
//! Files open when their turn comes; while a block is merged, the next batch of every run that has none waiting is read. A section
//! with one run passes through unmerged. A section with more runs than may be open at once is merged in passes: the smallest
//! runs go to local spill files first, all their versions kept.

mod block;
mod job;
mod reader;
mod sections;
mod shares;

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use paimon_format::env::Env;
use paimon_format::kv::{BatchSink, KvBatch, KvFiles, KvSchema, KvStream};
use paimon_format::meta::DataFileMeta;
use paimon_merge::engine::MergeEngine;
use paimon_merge::kernel::{AssembleOptions, Assembler};
use paimon_merge::plan::PlanOptions;

use crate::LsmError;
use block::{MergedRuns, Work};
use reader::RunReader;
use sections::MergeStream;

pub use job::{MergeJob, PipelineSettings};

/// Merges files of one bucket. Cheap to clone; it holds no state between calls.
///
/// Source: `org.apache.paimon.mergetree.MergeTreeReaders`, `org.apache.paimon.mergetree.MergeSorter`,
/// `org.apache.paimon.mergetree.compact.MergeTreeCompactRewriter`.
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

    /// The merged records of a job, in key order, kinds kept unless the job drops deletes. Every key comes once.
    ///
    /// Waits for memory when first polled. Errors end the stream: those of the files, and `Corrupt` naming a file whose keys are
    /// not in order. Dropping the stream removes its spill files.
    pub fn merge(&self, job: MergeJob) -> BoxStream<'static, Result<KvBatch, LsmError>> {
        let merge = MergeStream::new(self.clone(), job);
        stream::try_unfold(merge, |mut merge| async move {
            let batch = merge.next_batch().await?;
            Ok(batch.map(|batch| (batch, merge)))
        })
        .boxed()
    }

    /// Writes the merged records of a job. On an error the sink is aborted: none of its files is left.
    ///
    /// While a batch is written the next one is merged.
    pub async fn rewrite(&self, job: MergeJob, sink: Box<dyn BatchSink>) -> Result<Vec<DataFileMeta>, LsmError> {
        let files = self.rewrite_while(job, sink, &mut || true).await?;
        Ok(files.unwrap_or_default())
    }

    /// As [`rewrite`](Self::rewrite), as long as `keep_on`, which is asked before every batch. `None`: it was not; the sink was
    /// aborted.
    pub async fn rewrite_while(
        &self,
        job: MergeJob,
        mut sink: Box<dyn BatchSink>,
        keep_on: &mut (dyn FnMut() -> bool + Send),
    ) -> Result<Option<Vec<DataFileMeta>>, LsmError> {
        let outcome = self.drive(job, sink.as_mut(), keep_on).await;
        if let Ok(true) = outcome {
            return Ok(Some(sink.finish().await?));
        }
        sink.abort().await;
        outcome.map(|_| None)
    }

    /// `false`: stopped.
    async fn drive(
        &self,
        job: MergeJob,
        sink: &mut dyn BatchSink,
        keep_on: &mut (dyn FnMut() -> bool + Send),
    ) -> Result<bool, LsmError> {
        if !keep_on() {
            return Ok(false);
        }
        let mut merge = MergeStream::new(self.clone(), job);
        let mut next = merge.next_batch().await?;
        while let Some(batch) = next {
            if !keep_on() {
                return Ok(false);
            }
            let (merged, written) = futures::join!(merge.next_batch(), sink.write(&batch));
            written?;
            next = merged?;
        }
        Ok(true)
    }
}

/// Merges sorted runs in which a key may occur often, as a write buffer and its spills have them, and writes what is left of each
/// key. The sink is neither finished nor aborted.
pub(crate) async fn merge_streams(
    env: &Env,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: Vec<KvStream>,
    sink: &mut dyn BatchSink,
) -> Result<(), LsmError> {
    let assembler = Assembler::new(Arc::clone(schema), AssembleOptions::default())?;
    let work = Work::new(Some(engine.kernel(schema)?), assembler);
    let readers = runs
        .into_iter()
        .map(|run| RunReader::of_stream("a run of the write buffer", run))
        .collect();
    let mut merged = MergedRuns::new(env, readers, schema, PlanOptions::default(), work)?;
    while let Some(batch) = merged.next_batch().await? {
        sink.write(&batch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
