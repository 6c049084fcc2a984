//! From positions to output batches.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int8Array, RecordBatch};
use arrow_select::interleave::interleave;
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, Keys, KvBatch, KvSchema, RowLevels};
use paimon_format::types::RowKind;

use super::MergedRows;
use crate::MergeError;
use crate::changelog::ChangelogRows;
use crate::plan::{Block, RowRef, Span};

/// How output batches are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssembleOptions {
    /// Rows an output batch, roughly.
    pub rows: usize,
    /// Bytes of the input batches that an output batch is made from. A row is copied at most once, so this bounds the output
    /// batch, too, and with it the 32-bit offsets of its columns.
    pub bytes: usize,
    /// Leaves out -U and -D rows.
    pub drop_retracts: bool,
    /// The level of the output rows; `None`: each keeps its own.
    pub level: Option<i32>,
}

impl Default for AssembleOptions {
    /// 64 K rows or 64 MiB; retracts are kept, rows are of no level.
    fn default() -> Self {
        Self {
            rows: 64 << 10,
            bytes: 64 << 20,
            drop_retracts: false,
            level: Some(-1),
        }
    }
}

/// Slices of at least this many rows are handed on as they are.
const COPY_BELOW: usize = 4096;

/// Batches behind a block's own that its rows may lie in: [`MergedRows::made`] directly behind them, then
/// [`Hits::rows`](crate::changelog::Hits::rows). Made by [`Assembler::extras`].
#[derive(Clone, Debug, Default)]
pub struct Extras {
    made: Option<KvBatch>,
    looked_up: Option<KvBatch>,
}

impl Extras {
    fn get(&self, position: usize) -> Option<&KvBatch> {
        match position {
            0 => self.made.as_ref(),
            1 => self.looked_up.as_ref(),
            _ => None,
        }
    }
}

/// Makes output batches from the positions that merging left. Bytes move once: one gather a column and output batch; long slices
/// do not move at all.
///
/// Memory: the input batches that rows of the unfinished output batch lie in, bounded by [`AssembleOptions::bytes`].
#[derive(Debug)]
pub struct Assembler {
    schema: Arc<KvSchema>,
    codec: KeyCodec,
    options: AssembleOptions,
    /// Input batches of the unfinished output batch.
    sources: Vec<KvBatch>,
    /// Where a plan's batches, by their id, are among them.
    known: HashMap<u64, usize>,
    source_bytes: usize,
    /// The rows of the unfinished output batch, and their kinds.
    picks: Vec<(usize, usize)>,
    kinds: Vec<i8>,
    ready: VecDeque<KvBatch>,
}

impl Assembler {
    /// For batches of `schema`.
    ///
    /// Errors: `Unsupported` when a key column's type cannot be normalized.
    pub fn new(schema: Arc<KvSchema>, options: AssembleOptions) -> Result<Self, MergeError> {
        Ok(Self {
            codec: KeyCodec::new(&schema)?,
            schema,
            options,
            sources: Vec::new(),
            known: HashMap::new(),
            source_bytes: 0,
            picks: Vec::new(),
            kinds: Vec::new(),
            ready: VecDeque::new(),
        })
    }

    /// What the positions of a block may point at besides its sources: computed rows and looked-up ones.
    ///
    /// Errors: `Internal` when the computed rows have other columns than the schema.
    pub fn extras(&self, made: Option<&RecordBatch>, looked_up: Option<&KvBatch>) -> Result<Extras, MergeError> {
        let level = RowLevels::All(self.options.level.unwrap_or(-1));
        let made = made.map(|made| KvBatch::new(&self.schema, made.clone(), &self.codec, level));
        Ok(Extras {
            made: made.transpose()?,
            looked_up: looked_up.cloned(),
        })
    }

    /// Appends a block: what passes, and the survivors of its groups.
    ///
    /// Errors: `Internal` when the stage's answer names rows that do not exist.
    pub fn add_merged(&mut self, block: &Block, merged: &MergedRows, extras: &Extras) -> Result<(), MergeError> {
        let mut slots = Slots::new(block, extras);
        let (mut next, mut groups_seen) = (0, 0);
        for span in &block.spans {
            match span {
                Span::Pass { batch, rows } => self.pass(block, &mut slots, *batch, rows.clone())?,
                Span::Groups(groups) => {
                    groups_seen += groups;
                    while merged.groups.get(next).is_some_and(|&group| group < groups_seen) {
                        let (Some(&row), Some(&kind)) = (merged.rows.get(next), merged.kinds.get(next)) else {
                            return Err(MergeError::internal("a kernel gave fewer rows or kinds than groups"));
                        };
                        if !(self.options.drop_retracts && kind.is_retract()) {
                            let slot = self.slot(block, &mut slots, row.batch)?;
                            self.pick(slot, row, kind)?;
                        }
                        next += 1;
                    }
                }
            }
        }
        if next != merged.groups.len() {
            return Err(MergeError::internal(
                "a kernel's groups do not ascend, or are not in the block",
            ));
        }
        self.flush_if_full()
    }

