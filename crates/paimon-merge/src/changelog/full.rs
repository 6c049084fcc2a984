//! The changelog of full compactions.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::KvSchema;

use super::diff::{Batches, Difference};
use super::selection::{Selection, check_whole, kind, level};
use super::{ChangelogSettings, Hits, MergeStage, StageOutput};
use crate::MergeError;
use crate::engine::MergeEngine;
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::KeyGroups;

/// Merges everything to the top level, and says what became of the rows there. Deletes are never results. A key with one version is
/// not given to the engine.
///
/// Source: `org.apache.paimon.mergetree.compact.FullChangelogMergeFunctionWrapper`.
pub struct FullChangelogMergeFunctionWrapper {
    kernel: Box<dyn MergeKernel>,
    max_level: i32,
    empty: RecordBatch,
    difference: Difference,
    selection: Selection,
}

impl FullChangelogMergeFunctionWrapper {
    /// A stage for batches of `schema`, all columns of the table, whose top level is `max_level`.
    ///
    /// Errors: those of the engine's kernel.
    pub fn new(
        engine: &dyn MergeEngine,
        schema: &Arc<KvSchema>,
        max_level: i32,
        changelog: &ChangelogSettings,
    ) -> Result<Self, MergeError> {
        Ok(Self {
            kernel: engine.kernel(schema)?,
            max_level,
            empty: RecordBatch::new_empty(Arc::clone(&schema.arrow)),
            difference: Difference::new(schema, changelog),
            selection: Selection::default(),
        })
    }
}

impl MergeStage for FullChangelogMergeFunctionWrapper {
    fn passes(&self, level: i32) -> bool {
        level == self.max_level
    }

    fn whole_keys(&self) -> bool {
        true
    }

    fn missing(&self, _groups: &KeyGroups<'_>) -> Vec<u32> {
        Vec::new()
    }

    fn merge(&mut self, groups: &KeyGroups<'_>, _hits: &Hits, out: &mut StageOutput) -> Result<(), MergeError> {
        check_whole(groups)?;
        self.selection.clear();
        self.difference.clear();
        let sources = groups.sources;
        for (group, versions) in groups.iter().enumerate() {
            let mut tops = versions
                .iter()
                .copied()
                .filter(|&row| level(sources, row) == self.max_level);
            let top = tops.next();
            if tops.next().is_some() {
                return Err(MergeError::internal(format!(
                    "a key has two rows on the top level {}",
                    self.max_level
                )));
            }
            match (versions, top) {
                (&[only], Some(_)) => {
                    self.selection.settle(group, only, kind(sources, only));
                    continue;
                }
                (&[only], None) => self.selection.settle(group, only, kind(sources, only)),
                _ => self.selection.add(group, versions.iter().copied()),
            }
            let old = top.filter(|&top| kind(sources, top).is_add());
            self.difference.expect(group, old);
        }
        self.selection.merge(self.kernel.as_mut(), sources, &mut out.merged)?;
        let batches = Batches::new(&self.empty, sources, out.merged.made.as_ref(), None);
        self.difference.write(&out.merged, &batches, &mut out.changelog)?;
        drop_retracts(&mut out.merged);
        Ok(())
    }
}

fn drop_retracts(merged: &mut MergedRows) {
    if merged.kinds.iter().all(|kind| kind.is_add()) {
        return;
    }
    let made = merged.made.take();
    let MergedRows {
        rows, kinds, groups, ..
    } = std::mem::take(merged);
    for ((row, kind), group) in rows.into_iter().zip(kinds).zip(groups) {
        if kind.is_add() {
            merged.push(row, kind, group as usize);
        }
    }
    merged.made = made;
}
