//! The changelog of rows that leave level 0.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::{KvBatch, KvSchema};

use super::diff::{Batches, Difference};
use super::selection::{Candidates, Selection, check_whole, kind};
use super::{ChangelogSettings, Hits, MergeStage, StageOutput};
use crate::MergeError;
use crate::engine::MergeEngine;
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::{KeyGroups, RowRef, VersionOrder, Versioned};

/// Merges the rows that leave level 0 with the whole state of their key, and says what changed.
///
/// The old row of a key is the one on the lowest level above 0 that takes part in the merge, whatever its sequence; if there is none, it
/// is looked up on deeper levels. It is merged with the rows of level 0 at its place in the order of versions. Keys without rows on level
/// 0 keep their row as it is, and have no change. A key of which nothing is left, not even a delete, gives no row and no change.
///
/// An old row that is a delete is no row: what comes after it is `+I`. The engine still sees it, if it merges deletes at all, because later
/// rows may be older by a user-defined sequence; engines begin anew after a delete that removed the row.
///
/// Source: `org.apache.paimon.mergetree.compact.LookupChangelogMergeFunctionWrapper`. Of two versions that nothing else tells apart, the
/// deeper one is the older one here, whether it was merged or looked up, as it is for reads; there a looked-up one is the newer one.
pub struct LookupChangelogMergeFunctionWrapper {
    kernel: Box<dyn MergeKernel>,
    merges_deletes: bool,
    order: VersionOrder,
    empty: RecordBatch,
    /// `None`: no changelog is made; old rows are looked up for their own sake.
    difference: Option<Difference>,
    selection: Selection,
}

impl LookupChangelogMergeFunctionWrapper {
    /// A stage for batches of `schema`, all columns of the table. `changelog`: `None` to look up and merge only.
    ///
    /// Errors: those of the engine's kernel; `Unsupported` for sequence fields that have no order.
    pub fn new(
        engine: &dyn MergeEngine,
        schema: &Arc<KvSchema>,
        changelog: Option<&ChangelogSettings>,
    ) -> Result<Self, MergeError> {
        Ok(Self {
            kernel: engine.kernel(schema)?,
            merges_deletes: engine.promises().accepts_retract,
            order: VersionOrder::new(schema)?,
            empty: RecordBatch::new_empty(Arc::clone(&schema.arrow)),
            difference: changelog.map(|settings| Difference::new(schema, settings)),
            selection: Selection::default(),
        })
    }

    fn clear(&mut self) {
        self.selection.clear();
        if let Some(difference) = &mut self.difference {
            difference.clear();
        }
    }
}

impl MergeStage for LookupChangelogMergeFunctionWrapper {
    fn passes(&self, level: i32) -> bool {
        level > 0
    }

    fn whole_keys(&self) -> bool {
        true
    }

    fn missing(&self, groups: &KeyGroups<'_>) -> Vec<u32> {
        let missing = |versions: &[RowRef]| Candidates::of(groups.sources, versions).high.is_none();
        let groups = (0..).zip(groups.iter());
        groups
            .filter_map(|(group, versions)| missing(versions).then_some(group))
            .collect()
    }

