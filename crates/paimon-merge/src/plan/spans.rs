//! The merge itself: sorted runs in, blocks of spans out.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as AtomicOrdering};

use paimon_format::kv::{Keys, KvBatch, KvSchema};

use super::cursor::{Head, Runs, Source};
use super::gallop::gallop;
use super::groups::{KeyGroups, RowRef};
use super::lane::{IntLane, KeyLane, RowLane};
use super::loser_tree::LoserTree;
use super::order::VersionOrder;
use crate::MergeError;

/// Whether a key whose only version has this level needs no merging.
pub type PassRule = Arc<dyn Fn(i32) -> bool + Send + Sync>;

/// How a merge is cut into blocks, and what passes through it.
#[derive(Clone)]
pub struct PlanOptions {
    /// Keys a block. A key with more versions than this is cut into several blocks, too (see [`KeyGroups::open`]).
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

/// Consecutive keys of a block that are treated alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Keys with one version: rows of one source, as they are.
    Pass {
        /// Index into [`Block::sources`].
        batch: u32,
        /// Its rows.
        rows: Range<u32>,
    },
    /// The next so many groups.
    Groups(u32),
}

/// A stretch of the merged key range, as positions in the batches that were pushed. Nothing is copied.
///
/// The spans cover every row of the stretch once, in key order.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The batches that the block points into.
    pub sources: Vec<KvBatch>,
    /// One a source: the same number is the same batch, also in other blocks, of this plan or another.
    pub ids: Vec<u64>,
    /// In key order.
    pub spans: Vec<Span>,
    rows: Vec<RowRef>,
    ends: Vec<u32>,
    open: bool,
}

impl Block {
    /// The keys that a kernel has to merge.
    pub fn groups(&self) -> KeyGroups<'_> {
        KeyGroups {
            sources: &self.sources,
            rows: &self.rows,
            ends: &self.ends,
            open: self.open,
        }
    }

    /// All rows, every version of every key, in order.
    pub fn all_rows(&self) -> impl Iterator<Item = RowRef> + '_ {
        let mut group = 0;
        self.spans.iter().flat_map(move |span| {
            let (passed, merged) = match span {
                Span::Pass { batch, rows } => (Some((*batch, rows.clone())), 0..0),
                Span::Groups(groups) => {
                    let start = group;
                    group += *groups as usize;
                    (None, self.groups().start(start)..self.groups().start(group))
                }
            };
            let passed = passed
                .into_iter()
                .flat_map(|(batch, rows)| rows.map(move |row| RowRef { batch, row }));
            passed.chain(self.rows.get(merged).unwrap_or_default().iter().copied())
        })
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

/// Numbers the batches of all plans of the process: an assembler may see the blocks of several plans, one after the other. The numbers
/// decide nothing else.
static NEXT_BATCH: AtomicU64 = AtomicU64::new(0);

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
        let id = NEXT_BATCH.fetch_add(1, AtomicOrdering::Relaxed);
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

/// Why [`Merge::fill`] came back.
enum Filled {
    /// The run needs input.
    Starving(usize),
    /// The block has its size.
    Full,
    /// The block has its size in the middle of a key.
    Open,
    /// No run has a row left.
    Done,
}

/// The merge for one kind of key.
#[derive(Debug)]
struct Merge<L: KeyLane> {
    runs: Runs<L>,
    /// Runs whose first batch or end is known; the tournament begins when all are.
    primed: usize,
    tree: LoserTree,
    /// The run whose head is not known.
    starving: Option<usize>,
    block: Building<L>,
    /// The key whose versions are being collected.
    group: Option<Group<L::Head>>,
    /// The run of the last key, and how many keys in a row came from it.
    streak: (usize, u32),
    /// How long a streak must be before galloping is tried. Grows when that does not pay.
    patience: u32,
}

#[derive(Clone, Copy, Debug)]
struct Group<H> {
    head: H,
    /// Any row with this key.
    at: RowRef,
    /// Where its rows begin among the block's.
    start: usize,
    /// It began in an earlier block.
    continued: bool,
}

/// A block in the making.
#[derive(Debug)]
struct Building<L> {
    sources: Vec<Arc<Source<L>>>,
    bytes: usize,
    keys: usize,
    spans: Vec<Span>,
    rows: Vec<RowRef>,
    ends: Vec<u32>,
}

