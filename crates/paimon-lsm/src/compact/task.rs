//! A compaction as data.

use std::sync::Arc;

use paimon_format::meta::DataFileMeta;
use serde::{Deserialize, Serialize};

use super::{CompactStep, StepRules, plan_steps};
use crate::LsmError;
use crate::levels::{KeyOrder, SortedRun};
use crate::pick::{CompactUnit, PickReason};

/// A picked unit with all that was decided when it was picked. Whoever runs it needs the bucket's files, schema and options, but
/// not its tree: it may run in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactTask {
    /// Files in run order, newest run first.
    pub files: Vec<Arc<DataFileMeta>>,
    /// Where outputs go.
    pub output_level: i32,
    /// The highest level of the tree when it was picked.
    pub max_level: i32,
    /// Delete rows are dropped. Decided when it was picked: the tree may have changed since.
    pub drop_delete: bool,
    /// Each file is rewritten alone, at its level.
    pub rewrite_each: bool,
    /// Which rule picked it.
    pub reason: PickReason,
}

impl CompactTask {
    /// The task of a unit.
    pub fn new(unit: CompactUnit, max_level: i32, drop_delete: bool) -> Self {
        Self {
            files: unit.files,
            output_level: unit.output_level,
            max_level,
            drop_delete,
            rewrite_each: unit.rewrite_each,
            reason: unit.reason,
        }
    }

    /// What is to be done, in key order. `small_file_bytes` and `must_rewrite` as in [`StepRules`].
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read. Source: `org.apache.paimon.mergetree.compact.{MergeTreeCompactTask, FileRewriteCompactTask}`.
    pub fn steps(
        &self,
        keys: &KeyOrder,
        small_file_bytes: u64,
        must_rewrite: &(dyn Fn(&DataFileMeta) -> bool + Sync),
    ) -> Result<Vec<CompactStep>, LsmError> {
        if self.rewrite_each {
            let files = self.files.iter();
            return Ok(files
                .map(|file| CompactStep::Rewrite(vec![vec![SortedRun::from_single(Arc::clone(file))]]))
                .collect());
        }
        let rules = StepRules {
            output_level: self.output_level,
            max_level: self.max_level,
            small_file_bytes,
            must_rewrite,
        };
        plan_steps(&self.files, keys, &rules)
    }
}
