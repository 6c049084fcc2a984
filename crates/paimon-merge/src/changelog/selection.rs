//! The part of a block that the engine's kernel merges, and what is settled without it.

use paimon_format::kv::KvBatch;
use paimon_format::types::RowKind;

use crate::MergeError;
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::{KeyGroups, RowRef};

/// The level that a row comes from.
#[inline]
pub(super) fn level(sources: &[KvBatch], row: RowRef) -> i32 {
    sources
        .get(row.batch as usize)
        .map_or(-1, |source| source.levels.get(row.row as usize))
}

/// The kind of a row.
#[inline]
pub(super) fn kind(sources: &[KvBatch], row: RowRef) -> RowKind {
    sources
        .get(row.batch as usize)
        .map_or(RowKind::Insert, |source| source.kind(row.row as usize))
}

/// Errors: `Internal` when the block ends within a key.
pub(super) fn check_whole(groups: &KeyGroups<'_>) -> Result<(), MergeError> {
    match groups.open {
        false => Ok(()),
        true => Err(MergeError::internal("a key was cut for a stage that needs it whole")),
    }
}

/// The versions of a key by level: above level 0 each row is the whole state of its key, and a lower level replaces all higher ones.
///
/// Source: `org.apache.paimon.mergetree.compact.LookupMergeFunction`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Candidates {
    /// The version on the lowest level above 0; its sequence does not matter.
    pub(super) high: Option<RowRef>,
    /// There are versions on level 0.
    pub(super) has_level0: bool,
    /// There are versions on level 0 or from the write buffer.
    pub(super) has_low: bool,
}

impl Candidates {
    pub(super) fn of(sources: &[KvBatch], versions: &[RowRef]) -> Self {
        let mut candidates = Self::default();
        let mut lowest = i32::MAX;
        for &row in versions {
            let level = level(sources, row);
            candidates.has_level0 |= level == 0;
            candidates.has_low |= level <= 0;
            if level > 0 && level < lowest {
                (candidates.high, lowest) = (Some(row), level);
            }
        }
        candidates
    }
}

/// A survivor that is known without merging.
#[derive(Clone, Copy, Debug)]
struct Settled {
    group: u32,
    row: RowRef,
    kind: RowKind,
}

/// Groups of a block, some of their versions left out or put in.
#[derive(Debug, Default)]
pub(super) struct Selection {
    rows: Vec<RowRef>,
    ends: Vec<u32>,
    /// The group of the block that each selected one is.
    groups: Vec<u32>,
    settled: Vec<Settled>,
    merged: MergedRows,
}

impl Selection {
    /// Empties it, keeping its memory.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.ends.clear();
        self.groups.clear();
        self.settled.clear();
        self.merged.clear();
    }

    /// The survivor of a group is known.
    pub(super) fn settle(&mut self, group: usize, row: RowRef, kind: RowKind) {
        self.settled.push(Settled {
            group: group as u32,
            row,
            kind,
        });
    }

    /// These versions of a group, of which there must be some, are merged.
    pub(super) fn add(&mut self, group: usize, versions: impl IntoIterator<Item = RowRef>) {
        self.rows.extend(versions);
        self.ends.push(self.rows.len() as u32);
        self.groups.push(group as u32);
    }

    /// As [`add`](Self::add), for a group that has versions on level 0 or from the write buffer: those, and `high`.
    pub(super) fn add_candidates(
        &mut self,
        group: usize,
        sources: &[KvBatch],
        versions: &[RowRef],
        high: Option<RowRef>,
    ) {
        let counts = |&row: &RowRef| level(sources, row) <= 0 || Some(row) == high;
        self.add(group, versions.iter().copied().filter(counts));
    }

    /// Merges what was selected; `sources` are those that its rows point into. The survivors of all groups, in order, go to `out`.
    pub(super) fn merge(
        &mut self,
        kernel: &mut dyn MergeKernel,
        sources: &[KvBatch],
        out: &mut MergedRows,
    ) -> Result<(), MergeError> {
        if !self.ends.is_empty() {
            let selected = KeyGroups {
                sources,
                rows: &self.rows,
                ends: &self.ends,
                open: false,
            };
            kernel.merge(&selected, &mut self.merged)?;
        }
        let merged = &mut self.merged;
        out.made = merged.made.take();
        out.reserve(merged.rows.len() + self.settled.len());
        let mut settled = self.settled.iter().peekable();
        for ((&row, &kind), &selected) in merged.rows.iter().zip(&merged.kinds).zip(&merged.groups) {
            let Some(&group) = self.groups.get(selected as usize) else {
                return Err(MergeError::internal("a kernel's group is not in its block"));
            };
            while let Some(settled) = settled.next_if(|settled| settled.group < group) {
                out.push(settled.row, settled.kind, settled.group as usize);
            }
            out.push(row, kind, group as usize);
        }
        for settled in settled {
            out.push(settled.row, settled.kind, settled.group as usize);
        }
        Ok(())
    }
}
