//! What became of the old rows.

use arrow_array::RecordBatch;
use paimon_format::kv::{KvBatch, KvSchema};
use paimon_format::types::RowKind;

use super::equal::ValueEqualiser;
use super::{ChangelogRows, ChangelogSettings};
use crate::MergeError;
use crate::kernel::MergedRows;
use crate::plan::RowRef;

/// Compares the rows before a merge with those after it:
///
/// | before | after | changes |
/// |---|---|---|
/// | none or a delete | row | `+I` after |
/// | none or a delete | a delete | |
/// | row | a delete | `-D` before |
/// | row | another row | `-U` before, `+U` after |
/// | row | an equal row | as above; nothing with `row-deduplicate` |
///
/// A key of which the merge left no trace at all, not even a delete, has no change.
///
/// Source: `LookupChangelogMergeFunctionWrapper.setChangelog`.
#[derive(Debug)]
pub(super) struct Difference {
    equaliser: Option<ValueEqualiser>,
    settings: ChangelogSettings,
    olds: Vec<Old>,
    /// Of each old row whose key left a trace: what it was, and what it is. `None` is no row.
    pairs: Vec<(Option<RowRef>, Option<RowRef>)>,
}

#[derive(Clone, Copy, Debug)]
struct Old {
    group: u32,
    row: Option<RowRef>,
}

/// The batches that rows of a block's result point into, in this order: its sources, what was made, what was looked up.
pub(super) struct Batches<'a> {
    batches: Vec<&'a RecordBatch>,
}

impl<'a> Batches<'a> {
    pub(super) fn new(
        empty: &'a RecordBatch,
        sources: &'a [KvBatch],
        made: Option<&'a RecordBatch>,
        found: Option<&'a KvBatch>,
    ) -> Self {
        let mut batches: Vec<&RecordBatch> = sources.iter().map(|source| &source.columns).collect();
        batches.push(made.unwrap_or(empty));
        batches.push(found.map_or(empty, |found| &found.columns));
        Self { batches }
    }

    fn check(&self, row: RowRef) -> Result<(), MergeError> {
        let batch = self.batches.get(row.batch as usize);
        match batch.is_some_and(|batch| (row.row as usize) < batch.num_rows()) {
            true => Ok(()),
            false => Err(MergeError::internal("a merged row is not in its batch")),
        }
    }
}

impl Difference {
    pub(super) fn new(schema: &KvSchema, settings: &ChangelogSettings) -> Self {
        let ignored = &settings.row_deduplicate_ignore_fields;
        Self {
            equaliser: settings.row_deduplicate.then(|| ValueEqualiser::new(schema, ignored)),
            settings: settings.clone(),
            olds: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// Empties it, keeping its memory.
    pub(super) fn clear(&mut self) {
        self.olds.clear();
        self.pairs.clear();
    }

    /// A group, in ascending order, whose change is wanted, and its old row; `None` if there is none or a delete.
    pub(super) fn expect(&mut self, group: usize, row: Option<RowRef>) {
        self.olds.push(Old {
            group: group as u32,
            row,
        });
    }

    /// Writes the changes of the expected groups.
    pub(super) fn write(
        &mut self,
        merged: &MergedRows,
        batches: &Batches<'_>,
        out: &mut ChangelogRows,
    ) -> Result<(), MergeError> {
        let survivors = merged.groups.iter().zip(merged.rows.iter().zip(&merged.kinds));
        let mut survivors = survivors.peekable();
        for old in &self.olds {
            while survivors.next_if(|&(&group, _)| group < old.group).is_some() {}
            if let Some((_, (&row, &kind))) = survivors.next_if(|&(&group, _)| group == old.group) {
                batches.check(row)?;
                self.pairs.push((old.row, kind.is_add().then_some(row)));
            }
        }
        let equal = self.equal(batches)?;
        let mut equal = equal.into_iter();
        for &pair in &self.pairs {
            match pair {
                (None, None) => {}
                (None, Some(after)) => self.push(out, after, RowKind::Insert),
                (Some(before), None) => self.push(out, before, RowKind::Delete),
                (Some(before), Some(after)) => {
                    if !equal.next().unwrap_or(false) {
                        self.push(out, before, RowKind::UpdateBefore);
                        self.push(out, after, RowKind::UpdateAfter);
                    }
                }
            }
        }
        Ok(())
    }

    /// Of each pair of two rows, whether they are equal and that matters.
    fn equal(&self, batches: &Batches<'_>) -> Result<Vec<bool>, MergeError> {
        let Some(equaliser) = &self.equaliser else {
            return Ok(Vec::new());
        };
        let updates = self.pairs.iter().filter_map(|&(before, after)| before.zip(after));
        equaliser.equal(&batches.batches, &updates.collect::<Vec<_>>())
    }

    fn push(&self, out: &mut ChangelogRows, row: RowRef, kind: RowKind) {
        if self.settings.keeps(kind) {
            out.push(row, kind);
        }
    }
}
