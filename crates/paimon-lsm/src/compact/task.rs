//! A compaction as data.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::dv::DeletionVector;
use paimon_format::meta::DataFileMeta;
use serde::{Deserialize, Serialize};

use super::upgrade::{StepRules, plan_steps};
use super::{CompactStep, KeyBounds};
use crate::LsmError;
use crate::levels::{KeyOrder, LevelsView};
use crate::pick::{CompactUnit, PickReason};

/// A picked unit with all that was decided when it was picked. Whoever runs it needs the bucket's files, schema and options, but
/// not its tree: it may run in another process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Only these keys are merged, of all files together: the task is a part of one, whose other parts do the rest.
    #[serde(default)]
    pub keys: KeyBounds,
    /// Which rule picked it.
    pub reason: PickReason,
    /// The runs that are not merged: where old rows are looked up. Empty where nothing is.
    pub older: LevelsView,
    /// The bucket's deletion vectors, by file name.
    pub deleted: Arc<HashMap<String, Arc<DeletionVector>>>,
}

impl CompactTask {
    /// The task of a unit of a tree with `num_levels` levels, in which nothing is looked up.
    pub fn new(unit: CompactUnit, num_levels: i32, drop_delete: bool) -> Self {
        Self {
            files: unit.files,
            output_level: unit.output_level,
            max_level: num_levels.saturating_sub(1),
            drop_delete,
            rewrite_each: unit.rewrite_each,
            keys: KeyBounds::default(),
            reason: unit.reason,
            older: LevelsView::empty(num_levels),
            deleted: Arc::default(),
        }
    }

    /// What is to be done, in key order.
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read. Source:
    /// `org.apache.paimon.mergetree.compact.{MergeTreeCompactTask, FileRewriteCompactTask}`.
    pub(crate) fn steps(&self, keys: &KeyOrder, rules: &StepRules<'_>) -> Result<Vec<CompactStep>, LsmError> {
        if !self.keys.is_all() {
            return Ok(vec![rules.rewrite(keys.sections(&self.files)?)]);
        }
        match self.rewrite_each {
            true => Ok(self.files.iter().map(|file| rules.rewrite_alone(file)).collect()),
            false => plan_steps(&self.files, keys, rules),
        }
    }
}
