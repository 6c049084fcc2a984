//! The tree at one moment.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::LevelSortedRun;

/// The runs of a bucket when a task began. Immutable; cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelsView {
    num_levels: i32,
    runs: Arc<[LevelSortedRun]>,
}

impl LevelsView {
    /// Runs of a tree with so many levels, newest to oldest; not checked.
    pub fn new(num_levels: i32, runs: Vec<LevelSortedRun>) -> Self {
        Self {
            num_levels,
            runs: runs.into(),
        }
    }

    /// No runs.
    pub fn empty(num_levels: i32) -> Self {
        Self::new(num_levels, Vec::new())
    }

    /// Levels, level 0 included.
    pub fn number_of_levels(&self) -> i32 {
        self.num_levels
    }

    /// All runs, newest to oldest.
    pub fn runs(&self) -> &[LevelSortedRun] {
        &self.runs
    }

    /// The run of a level above 0, if it has files.
    pub fn run_of_level(&self, level: i32) -> Option<&LevelSortedRun> {
        self.runs.iter().find(|run| run.level == level && level > 0)
    }
}