/// Galloping must skip this many rows on average to pay.
const GALLOP_PAYS: usize = 8;
const PATIENCE: Range<u32> = 2..64;

impl<L: KeyLane> Merge<L> {
    fn new(ended: &[bool]) -> Self {
        Self {
            runs: Runs::new(ended),
            primed: 0,
            tree: LoserTree::default(),
            starving: None,
            block: Building::default(),
            group: None,
            streak: (usize::MAX, 0),
            patience: PATIENCE.start,
        }
    }

    fn step(&mut self, options: &PlanOptions) -> Result<Step, MergeError> {
        if self.primed < self.runs.heads.len() {
            while self.primed < self.runs.heads.len() {
                if !self.runs.load(self.primed)? {
                    return Ok(Step::NeedInput(self.primed));
                }
                self.primed += 1;
            }
            self.tree = LoserTree::new(self.runs.heads.len(), |a, b| self.runs.before(a, b));
        }
        if let Some(run) = self.starving {
            if !self.runs.load(run)? {
                return Ok(Step::NeedInput(run));
            }
            self.starving = None;
            self.tree.replay(|a, b| self.runs.before(a, b));
        }
        Ok(match self.fill(options)? {
            Filled::Starving(run) => {
                self.starving = Some(run);
                Step::NeedInput(run)
            }
            Filled::Full => Step::Block(self.take_block(false)),
            Filled::Open => Step::Block(self.take_block(true)),
            Filled::Done if self.block.keys > 0 => Step::Block(self.take_block(false)),
            Filled::Done => Step::Done,
        })
    }

    fn fill(&mut self, options: &PlanOptions) -> Result<Filled, MergeError> {
        let open_bytes = options.block_bytes.saturating_mul(4);
        loop {
            let winner = self.tree.winner().map(|run| (run, self.runs.heads[run]));
            let Some((run, Head::Key(head))) = winner else {
                self.close_group();
                return Ok(Filled::Done);
            };
            match self.group {
                Some(group) if group.head == head && self.is_key_of(group.at, run) => {
                    let versions = self.block.rows.len() - group.start;
                    let is_big = versions >= options.block_keys || self.block.bytes >= open_bytes;
                    if options.cut_keys && versions > 0 && is_big {
                        return Ok(Filled::Open);
                    }
                    self.take_row(run);
                }
                group => {
                    if group.is_some() {
                        self.close_group();
                        if self.block.keys >= options.block_keys || self.block.bytes >= options.block_bytes {
                            return Ok(Filled::Full);
                        }
                    }
                    if self.on_a_streak(run) {
                        let next = self.pass_ahead(run, options.block_keys.saturating_sub(self.block.keys));
                        if next > self.runs.cursors[run].row {
                            self.runs.advance(run, next)?;
                            self.tree.replay(|a, b| self.runs.before(a, b));
                            continue;
                        }
                    }
                    let start = self.block.rows.len();
                    let at = self.take_row(run);
                    self.group = Some(Group {
                        head,
                        at,
                        start,
                        continued: false,
                    });
                }
            }
            let next = self.runs.cursors[run].row + 1;
            if !self.runs.advance(run, next)? {
                return Ok(Filled::Starving(run));
            }
            self.tree.replay(|a, b| self.runs.before(a, b));
        }
    }

    /// Whether the head of `run` has the same key as a row of the block, their heads being equal.
    #[inline]
    fn is_key_of(&self, at: RowRef, run: usize) -> bool {
        let cursor = &self.runs.cursors[run];
        match (&cursor.source, self.block.sources.get(at.batch as usize)) {
            (Some(source), Some(other)) => {
                source.lane.compare_tails(cursor.row, &other.lane, at.row as usize) == Ordering::Equal
            }
            _ => false,
        }
    }

    /// Counts keys that come from one run in a row; with one run there is nothing to wait for.
    #[inline]
    fn on_a_streak(&mut self, run: usize) -> bool {
        if self.streak.0 == run {
            self.streak.1 += 1;
        } else {
            self.streak = (run, 0);
        }
        self.streak.1 >= self.patience || self.runs.heads.len() == 1
    }

