//! Merges of what a write buffer has.

use std::sync::Arc;

use paimon_format::env::Env;
use paimon_format::kv::{BatchLimit, KvBatch, KvFiles, KvSchema, KvStream};
use paimon_merge::engine::MergeEngine;
use paimon_merge::kernel::{AssembleOptions, Assembler};
use paimon_merge::plan::PlanOptions;

use super::block::MergedRuns;
use super::outputs::{MergeSinks, Merged};
use super::reader::RunReader;
use super::stage;
use super::work::{Merging, Output, SortedBlocks, Work};
use crate::LsmError;
use crate::spill::{SpillFile, SpillWriter};

/// Memory that such a merge uses beside its runs: blocks, and batches that are made.
pub(crate) const STREAMS_OUTPUT_BYTES: u64 = 16 << 20;
/// Batches that a block points into, or rows of it that are in memory already.
pub(crate) const BLOCK_BYTES: usize = 4 << 20;
const ASSEMBLE_BYTES: usize = 6 << 20;

/// What leaves a write buffer: sorted runs in which a key may occur often.
pub(crate) enum BufferedRuns {
    /// All of it is in memory.
    Memory(Box<dyn SortedBlocks>),
    /// Spills, and perhaps what is in memory.
    Streams(Vec<KvStream>),
}

/// Merges what leaves a write buffer and writes what is left of each key; a changelog sink gets every record, unmerged. On an error none
/// of the files is left.
pub(crate) async fn merge_buffered(
    env: &Env,
    files: &dyn KvFiles,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: BufferedRuns,
    mut sinks: MergeSinks,
) -> Result<Merged, LsmError> {
    match write_buffered(env, schema, engine, runs, &mut sinks).await {
        Ok(()) => sinks.finish(files).await,
        Err(error) => {
            sinks.abort().await;
            Err(error)
        }
    }
}

async fn write_buffered(
    env: &Env,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: BufferedRuns,
    sinks: &mut MergeSinks,
) -> Result<(), LsmError> {
    let mut merged = open_merge(env, schema, engine, runs, sinks.changelog.is_some())?;
    while let Some(output) = merged.next_output().await? {
        sinks.write(&output).await?;
    }
    Ok(())
}

/// As [`merge_buffered`], into memory.
pub(crate) async fn collect_buffered(
    env: &Env,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: BufferedRuns,
) -> Result<Vec<KvBatch>, LsmError> {
    let mut merged = open_merge(env, schema, engine, runs, false)?;
    let mut batches = Vec::new();
    while let Some(output) = merged.next_output().await? {
        if let Output::Data(batch) = output {
            batches.push(batch);
        }
    }
    Ok(batches)
}

fn open_merge(
    env: &Env,
    schema: &Arc<KvSchema>,
    engine: &dyn MergeEngine,
    runs: BufferedRuns,
    changelog: bool,
) -> Result<MergedRuns, LsmError> {
    let options = AssembleOptions {
        bytes: ASSEMBLE_BYTES,
        ..AssembleOptions::default()
    };
    let assembler = || Assembler::new(Arc::clone(schema), options);
    let changelog = changelog.then(&assembler).transpose()?;
    let stage = stage::plain(engine, schema)?;
    let plan = PlanOptions {
        block_bytes: BLOCK_BYTES,
        cut_keys: !stage.whole_keys(),
        ..PlanOptions::default()
    };
    let work = Work::new(schema, Merging::StageBesideInput(stage), Some(assembler()?), changelog)?;
    match runs {
        BufferedRuns::Memory(rows) => Ok(MergedRuns::of_sorted(env, rows, plan.cut_keys, work)),
        BufferedRuns::Streams(runs) => MergedRuns::new(env, readers(runs), schema, plan, work),
    }
}

/// Merges runs into one local file, all versions kept with their levels, in batches within a limit.
///
/// Errors: those of the runs; `Unavailable` naming the new file, `Invalid` when the disk budget is used up.
pub(crate) async fn spill_streams(
    env: &Env,
    schema: &Arc<KvSchema>,
    runs: Vec<KvStream>,
    limit: BatchLimit,
) -> Result<SpillFile, LsmError> {
    let plan = PlanOptions {
        block_bytes: BLOCK_BYTES,
        ..PlanOptions::default()
    };
    spill_merged(env, schema, readers(runs), plan, limit, ASSEMBLE_BYTES).await
}

/// As [`spill_streams`], of runs of any kind.
pub(super) async fn spill_merged(
    env: &Env,
    schema: &Arc<KvSchema>,
    readers: Vec<RunReader>,
    plan: PlanOptions,
    limit: BatchLimit,
    assemble_bytes: usize,
) -> Result<SpillFile, LsmError> {
    let options = AssembleOptions {
        rows: limit.rows,
        bytes: assemble_bytes,
        drop_retracts: false,
        level: None,
    };
    let assembler = Assembler::new(Arc::clone(schema), options)?;
    let work = Work::new(schema, Merging::Nothing, Some(assembler), None)?;
    let mut merged = MergedRuns::new(env, readers, schema, plan, work)?;
    let mut spill = SpillWriter::create(env, schema).await?;
    while let Some(output) = merged.next_output().await? {
        if let Output::Data(batch) = output {
            for part in parts(&batch, limit.bytes) {
                spill.write(&part).await?;
            }
        }
    }
    Ok(spill.finish().await?)
}

/// Slices of at most so many bytes, one row at least: who reads them again holds several of each run.
fn parts(batch: &KvBatch, bytes: usize) -> impl Iterator<Item = KvBatch> {
    let row_bytes = batch.memory_size().div_ceil(batch.len().max(1)).max(1);
    let rows = (bytes / row_bytes).max(1);
    (0..batch.len())
        .step_by(rows)
        .map(move |start| batch.slice(start, rows.min(batch.len() - start)))
}

fn readers(runs: Vec<KvStream>) -> Vec<RunReader> {
    let readers = runs
        .into_iter()
        .map(|run| RunReader::of_stream("a run of the write buffer", run));
    readers.collect()
}
