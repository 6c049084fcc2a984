//! The merge for one kind of key.

use std::cmp::Ordering;
use std::ops::Range;

use super::block::{Block, Building};
use super::cursor::{Head, Runs};
use super::gallop::gallop;
use super::groups::RowRef;
use super::lane::KeyLane;
use super::loser_tree::LoserTree;
use super::merge_plan::{PlanOptions, Step};
use crate::MergeError;

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

/// Runs on their way into blocks.
#[derive(Debug)]
pub(super) struct Merge<L: KeyLane> {
    pub(super) runs: Runs<L>,
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

/// Galloping must skip this many rows on average to pay.
const GALLOP_PAYS: usize = 8;
const PATIENCE: Range<u32> = 2..64;

impl<L: KeyLane> Merge<L> {
    pub(super) fn new(ended: &[bool]) -> Self {
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

    pub(super) fn step(&mut self, options: &PlanOptions) -> Result<Step, MergeError> {
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
        building.into_block(open)
    }
}
