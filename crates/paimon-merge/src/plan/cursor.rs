//! The heads of sorted runs.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use paimon_format::kv::{KvBatch, RowLevels};

use super::lane::KeyLane;
use super::merge_plan::PassRule;
use super::order::{VersionOrder, Versioned};
use crate::MergeError;

/// A batch of a run, prepared for comparison.
#[derive(Debug)]
pub(crate) struct Source<L> {
    /// The records.
    pub(crate) batch: KvBatch,
    /// Counts the batches of a plan.
    pub(crate) id: u64,
    /// Its keys.
    pub(crate) lane: L,
    /// Its versions.
    pub(crate) versions: Versioned,
    /// Whether no key occurs twice in it.
    pub(crate) strict: bool,
    /// Which rows pass when they are the only version of their key.
    pub(crate) passes: Passes,
    /// Its memory.
    pub(crate) bytes: usize,
}

/// Which rows of a batch need no merging when they are the only version of their key.
#[derive(Debug)]
pub(crate) enum Passes {
    /// All or none.
    All(bool),
    /// One a row.
    Each(Vec<bool>),
}

impl Passes {
    fn of(levels: &RowLevels, rule: &PassRule) -> Self {
        match levels {
            RowLevels::All(level) => Self::All(rule(*level)),
            RowLevels::Each(levels) => {
                let passes: Vec<bool> = levels.iter().map(|&level| rule(level)).collect();
                match passes.first() {
                    Some(&first) if passes.iter().all(|&pass| pass == first) => Self::All(first),
                    _ => Self::Each(passes),
                }
            }
        }
    }

    /// Whether every row passes.
    pub(crate) fn all(&self) -> bool {
        matches!(self, Self::All(true))
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> bool {
        match self {
            Self::All(pass) => *pass,
            Self::Each(passes) => passes[row],
        }
    }
}

impl<L: KeyLane> Source<L> {
    /// Prepares a batch: checks its length and the order of its keys.
    pub(crate) fn new(
        run: usize,
        id: u64,
        batch: KvBatch,
        order: &VersionOrder,
        rule: &PassRule,
    ) -> Result<Self, MergeError> {
        let lane = L::from_keys(&batch.keys)
            .ok_or_else(|| MergeError::internal("the runs of a merge have keys of different kinds"))?;
        if lane.len() != batch.len() {
            return Err(MergeError::internal(format!(
                "{} keys for {} rows",
                lane.len(),
                batch.len()
            )));
        }
        let keys_order = lane.order();
        if keys_order == Ordering::Greater {
            return Err(MergeError::Unsorted { run });
        }
        Ok(Self {
            versions: order.prepare(&batch)?,
            passes: Passes::of(&batch.levels, rule),
            bytes: batch.memory_size(),
            strict: keys_order == Ordering::Less,
            batch,
            id,
            lane,
        })
    }
}

/// The key at the head of a run. The end comes after every key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Head<H> {
    /// The head of the key, see [`KeyLane::Head`].
    Key(H),
    /// The run has no more rows.
    End,
}

/// One run: the batch it is at, the row in it, and the batches that wait.
#[derive(Debug)]
pub(crate) struct Cursor<L> {
    pub(crate) source: Option<Arc<Source<L>>>,
    pub(crate) row: usize,
    /// Index of `source` in the block that is being made, once a row of it is used there.
    pub(crate) slot: Option<u32>,
    queue: VecDeque<Arc<Source<L>>>,
    ended: bool,
}

/// All runs of a merge.
#[derive(Debug)]
pub(crate) struct Runs<L: KeyLane> {
    pub(crate) cursors: Vec<Cursor<L>>,
    /// One a run, apart from the cursors so that most comparisons stay in few cache lines.
    pub(crate) heads: Vec<Head<L::Head>>,
}

impl<L: KeyLane> Runs<L> {
    pub(crate) fn new(ended: &[bool]) -> Self {
        let cursor = |&ended: &bool| Cursor {
            source: None,
            row: 0,
            slot: None,
            queue: VecDeque::new(),
            ended,
        };
        Self {
            cursors: ended.iter().map(cursor).collect(),
            heads: vec![Head::End; ended.len()],
        }
    }

    pub(crate) fn push(&mut self, run: usize, source: Source<L>) {
        self.cursors[run].queue.push_back(Arc::new(source));
    }

    pub(crate) fn end(&mut self, run: usize) {
        self.cursors[run].ended = true;
    }

    /// Rows of a run that wait behind its current batch.
    pub(crate) fn waiting(&self, run: usize) -> usize {
        self.cursors[run].queue.iter().map(|source| source.batch.len()).sum()
    }

    /// Takes the next batch of a run, or notes its end. `false`: neither is known yet.
    pub(crate) fn load(&mut self, run: usize) -> Result<bool, MergeError> {
        let cursor = &mut self.cursors[run];
        let Some(next) = cursor.queue.pop_front() else {
            self.heads[run] = Head::End;
            return Ok(cursor.ended);
        };
        if let Some(last) = &cursor.source
            && last.lane.compare(last.lane.len() - 1, &next.lane, 0) == Ordering::Greater
        {
            return Err(MergeError::Unsorted { run });
        }
        self.heads[run] = Head::Key(next.lane.head(0));
        cursor.source = Some(next);
        cursor.row = 0;
        cursor.slot = None;
        Ok(true)
    }

    /// Moves a run's head to `row` of its batch, or to its next batch. `false`: input is needed for that.
    #[inline]
    pub(crate) fn advance(&mut self, run: usize, row: usize) -> Result<bool, MergeError> {
        let cursor = &mut self.cursors[run];
        if let Some(source) = &cursor.source
            && row < source.lane.len()
        {
            cursor.row = row;
            self.heads[run] = Head::Key(source.lane.head(row));
            return Ok(true);
        }
        self.load(run)
    }

    /// Whether run `a`'s head comes before run `b`'s: by key, then the older version first, then the run given first.
    #[inline]
    pub(crate) fn before(&self, a: usize, b: usize) -> bool {
        match self.heads[a].cmp(&self.heads[b]) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.tie_before(a, b),
        }
    }

    fn tie_before(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.cursors[a], &self.cursors[b]);
        let order = match (self.heads[a], &left.source, &right.source) {
            (Head::Key(_), Some(x), Some(y)) => x
                .lane
                .compare_tails(left.row, &y.lane, right.row)
                .then_with(|| x.versions.compare(left.row, &y.versions, right.row)),
            _ => Ordering::Equal,
        };
        order.then(a.cmp(&b)) == Ordering::Less
    }
}