    fn merge(&mut self, groups: &KeyGroups<'_>, hits: &Hits, out: &mut StageOutput) -> Result<(), MergeError> {
        check_whole(groups)?;
        self.clear();
        let block = groups.sources.len() as u32;
        let mut sources = groups.sources.to_vec();
        sources.extend(hits.rows.iter().cloned());
        let mut places = Places::new(&self.order, &sources);
        let mut found = FoundRows::new(hits, block);
        for (group, versions) in groups.iter().enumerate() {
            let candidates = Candidates::of(&sources, versions);
            let (high, is_found) = match candidates.high {
                Some(high) => (Some(high), false),
                None => (found.next_row()?, true),
            };
            let old = high.filter(|&high| kind(&sources, high).is_add());
            let counts = if self.merges_deletes { high } else { old };
            match (high, counts) {
                (Some(high), _) if !candidates.has_low => {
                    self.selection.settle(group, high, kind(&sources, high));
                }
                (_, Some(row)) if is_found => {
                    let place = places.of(row, versions)?;
                    let (older, newer) = versions.split_at(place);
                    let with_found = older.iter().chain(std::iter::once(&row)).chain(newer);
                    self.selection.add(group, with_found.copied());
                }
                (_, counts) => self.selection.add_candidates(group, &sources, versions, counts),
            }
            if let Some(difference) = &mut self.difference
                && candidates.has_level0
            {
                let batch = |row: RowRef| if is_found { block + 1 } else { row.batch };
                difference.expect(
                    group,
                    old.map(|row| RowRef {
                        batch: batch(row),
                        ..row
                    }),
                );
            }
        }
        found.check_end()?;
        self.selection.merge(self.kernel.as_mut(), &sources, &mut out.merged)?;
        if hits.rows.is_some() {
            swap_found_and_made(&mut out.merged, block);
        }
        if let Some(difference) = &mut self.difference {
            let made = out.merged.made.as_ref();
            let batches = Batches::new(&self.empty, groups.sources, made, hits.rows.as_ref());
            difference.write(&out.merged, &batches, &mut out.changelog)?;
        }
        Ok(())
    }
}

/// The rows that were looked up, one after the other, as rows of the batch behind the block's own.
struct FoundRows<'a> {
    hits: &'a Hits,
    next: usize,
    batch: u32,
}

impl<'a> FoundRows<'a> {
    fn new(hits: &'a Hits, batch: u32) -> Self {
        Self { hits, next: 0, batch }
    }

    /// The old row of the next missing group; `None` if there is none, or only its position was asked for.
    fn next_row(&mut self) -> Result<Option<RowRef>, MergeError> {
        let Some(hit) = self.hits.found.get(self.next) else {
            return Err(MergeError::internal(
                "a look-up gave fewer answers than it was asked for",
            ));
        };
        self.next += 1;
        let Some(row) = hit.and_then(|hit| hit.row) else {
            return Ok(None);
        };
        match &self.hits.rows {
            Some(rows) if (row as usize) < rows.len() => Ok(Some(RowRef { batch: self.batch, row })),
            _ => Err(MergeError::internal("a look-up found a row that it did not give")),
        }
    }

    fn check_end(&self) -> Result<(), MergeError> {
        match self.next == self.hits.found.len() {
            true => Ok(()),
            false => Err(MergeError::internal(
                "a look-up gave more answers than it was asked for",
            )),
        }
    }
}

/// Finds the places of looked-up rows in the order of versions. Only batches that are needed are prepared.
struct Places<'a> {
    order: &'a VersionOrder,
    sources: &'a [KvBatch],
    versioned: Vec<Option<Versioned>>,
}

impl<'a> Places<'a> {
    fn new(order: &'a VersionOrder, sources: &'a [KvBatch]) -> Self {
        Self {
            order,
            sources,
            versioned: sources.iter().map(|_| None).collect(),
        }
    }

    /// How many of the versions, oldest first, are not newer than the row.
    fn of(&mut self, row: RowRef, versions: &[RowRef]) -> Result<usize, MergeError> {
        for at in versions.iter().chain([&row]) {
            self.prepare(at.batch as usize)?;
        }
        let versioned = |at: RowRef| self.versioned.get(at.batch as usize).and_then(Option::as_ref);
        let is_newer = |version: &RowRef| match (versioned(*version), versioned(row)) {
            (Some(mine), Some(found)) => {
                mine.compare(version.row as usize, found, row.row as usize) == Ordering::Greater
            }
            _ => false,
        };
        Ok(versions.partition_point(|version| !is_newer(version)))
    }

    fn prepare(&mut self, batch: usize) -> Result<(), MergeError> {
        if let (Some(versioned @ None), Some(source)) = (self.versioned.get_mut(batch), self.sources.get(batch)) {
            *versioned = Some(self.order.prepare(source)?);
        }
        Ok(())
    }
}

/// While merging, looked-up rows are the source behind the block's own, and made rows come after them; in what a stage gives they
/// change places.
fn swap_found_and_made(merged: &mut MergedRows, block: u32) {
    for row in &mut merged.rows {
        if row.batch == block {
            row.batch = block + 1;
        } else if row.batch == block + 1 {
            row.batch = block;
        }
    }
}
