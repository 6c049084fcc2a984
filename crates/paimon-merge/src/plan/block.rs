//! A stretch of the merged key range.

use std::ops::Range;
use std::sync::Arc;

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

/// A block in the making.
#[derive(Debug)]
pub(super) struct Building<L> {
    pub(super) sources: Vec<Arc<Source<L>>>,
    pub(super) bytes: usize,
    pub(super) keys: usize,
    spans: Vec<Span>,
    pub(super) rows: Vec<RowRef>,
    ends: Vec<u32>,
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
    pub(super) fn add_source(&mut self, source: &Arc<Source<L>>) -> u32 {
        self.sources.push(Arc::clone(source));
        self.bytes += source.bytes;
        self.sources.len() as u32 - 1
    }

    pub(super) fn pass(&mut self, batch: u32, rows: Range<u32>) {
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

    pub(super) fn close_group(&mut self) {
        self.keys += 1;
        self.ends.push(self.rows.len() as u32);
        match self.spans.last_mut() {
            Some(Span::Groups(groups)) => *groups += 1,
            _ => self.spans.push(Span::Groups(1)),
        }
    }

    pub(super) fn into_block(self, open: bool) -> Block {
        Block {
            sources: self.sources.iter().map(|source| source.batch.clone()).collect(),
            ids: self.sources.iter().map(|source| source.id).collect(),
            spans: self.spans,
            rows: self.rows,
            ends: self.ends,
            open,
        }
    }
}
