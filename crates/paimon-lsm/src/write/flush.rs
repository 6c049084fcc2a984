//! From the write buffer to level 0.

use std::sync::Arc;

use futures::TryStreamExt;
use paimon_format::env::Env;
use paimon_format::kv::{BatchSink, KvBatch, KvSchemaRef, KvStream};
use paimon_format::meta::DataFileMeta;
use paimon_merge::MergeError;
use paimon_merge::engine::MergeEngine;
use paimon_merge::kernel::{AssembleOptions, Assembler, MergeKernel, MergedRows};
use paimon_merge::plan::{MergePlan, PlanOptions, Step};

use crate::LsmError;

/// Merges sorted runs, in which a key may occur often, and writes what is left of each key: deletes too, for older versions may
/// lie in files. On an error none of the files is left.
pub(super) async fn flush(
    env: &Env,
    schema: &KvSchemaRef,
    engine: &dyn MergeEngine,
    runs: Vec<KvStream>,
    mut sink: Box<dyn BatchSink>,
) -> Result<Vec<DataFileMeta>, LsmError> {
    match merge(env, schema, engine, runs, &mut *sink).await {
        Ok(()) => Ok(sink.finish().await?),
        Err(error) => {
            sink.abort().await;
            Err(error)
        }
    }
}

async fn merge(
    env: &Env,
    schema: &KvSchemaRef,
    engine: &dyn MergeEngine,
    mut runs: Vec<KvStream>,
    sink: &mut dyn BatchSink,
) -> Result<(), LsmError> {
    let mut work = Some(Work {
        plan: MergePlan::new(runs.len(), schema, PlanOptions::default())?,
        kernel: engine.kernel(schema)?,
        merged: MergedRows::default(),
        assembler: Assembler::new(Arc::clone(schema), AssembleOptions::default())?,
    });
    let mut input = None;
    // The work is away only if an error ended the loop.
    while let Some(taken) = work.take() {
        let pushed = input.take();
        let (mut taken, progress) = env.cpu(move || taken.go_on(pushed)).await??;
        while let Some(batch) = taken.assembler.next_batch() {
            sink.write(&batch).await?;
        }
        match progress {
            Progress::Done => break,
            Progress::Block => {}
            Progress::NeedInput(run) => {
                let next = match runs.get_mut(run) {
                    Some(run) => run.try_next().await?,
                    None => None,
                };
                input = Some((run, next));
            }
        }
        work = Some(taken);
    }
    Ok(())
}

/// What travels to the CPU pool and back.
struct Work {
    plan: MergePlan,
    kernel: Box<dyn MergeKernel>,
    merged: MergedRows,
    assembler: Assembler,
}

enum Progress {
    Block,
    NeedInput(usize),
    Done,
}

impl Work {
    /// Takes the next batch, or the end, of a run; then merges a block.
    fn go_on(mut self, input: Option<(usize, Option<KvBatch>)>) -> Result<(Self, Progress), MergeError> {
        match input {
            Some((run, Some(batch))) => self.plan.push(run, batch)?,
            Some((run, None)) => self.plan.end(run)?,
            None => {}
        }
        let progress = match self.plan.step()? {
            Step::NeedInput(run) => Progress::NeedInput(run),
            Step::Done => {
                self.assembler.finish()?;
                Progress::Done
            }
            Step::Block(block) => {
                self.merged.clear();
                let groups = block.groups();
                if !groups.is_empty() {
                    self.kernel.merge(&groups, &mut self.merged)?;
                }
                self.assembler.add_merged(&block, &self.merged)?;
                Progress::Block
            }
        };
        Ok((self, progress))
    }
}
