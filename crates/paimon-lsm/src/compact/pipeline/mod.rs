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
mod work;

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};
use paimon_format::env::Env;
use paimon_format::kv::{KvBatch, KvFiles, KvSchema, KvStream};
use paimon_merge::engine::MergeEngine;
use paimon_merge::kernel::{AssembleOptions, Assembler};
use paimon_merge::plan::PlanOptions;

use crate::LsmError;
use block::MergedRuns;
use reader::RunReader;
use sections::MergeStream;
use work::{Merging, Output, Work};

pub use job::{JobLookup, MergeJob, PipelineSettings, StageKind};
pub use outputs::{MergeSinks, Merged};

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

/// Merges sorted runs in which a key may occur often, as a write buffer and its spills have them, and writes what is left of each
/// key; a changelog sink gets every record, unmerged. On an error none of the files is left.
pub(crate) async fn merge_streams(
    env: &Env,
    files: &dyn KvFiles,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: Vec<KvStream>,
    mut sinks: MergeSinks,
) -> Result<Merged, LsmError> {
    match write_streams(env, schema, engine, runs, &mut sinks).await {
        Ok(()) => sinks.finish(files).await,
        Err(error) => {
            sinks.abort().await;
            Err(error)
        }
    }
}

async fn write_streams(
    env: &Env,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: Vec<KvStream>,
    sinks: &mut MergeSinks,
) -> Result<(), LsmError> {
    let assembler = || Assembler::new(Arc::clone(schema), AssembleOptions::default());
    let changelog = sinks.changelog.as_ref().map(|_| assembler()).transpose()?;
    let stage = stage::plain(engine, schema)?;
    let options = PlanOptions {
        cut_keys: !stage.whole_keys(),
        ..PlanOptions::default()
    };
    let work = Work::new(schema, Merging::StageBesideInput(stage), Some(assembler()?), changelog)?;
    let readers = runs
        .into_iter()
        .map(|run| RunReader::of_stream("a run of the write buffer", run))
        .collect();
    let mut merged = MergedRuns::new(env, readers, schema, options, work)?;
    while let Some(output) = merged.next_output().await? {
        sinks.write(&output).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
