//! Which files to compact next, and onto which level.
//!
//! [`UniversalCompaction`] is the normal strategy; [`ForceUpLevel0Compaction`] wraps it for tables whose level 0 must not
//! stay behind; [`pick_full_compaction`] answers a user's wish. [`StrategySettings`] chooses among them by the table's options.

mod early_full;
mod force_up_level0;
mod full;
mod off_peak;
mod options;
mod strategy;
#[cfg(test)]
mod tests;
mod universal;

use std::fmt::Debug;
use std::sync::Arc;

use paimon_format::env::Clock;
use paimon_format::meta::DataFileMeta;

pub use crate::levels::{LevelSortedRun, SortedRun};
pub use early_full::{EarlyFullCompaction, EarlyFullSettings};
pub use force_up_level0::ForceUpLevel0Compaction;
pub use full::pick_full_compaction;
pub use off_peak::OffPeakHours;
pub(crate) use options::compaction_trigger;
pub use strategy::{ForceUpLevel0, StrategySettings};
pub use universal::{PickRule, UniversalCompaction, UniversalSettings};

/// What a pick may ask of the world.
#[derive(Clone, Copy, Debug)]
pub struct PickContext {
    /// Levels of the tree, level 0 included; at least 2.
    pub num_levels: i32,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// Hour of the local day, 0..=23.
    pub local_hour: u8,
}

impl PickContext {
    /// This very moment.
    pub fn now(clock: &dyn Clock, num_levels: i32) -> Self {
        let now_ms = clock.now_ms();
        let local_ms = now_ms.saturating_add(clock.local_offset_ms(now_ms));
        Self {
            num_levels,
            now_ms,
            local_hour: u8::try_from(local_ms.div_euclid(3_600_000).rem_euclid(24)).unwrap_or(0),
        }
    }

    /// The highest level.
    pub fn max_level(&self) -> i32 {
        self.num_levels - 1
    }
}

/// Why a unit was picked, for people and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum PickReason {
    /// `compaction.optimization-interval`
    EarlyFullInterval,
    /// `compaction.total-size-threshold`
    EarlyFullTotalSize,
    /// `compaction.incremental-size-threshold`
    EarlyFullIncrementalSize,
    /// `compaction.max-size-amplification-percent`
    SizeAmplification,
    /// `compaction.size-ratio`
    SizeRatio,
    /// More runs than `num-sorted-run.compaction-trigger`
    NumberOfRuns,
    /// Level 0 is pushed up
    ForceUpLevel0,
    /// Asked for by a user
    Full,
}

/// Files to compact together: always the newest runs, without a gap.
///
/// Source: `org.apache.paimon.compact.CompactUnit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactUnit {
    /// Where the outputs go; never 0.
    pub output_level: i32,
    /// Files in run order, newest run first.
    pub files: Vec<Arc<DataFileMeta>>,
    /// How many runs that is, counted from the newest.
    pub runs: usize,
    /// Each file is rewritten alone, at its level (full compaction of a bucket that is already full).
    pub rewrite_each: bool,
    /// Which rule picked it.
    pub reason: PickReason,
}

impl CompactUnit {
    /// All files of a prefix of the runs.
    pub(crate) fn of_runs(output_level: i32, runs: &[LevelSortedRun], reason: PickReason) -> Self {
        Self {
            output_level,
            files: runs.iter().flat_map(|run| run.run.files()).map(Arc::clone).collect(),
            runs: runs.len(),
            rewrite_each: false,
            reason,
        }
    }

    /// Whether compacting it would change nothing: no file, or a single one that is on the output level already.
    ///
    /// Only the first file's level is looked at, as the reference does: several files on the output level are work.
    pub fn is_no_op(&self) -> bool {
        match self.files.as_slice() {
            [] => true,
            [file] => file.level == self.output_level,
            _ => false,
        }
    }
}

/// Decides what to compact. No I/O, no clock: what it remembers is only what it was told.
///
/// A pick is a prefix of `runs`, its output level is at least 1 and below the level of the first run left out; a pick of
/// all runs goes to the highest level. `paimon_lsm::testing::check_strategy` (feature `test-util`) checks this.
pub trait CompactStrategy: Debug + Send {
    /// `runs[0]` is newest. `None`: nothing to do.
    fn pick(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit>;
}

/// Sizes of runs, added up.
fn total_size(runs: &[LevelSortedRun]) -> u64 {
    runs.iter().map(|run| run.run.total_size()).fold(0, u64::saturating_add)
}
