//! The merge itself: sorted runs in, blocks of spans out.

use std::fmt;
use std::sync::Arc;

use paimon_format::kv::{Keys, KvBatch, KvSchema};

use super::block::{Block, next_batch_id};
use super::cursor::Source;
use super::lane::{IntLane, RowLane};
use super::merge::Merge;
use super::order::VersionOrder;
use crate::MergeError;

/// Whether a key whose only version has this level needs no merging.
pub type PassRule = Arc<dyn Fn(i32) -> bool + Send + Sync>;

/// How a merge is cut into blocks, and what passes through it.
#[derive(Clone)]
pub struct PlanOptions {
    /// Keys a block. A key with more versions than this is cut into several blocks, too (see [`KeyGroups::open`](super::KeyGroups::open)).
    pub block_keys: usize,
    /// A block ends at the first key after its batches have more bytes than this. A key whose versions lie in batches of four
    /// times as many is cut.
    pub block_bytes: usize,
    /// Whether a key may be cut. Where it may not, a block has all versions of its keys, however many: in a merge of files, in each of
    /// which a key occurs once, these are as many as there are files.
    pub cut_keys: bool,
    /// Which single versions pass.
    pub passes: PassRule,
}

impl Default for PlanOptions {
    /// Blocks of 8192 keys or 32 MiB; keys may be cut, every single version passes.
    fn default() -> Self {
        Self {
            block_keys: 8192,
            block_bytes: 32 << 20,
            cut_keys: true,
            passes: Arc::new(|_| true),
        }
    }
}

impl fmt::Debug for PlanOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanOptions")
            .field("block_keys", &self.block_keys)
            .field("block_bytes", &self.block_bytes)
            .field("cut_keys", &self.cut_keys)
            .finish_non_exhaustive()
    }
}

/// What a [`MergePlan`] wants or has.
#[derive(Debug)]
pub enum Step {
    /// It cannot go on without the next batch of this run: [`MergePlan::push`] or [`MergePlan::end`].
    NeedInput(usize),
    /// The next stretch of keys.
    Block(Block),
    /// All runs are merged.
    Done,
}

/// Merges sorted runs: a state machine without I/O.
///
/// A run is a sequence of batches whose keys do not descend, within batches and from one to the next. In a data file a key occurs once;
/// in spills and write buffers it may repeat, its versions then being in version order. The versions of a key come oldest
/// first, see [`VersionOrder`]; what that leaves equal comes in the order of the runs.
///
/// Cost: one path of a loser tree a row, one gallop for a stretch of keys that only one run has. Memory: the batches pushed and not
/// yet merged; a block keeps those it points into.
#[derive(Debug)]
pub struct MergePlan {
    options: PlanOptions,
    order: VersionOrder,
    merge: Typed,
}

/// The merge by kind of key, known from the first batch on.
#[derive(Debug)]
enum Typed {
    /// Which runs ended before any batch came.
    Unknown(Vec<bool>),
    Int32(Merge<IntLane<i32>>),
    Int64(Merge<IntLane<i64>>),
    Rows(Merge<RowLane>),
}

/// Calls the same on the merge, whatever its keys.
macro_rules! typed {
    ($typed:expr, $merge:ident => $call:expr, $ended:ident => $unknown:expr) => {
        match $typed {
            Typed::Unknown($ended) => $unknown,
            Typed::Int32($merge) => $call,
            Typed::Int64($merge) => $call,
            Typed::Rows($merge) => $call,
        }
    };
}

impl MergePlan {
    /// A merge of `runs` runs whose batches have this schema.
    ///
    /// Errors: `Unsupported` for sequence fields that have no order.
    pub fn new(runs: usize, schema: &KvSchema, options: PlanOptions) -> Result<Self, MergeError> {
        Ok(Self {
            order: VersionOrder::new(schema)?,
            options,
            merge: Typed::Unknown(vec![false; runs]),
        })
    }

    /// Appends a batch to a run. More than one may wait.
    ///
    /// Errors: [`MergeError::Unsorted`] when its keys descend; `Internal` when the run does not exist or its keys are of
    /// another kind. The plan is unchanged then.
    pub fn push(&mut self, run: usize, batch: KvBatch) -> Result<(), MergeError> {
        self.check_run(run)?;
        if batch.is_empty() {
            return Ok(());
        }
        if let Typed::Unknown(ended) = &self.merge {
            self.merge = match &batch.keys {
                Keys::Int32(_) => Typed::Int32(Merge::new(ended)),
                Keys::Int64(_) => Typed::Int64(Merge::new(ended)),
                Keys::Rows { .. } => Typed::Rows(Merge::new(ended)),
            };
        }
        let id = next_batch_id();
        let (order, rule) = (&self.order, &self.options.passes);
        typed!(&mut self.merge,
            merge => merge.runs.push(run, Source::new(run, id, batch, order, rule)?),
            _ended => return Err(MergeError::internal("a batch without keys")));
        Ok(())
    }

    /// No more batches of this run come.
    ///
    /// Errors: `Internal` when the run does not exist.
    pub fn end(&mut self, run: usize) -> Result<(), MergeError> {
        self.check_run(run)?;
        typed!(&mut self.merge, merge => merge.runs.end(run), ended => ended[run] = true);
        Ok(())
    }

    /// Rows of a run that wait behind the batch it is at: whoever reads ahead keeps this above zero.
    pub fn waiting(&self, run: usize) -> usize {
        typed!(&self.merge,
            merge => if run < merge.runs.heads.len() { merge.runs.waiting(run) } else { 0 },
            _ended => 0)
    }

    /// Goes on until a block is full or input is missing. CPU-bound.
    ///
    /// Errors: [`MergeError::Unsorted`] when a batch begins below the end of the one before; the plan is spent then.
    pub fn step(&mut self) -> Result<Step, MergeError> {
        let options = &self.options;
        typed!(&mut self.merge, merge => merge.step(options), ended => {
            Ok(ended.iter().position(|ended| !ended).map_or(Step::Done, Step::NeedInput))
        })
    }

    fn check_run(&self, run: usize) -> Result<(), MergeError> {
        let runs = typed!(&self.merge, merge => merge.runs.heads.len(), ended => ended.len());
        if run < runs {
            Ok(())
        } else {
            Err(MergeError::internal(format!("run {run} of a merge of {runs}")))
        }
    }
}
