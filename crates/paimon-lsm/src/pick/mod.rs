//! Which files to compact next, and onto which level.

use std::fmt::Debug;
use std::sync::Arc;

use paimon_format::meta::DataFileMeta;

/// A sorted run as the picker sees it.
#[derive(Clone, Debug)]
pub struct LevelSortedRun {
    /// Its level; level 0 has a run per file.
    pub level: i32,
    /// Its files in key order, ranges disjoint.
    pub files: Vec<Arc<DataFileMeta>>,
    /// The sum of the files' sizes, bytes.
    pub size: u64,
}

/// What a pick may ask of the world.
#[derive(Clone, Copy, Debug)]
pub struct PickContext {
    /// Levels of the tree, level 0 included.
    pub num_levels: i32,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// Hour of the local day, 0..=23.
    pub local_hour: u8,
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
#[derive(Clone, Debug)]
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

/// Decides what to compact. No I/O, no clock: what it remembers is only what it was told.
///
/// A pick is a prefix of `runs`, its output level is at least 1 and below the level of the first run left out.
pub trait CompactStrategy: Debug + Send {
    /// `runs[0]` is newest. `None`: nothing to do.
    fn pick(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit>;
}