    /// Appends the changes of a block: the rows named, with other kinds.
    ///
    /// Errors: `Internal` when the stage's answer names rows that do not exist.
    pub fn add_changelog(
        &mut self,
        block: &Block,
        changelog: &ChangelogRows,
        extras: &Extras,
    ) -> Result<(), MergeError> {
        let ChangelogRows { rows, kinds } = changelog;
        if rows.len() != kinds.len() {
            return Err(MergeError::internal("a stage gave other than one kind a changelog row"));
        }
        let mut slots = Slots::new(block, extras);
        for (&row, &kind) in rows.iter().zip(kinds) {
            let slot = self.slot(block, &mut slots, row.batch)?;
            self.pick(slot, row, kind)?;
        }
        self.flush_if_full()
    }

    /// Appends every row of a block, all versions of all keys.
    pub fn add_unmerged(&mut self, block: &Block) -> Result<(), MergeError> {
        let none = Extras::default();
        let mut slots = Slots::new(block, &none);
        for row in block.all_rows() {
            let slot = self.slot(block, &mut slots, row.batch)?;
            let kind = self.sources[slot].kind(row.row as usize);
            self.pick(slot, row, kind)?;
        }
        self.flush_if_full()
    }

    /// Appends a whole batch, no key of which has another version.
    pub fn add_batch(&mut self, batch: &KvBatch) -> Result<(), MergeError> {
        let rows = 0..batch.len();
        if rows.len() >= COPY_BELOW && !self.has_dropped(batch, &rows) {
            self.hand_on(batch, rows)?;
        } else {
            let slot = self.add_source(batch.clone());
            self.pick_range(slot, rows);
        }
        self.flush_if_full()
    }

    /// The next finished output batch.
    pub fn next_batch(&mut self) -> Option<KvBatch> {
        self.ready.pop_front()
    }

    /// Ends the unfinished output batch.
    pub fn finish(&mut self) -> Result<(), MergeError> {
        if !self.picks.is_empty() {
            let batch = self.gather()?;
            self.ready.push_back(batch);
        }
        self.sources.clear();
        self.known.clear();
        self.source_bytes = 0;
        self.picks.clear();
        self.kinds.clear();
        Ok(())
    }

    fn flush_if_full(&mut self) -> Result<(), MergeError> {
        if self.picks.len() >= self.options.rows || self.source_bytes >= self.options.bytes {
            self.finish()?;
        }
        Ok(())
    }

    fn pass(&mut self, block: &Block, slots: &mut Slots<'_>, batch: u32, rows: Range<u32>) -> Result<(), MergeError> {
        let rows = rows.start as usize..rows.end as usize;
        if rows.len() >= COPY_BELOW
            && let Some(source) = block.sources.get(batch as usize)
            && !self.has_dropped(source, &rows)
        {
            self.hand_on(source, rows)?;
            slots.forget();
            return Ok(());
        }
        let slot = self.slot(block, slots, batch)?;
        self.pick_range(slot, rows);
        Ok(())
    }

    /// Whether some of these rows must be left out.
    fn has_dropped(&self, batch: &KvBatch, rows: &Range<usize>) -> bool {
        self.options.drop_retracts && batch.kinds()[rows.clone()].iter().any(|&kind| is_retract(kind))
    }

    /// Makes rows an output batch without copying them.
    fn hand_on(&mut self, batch: &KvBatch, rows: Range<usize>) -> Result<(), MergeError> {
        self.finish()?;
        let mut slice = batch.slice(rows.start, rows.len());
        slice.positions = None;
        if let Some(level) = self.options.level {
            slice.levels = RowLevels::All(level);
        }
        self.ready.push_back(slice);
        Ok(())
    }

