//! A stretch of the merged key range.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paimon_format::kv::KvBatch;

use super::cursor::Source;
use super::groups::{KeyGroups, RowRef};

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
    /// The versions of some keys, in key order: those of key `i` are `rows[ends[i - 1]..ends[i]]`, oldest first, at least one. A key's only
    /// version passes.
    ///
    /// `goes_on`: the first key began in the block before; `open`: the last one goes on in the next block.
    pub fn of_keys(sources: &BlockSources, rows: Vec<RowRef>, ends: &[u32], goes_on: bool, open: bool) -> Self {
        let mut spans = SpanList::default();
        let (mut merged, mut merged_ends) = (Vec::new(), Vec::new());
        let keys = KeyGroups {
            sources: &sources.batches,
            rows: &rows,
            ends,
            open: false,
        };
        let last = ends.len().saturating_sub(1);
        for (key, versions) in keys.iter().enumerate() {
            let is_part = (goes_on && key == 0) || (open && key == last);
            match versions {
                [only] if !is_part => spans.pass(only.batch, only.row..only.row + 1),
                _ => {
                    merged.extend_from_slice(versions);
                    merged_ends.push(merged.len() as u32);
                    spans.add_groups(1);
                }
            }
        }
        Self {
            sources: sources.batches.clone(),
            ids: sources.ids.clone(),
            spans: spans.0,
            rows: merged,
            ends: merged_ends,
            open,
        }
    }

    /// The keys before a group, and those from it on. Both point into the same batches.
    pub fn split_at(mut self, group: u32) -> (Self, Self) {
        let mut before = SpanList::default();
        let mut left = group;
        let mut spans = std::mem::take(&mut self.spans).into_iter();
        let mut rest = Vec::new();
        for span in spans.by_ref() {
            match span {
                Span::Groups(groups) if groups > left => {
                    before.add_groups(left);
                    rest.push(Span::Groups(groups - left));
                    break;
                }
                Span::Groups(groups) => {
                    left -= groups;
                    before.add_groups(groups);
                }
                Span::Pass { batch, rows } => before.pass(batch, rows),
            }
        }
        rest.extend(spans);
        let start = self.groups().start(group as usize);
        let ends_after = self.ends.split_off((group as usize).min(self.ends.len()));
        let after = Self {
            sources: self.sources.clone(),
            ids: self.ids.clone(),
            spans: rest,
            rows: self.rows.split_off(start.min(self.rows.len())),
            ends: ends_after.into_iter().map(|end| end - start as u32).collect(),
            open: self.open,
        };
        self.spans = before.0;
        self.open = false;
        (self, after)
    }

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

/// Batches that several blocks point into.
#[derive(Debug)]
pub struct BlockSources {
    batches: Vec<KvBatch>,
    ids: Vec<u64>,
}

impl BlockSources {
    /// These batches, under numbers of their own.
    pub fn new(batches: Vec<KvBatch>) -> Self {
        Self {
            ids: batches.iter().map(|_| next_batch_id()).collect(),
            batches,
        }
    }

    /// The batches.
    pub fn batches(&self) -> &[KvBatch] {
        &self.batches
    }
}

/// Numbers the batches of all blocks of the process: an assembler may see the blocks of several plans, one after the other. The numbers
/// decide nothing else.
static NEXT_BATCH: AtomicU64 = AtomicU64::new(0);

pub(super) fn next_batch_id() -> u64 {
    NEXT_BATCH.fetch_add(1, Ordering::Relaxed)
}

/// Spans in the making; neighbours that go on in each other are one.
#[derive(Debug, Default)]
struct SpanList(Vec<Span>);

impl SpanList {
    fn pass(&mut self, batch: u32, rows: Range<u32>) {
        match self.0.last_mut() {
            Some(Span::Pass {
                batch: last,
                rows: passed,
            }) if *last == batch && passed.end == rows.start => {
                passed.end = rows.end;
            }
            _ => self.0.push(Span::Pass { batch, rows }),
        }
    }

    fn add_groups(&mut self, more: u32) {
        match self.0.last_mut() {
            Some(Span::Groups(groups)) => *groups += more,
            _ if more == 0 => {}
            _ => self.0.push(Span::Groups(more)),
        }
    }
}

/// A block in the making.
#[derive(Debug)]
pub(super) struct Building<L> {
    pub(super) sources: Vec<Arc<Source<L>>>,
    pub(super) bytes: usize,
    pub(super) keys: usize,
    spans: SpanList,
    pub(super) rows: Vec<RowRef>,
    ends: Vec<u32>,
}

impl<L> Default for Building<L> {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            bytes: 0,
            keys: 0,
            spans: SpanList::default(),
            rows: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl<L> Building<L> {
    pub(super) fn add_source(&mut self, source: &Arc<Source<L>>) -> u32 {
        self.sources.push(Arc::clone(source));
        self.bytes += source.bytes;
        self.sources.len() as u32 - 1
    }

    pub(super) fn pass(&mut self, batch: u32, rows: Range<u32>) {
        self.keys += rows.len();
        self.spans.pass(batch, rows);
    }

    pub(super) fn close_group(&mut self) {
        self.keys += 1;
        self.ends.push(self.rows.len() as u32);
        self.spans.add_groups(1);
    }

    pub(super) fn into_block(self, open: bool) -> Block {
        Block {
            sources: self.sources.iter().map(|source| source.batch.clone()).collect(),
            ids: self.sources.iter().map(|source| source.id).collect(),
            spans: self.spans.0,
            rows: self.rows,
            ends: self.ends,
            open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_versions_pass_and_neighbours_are_one_span() {
        let at = |(batch, row)| RowRef { batch, row };
        let sources = BlockSources::new(Vec::new());
        let rows: Vec<RowRef> = [(0, 4), (0, 5), (0, 1), (1, 1), (1, 2), (1, 7), (1, 8), (0, 9)]
            .into_iter()
            .map(at)
            .collect();
        let block = Block::of_keys(&sources, rows.clone(), &[1, 2, 4, 7, 8], false, false);
        let pass = |batch, rows| Span::Pass { batch, rows };
        assert_eq!(block.spans, [pass(0, 4..6), Span::Groups(2), pass(0, 9..10)]);
        let groups: Vec<Vec<RowRef>> = block.groups().iter().map(<[RowRef]>::to_vec).collect();
        assert_eq!(groups, [rows[2..4].to_vec(), rows[4..7].to_vec()]);
        assert_eq!(block.all_rows().collect::<Vec<_>>(), rows);
        let (before, after) = block.clone().split_at(1);
        assert_eq!(before.spans, [pass(0, 4..6), Span::Groups(1)]);
        assert_eq!(after.spans, [Span::Groups(1), pass(0, 9..10)]);
        assert_eq!(before.groups().iter().collect::<Vec<_>>(), groups[..1]);
        assert_eq!(after.groups().iter().collect::<Vec<_>>(), groups[1..]);
        assert_eq!(before.all_rows().chain(after.all_rows()).collect::<Vec<_>>(), rows);
        // Parts of a key are groups, also those of one version.
        let part = Block::of_keys(&sources, rows.clone(), &[1, 2, 4, 7, 8], true, true);
        assert_eq!(part.spans, [Span::Groups(1), pass(0, 5..6), Span::Groups(3)]);
        assert!(part.groups().open && !block.groups().open);
    }
}