    /// Passes the rows of a run that come before all other runs, `limit` at most. The last row of a batch is left: the next
    /// batch may have its key, too. Returns the row after them.
    fn pass_ahead(&mut self, run: usize, limit: usize) -> usize {
        let cursor = &self.runs.cursors[run];
        let from = cursor.row;
        let Some(source) = cursor
            .source
            .as_ref()
            .filter(|source| source.strict && source.passes.all())
        else {
            return from;
        };
        let to = (source.lane.len() - 1).min(from.saturating_add(limit));
        let rival = self.tree.runner_up(|a, b| self.runs.before(a, b));
        let rival = rival
            .filter(|&rival| self.runs.heads[rival] != Head::End)
            .map(|rival| &self.runs.cursors[rival]);
        let next = match rival.and_then(|rival| Some((rival.source.as_ref()?, rival.row))) {
            Some((other, row)) => gallop(&source.lane, from, to, &other.lane, row),
            None => to,
        };
        let passed = next.saturating_sub(from);
        self.patience = if passed < GALLOP_PAYS {
            (self.patience + 1).min(PATIENCE.end)
        } else {
            (self.patience - 1).max(PATIENCE.start)
        };
        self.streak.1 = 0;
        if passed > 0 {
            let batch = self.slot(run);
            self.block.pass(batch, from as u32..next as u32);
        }
        next.max(from)
    }

    /// The index in the block of the batch that a run is at.
    #[inline]
    fn slot(&mut self, run: usize) -> u32 {
        let cursor = &mut self.runs.cursors[run];
        match (cursor.slot, &cursor.source) {
            (None, Some(source)) => {
                let slot = self.block.add_source(source);
                cursor.slot = Some(slot);
                slot
            }
            (slot, _) => slot.unwrap_or_default(),
        }
    }

    /// Adds the head of a run to the rows of the group.
    #[inline]
    fn take_row(&mut self, run: usize) -> RowRef {
        let row = RowRef {
            batch: self.slot(run),
            row: self.runs.cursors[run].row as u32,
        };
        self.block.rows.push(row);
        row
    }

    fn close_group(&mut self) {
        let Some(group) = self.group.take() else {
            return;
        };
        if self.block.rows.len() == group.start + 1 && !group.continued {
            let at = group.at;
            if self.block.sources[at.batch as usize].passes.row(at.row as usize) {
                self.block.rows.pop();
                self.block.pass(at.batch, at.row..at.row + 1);
                return;
            }
        }
        self.block.close_group();
    }

    fn take_block(&mut self, open: bool) -> Block {
        for cursor in &mut self.runs.cursors {
            cursor.slot = None;
        }
        if open {
            self.block.close_group();
        }
        let building = std::mem::take(&mut self.block);
        if let Some(group) = &mut self.group {
            // The key goes on in the next block: its batch stays known there.
            let batch = self.block.add_source(&building.sources[group.at.batch as usize]);
            group.at.batch = batch;
            group.start = 0;
            group.continued = true;
        }
        Block {
            sources: building.sources.iter().map(|source| source.batch.clone()).collect(),
            ids: building.sources.iter().map(|source| source.id).collect(),
            spans: building.spans,
            rows: building.rows,
            ends: building.ends,
            open,
        }
    }
}

impl<L> Default for Building<L> {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            bytes: 0,
            keys: 0,
            spans: Vec::new(),
            rows: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<L> Building<L> {
    fn add_source(&mut self, source: &Arc<Source<L>>) -> u32 {
        self.sources.push(Arc::clone(source));
        self.bytes += source.bytes;
        self.sources.len() as u32 - 1
    }

    fn pass(&mut self, batch: u32, rows: Range<u32>) {
        self.keys += rows.len();
        match self.spans.last_mut() {
            Some(Span::Pass {
                batch: last,
                rows: passed,
            }) if *last == batch && passed.end == rows.start => {
                passed.end = rows.end;
            }
            _ => self.spans.push(Span::Pass { batch, rows }),
        }
    }

    fn close_group(&mut self) {
        self.keys += 1;
        self.ends.push(self.rows.len() as u32);
        match self.spans.last_mut() {
            Some(Span::Groups(groups)) => *groups += 1,
            _ => self.spans.push(Span::Groups(1)),
        }
    }
}