    fn pick_range(&mut self, slot: usize, rows: Range<usize>) {
        let Some(kinds) = self.sources.get(slot).map(|source| &source.kinds()[rows.clone()]) else {
            return;
        };
        if self.options.drop_retracts {
            for (row, &kind) in rows.zip(kinds) {
                if !is_retract(kind) {
                    self.picks.push((slot, row));
                    self.kinds.push(kind);
                }
            }
        } else {
            self.kinds.extend_from_slice(kinds);
            self.picks.extend(rows.map(|row| (slot, row)));
        }
    }

    #[inline]
    fn pick(&mut self, slot: usize, row: RowRef, kind: RowKind) -> Result<(), MergeError> {
        let row = row.row as usize;
        if self.sources.get(slot).is_none_or(|source| row >= source.len()) {
            return Err(MergeError::internal("a merged row is not in its batch"));
        }
        self.picks.push((slot, row));
        self.kinds.push(kind as i8);
        Ok(())
    }

    #[inline]
    fn slot(&mut self, block: &Block, slots: &mut Slots<'_>, batch: u32) -> Result<usize, MergeError> {
        let batch = batch as usize;
        match slots.slots.get(batch) {
            Some(Some(slot)) => return Ok(*slot),
            Some(None) => {}
            None => return Err(MergeError::internal("a merged row of a batch that is not in its block")),
        }
        let extra = batch.checked_sub(block.sources.len());
        let slot = match extra {
            Some(extra) => match slots.extras.get(extra) {
                Some(rows) => self.add_source(rows.clone()),
                None => return Err(MergeError::internal("a merged row of a batch that was not made")),
            },
            None => self.find_source(block, batch)?,
        };
        slots.slots[batch] = Some(slot);
        Ok(slot)
    }

    fn find_source(&mut self, block: &Block, batch: usize) -> Result<usize, MergeError> {
        let (Some(source), Some(&id)) = (block.sources.get(batch), block.ids.get(batch)) else {
            return Err(MergeError::internal("a block with fewer batches than it points into"));
        };
        if let Some(&slot) = self.known.get(&id) {
            return Ok(slot);
        }
        let slot = self.add_source(source.clone());
        self.known.insert(id, slot);
        Ok(slot)
    }

    fn add_source(&mut self, source: KvBatch) -> usize {
        self.source_bytes += source.memory_size();
        self.sources.push(source);
        self.sources.len() - 1
    }

    fn gather(&self) -> Result<KvBatch, MergeError> {
        let fields = self.schema.arrow.fields().len();
        let columns = (0..fields)
            .map(|column| match column {
                KIND_COLUMN => Ok(Arc::new(Int8Array::from(self.kinds.clone())) as ArrayRef),
                _ => {
                    let arrays: Vec<&dyn Array> = self
                        .sources
                        .iter()
                        .map(|source| source.columns.column(column).as_ref())
                        .collect();
                    interleave(&arrays, &self.picks)
                }
            })
            .collect::<Result<Vec<_>, _>>()
            .and_then(|columns| RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns))
            .map_err(|error| FormatError::internal(format!("assembling an output batch: {error}")))?;
        let keys: Vec<&Keys> = self.sources.iter().map(|source| &source.keys).collect();
        let keys = match keys.first() {
            // Encoded keys are cheaper to copy than to make again; integers are the column.
            Some(Keys::Rows { .. }) => self.codec.gather(&keys, self.picks.iter().copied())?,
            _ => self.codec.keys(&columns)?,
        };
        let levels = match self.options.level {
            Some(level) => RowLevels::All(level),
            None => RowLevels::Each(
                self.picks
                    .iter()
                    .map(|&(slot, row)| self.sources[slot].levels.get(row))
                    .collect(),
            ),
        };
        Ok(KvBatch::with_keys(&self.schema, columns, keys, levels)?)
    }
}

/// The position of `_VALUE_KIND` among a batch's columns.
const KIND_COLUMN: usize = 1;

#[inline]
fn is_retract(kind: i8) -> bool {
    kind == RowKind::Delete as i8 || kind == RowKind::UpdateBefore as i8
}

/// Where the batches of a block, and those behind them, are among the assembler's sources.
struct Slots<'a> {
    slots: Vec<Option<usize>>,
    extras: &'a Extras,
}

impl<'a> Slots<'a> {
    fn new(block: &Block, extras: &'a Extras) -> Self {
        Self {
            slots: vec![None; block.sources.len() + 2],
            extras,
        }
    }

    /// The assembler has begun another output batch.
    fn forget(&mut self) {
        self.slots.fill(None);
    }
}
