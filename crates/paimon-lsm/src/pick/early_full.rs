//! Step 0: full compaction before the tree's shape asks for it.

use serde::{Deserialize, Serialize};

use super::{CompactUnit, LevelSortedRun, PickContext, PickReason, total_size};

/// When to compact a bucket fully although its shape does not ask for it. At least one limit is set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyFullSettings {
    /// `compaction.optimization-interval`, milliseconds: the last full compaction may be at most this old.
    pub interval_ms: Option<i64>,
    /// `compaction.total-size-threshold`, bytes: a tree smaller than this is always compacted fully.
    pub total_size_bytes: Option<u64>,
    /// `compaction.incremental-size-threshold`, bytes: data outside the highest level may be at most this large.
    pub incremental_size_bytes: Option<u64>,
}

/// Decides about early full compaction. Remembers when the last full compaction was picked.
///
/// Source: `org.apache.paimon.mergetree.compact.EarlyFullCompaction`.
#[derive(Clone, Debug)]
pub struct EarlyFullCompaction {
    settings: EarlyFullSettings,
    last_full_ms: Option<i64>,
}

impl EarlyFullCompaction {
    /// `last_full_ms`: when the tree was last compacted fully, milliseconds since the epoch; `None`: never, or unknown.
    pub fn new(settings: EarlyFullSettings, last_full_ms: Option<i64>) -> Self {
        Self { settings, last_full_ms }
    }

    /// All runs, if one of the limits is passed. Never for a tree of exactly one run.
    ///
    /// Without any run the answer can be a unit without files, as in the reference: callers drop units that are no-ops.
    pub fn try_full_compact(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit> {
        if runs.len() == 1 {
            return None;
        }
        let reason = self.reason(runs, context)?;
        self.full_compaction_picked(context.now_ms);
        Some(CompactUnit::of_runs(context.max_level(), runs, reason))
    }

    /// Some other rule picked all runs at `now_ms`.
    pub(super) fn full_compaction_picked(&mut self, now_ms: i64) {
        self.last_full_ms = Some(now_ms);
    }

    fn reason(&self, runs: &[LevelSortedRun], context: &PickContext) -> Option<PickReason> {
        if let Some(interval) = self.settings.interval_ms
            && self
                .last_full_ms
                .is_none_or(|last| context.now_ms.saturating_sub(last) > interval)
        {
            return Some(PickReason::EarlyFullInterval);
        }
        if let Some(threshold) = self.settings.total_size_bytes
            && total_size(runs) < threshold
        {
            return Some(PickReason::EarlyFullTotalSize);
        }
        if let Some(threshold) = self.settings.incremental_size_bytes {
            let outside: u64 = runs
                .iter()
                .filter(|run| run.level != context.max_level())
                .map(|run| run.run.total_size())
                .fold(0, u64::saturating_add);
            if outside > threshold {
                return Some(PickReason::EarlyFullIncrementalSize);
            }
        }
        None
    }
}
