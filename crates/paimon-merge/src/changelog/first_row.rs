//! The changelog of tables that keep the first row of a key.

use std::sync::Arc;

use paimon_format::kv::KvSchema;

use super::selection::{check_whole, kind, level};
use super::{ChangelogSettings, Hits, MergeStage, StageOutput};
use crate::MergeError;
use crate::engine::MergeEngine;
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::{KeyGroups, RowRef};

/// Keeps the first row of new keys, and nothing of keys that are there already: on a level above 0 of the merge, or, as a look-up says, below
/// it. A new key's row is its change, with the kind it was written with.
///
/// Source: `org.apache.paimon.mergetree.compact.FirstRowMergeFunctionWrapper`.
pub struct FirstRowMergeFunctionWrapper {
    kernel: Box<dyn MergeKernel>,
    /// `None`: no changelog is made.
    changelog: Option<ChangelogSettings>,
    merged: MergedRows,
}

impl FirstRowMergeFunctionWrapper {
    /// A stage for batches of `schema`; `engine` keeps the first row.
    ///
    /// Errors: `Internal` for another engine; those of the engine's kernel.
    pub fn new(
        engine: &dyn MergeEngine,
        schema: &Arc<KvSchema>,
        changelog: Option<&ChangelogSettings>,
    ) -> Result<Self, MergeError> {
        if !engine.promises().existence_only {
            return Err(MergeError::internal(
                "a first-row stage for an engine that merges values",
            ));
        }
        Ok(Self {
            kernel: engine.kernel(schema)?,
            changelog: changelog.cloned(),
            merged: MergedRows::default(),
        })
    }
}

/// Whether it must be asked if a key is there: it has rows, and none of them lies above level 0.
fn is_missing(groups: &KeyGroups<'_>, versions: &[RowRef]) -> bool {
    let mut adds = versions
        .iter()
        .filter(|&&row| kind(groups.sources, row).is_add())
        .peekable();
    adds.peek().is_some() && adds.all(|&row| level(groups.sources, row) <= 0)
}

impl MergeStage for FirstRowMergeFunctionWrapper {
    fn passes(&self, level: i32) -> bool {
        level > 0
    }

    fn whole_keys(&self) -> bool {
        true
    }

    fn missing(&self, groups: &KeyGroups<'_>) -> Vec<u32> {
        let groups_and_versions = (0..).zip(groups.iter());
        groups_and_versions
            .filter_map(|(group, versions)| is_missing(groups, versions).then_some(group))
            .collect()
    }

    fn merge(&mut self, groups: &KeyGroups<'_>, hits: &Hits, out: &mut StageOutput) -> Result<(), MergeError> {
        check_whole(groups)?;
        self.merged.clear();
        self.kernel.merge(groups, &mut self.merged)?;
        let missing = self.missing(groups);
        if missing.len() != hits.found.len() {
            return Err(MergeError::internal(
                "a look-up gave more or fewer answers than it was asked for",
            ));
        }
        let mut asked = missing.iter().zip(&hits.found).peekable();
        let merged = &mut self.merged;
        out.merged.made = merged.made.take();
        for ((&row, &kind), &group) in merged.rows.iter().zip(&merged.kinds).zip(&merged.groups) {
            while asked.next_if(|&(&missing, _)| missing < group).is_some() {}
            let is_there = asked
                .next_if(|&(&missing, _)| missing == group)
                .map(|(_, hit)| hit.is_some());
            if is_there == Some(true) {
                continue;
            }
            let is_wanted = self.changelog.as_ref().is_some_and(|changelog| changelog.keeps(kind));
            if is_there == Some(false) && is_wanted {
                out.changelog.push(row, kind);
            }
            out.merged.push(row, kind, group as usize);
        }
        Ok(())
    }
}
