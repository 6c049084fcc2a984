//! Universal compaction.

use serde::{Deserialize, Serialize};

use super::{
    CompactStrategy, CompactUnit, EarlyFullCompaction, EarlyFullSettings, LevelSortedRun, OffPeakHours, PickContext,
    PickReason, total_size,
};

/// Which version of the reference's picker to follow. They differ in two places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PickRule {
    /// Once a compaction has begun, runs on levels 0 and 1 are taken whatever their size; only a clearly larger run above level 1
    /// ends it. A forced pick starts with the level-0 runs. Source: upstream after release 2.0.0.
    #[default]
    Current,
    /// Any clearly larger run ends the size-ratio walk. A forced pick starts with the level-0 runs and a level-1 run behind them.
    #[serde(rename = "release-2.0.0")]
    Release2_0,
    /// As [`Release2_0`](Self::Release2_0), but a forced pick starts with the level-0 runs alone.
    #[serde(rename = "release-1.4.2")]
    Release1_4,
}

/// Parameters of [`UniversalCompaction`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniversalSettings {
    /// Which version of the reference to follow.
    pub rule: PickRule,
    /// `compaction.max-size-amplification-percent`: all runs are compacted when the newer ones exceed this share of the oldest.
    pub max_size_amplification_percent: u32,
    /// `compaction.size-ratio`, percent: how much larger the next run may be and still join.
    pub size_ratio_percent: u32,
    /// `num-sorted-run.compaction-trigger`: with fewer runs nothing is picked; at least 1.
    pub compaction_trigger: usize,
    /// Hours with a wider size ratio.
    pub off_peak: Option<OffPeakHours>,
    /// Early full compaction.
    pub early_full: Option<EarlyFullSettings>,
}

impl Default for UniversalSettings {
    fn default() -> Self {
        Self {
            rule: PickRule::default(),
            max_size_amplification_percent: 200,
            size_ratio_percent: 1,
            compaction_trigger: 5,
            off_peak: None,
            early_full: None,
        }
    }
}

/// Compacts by sizes and number of sorted runs, never by a limit per level: low write amplification, a prefix of newest runs
/// at a time.
///
/// In order: early full compaction; all runs when size amplification is too large; a prefix of runs of similar size; as many of
/// the newest runs as bring their number down to the trigger.
///
/// Source: `org.apache.paimon.mergetree.compact.UniversalCompaction`.
#[derive(Clone, Debug)]
pub struct UniversalCompaction {
    settings: UniversalSettings,
    early_full: Option<EarlyFullCompaction>,
}

impl UniversalCompaction {
    /// A picker for a tree whose last full compaction is unknown.
    pub fn new(settings: UniversalSettings) -> Self {
        Self::with_last_full(settings, None)
    }

    /// A picker for a tree that was last compacted fully at `last_full_ms`, milliseconds since the epoch. Only
    /// `compaction.optimization-interval` looks at it.
    pub fn with_last_full(settings: UniversalSettings, last_full_ms: Option<i64>) -> Self {
        let early_full = settings
            .early_full
            .clone()
            .map(|early| EarlyFullCompaction::new(early, last_full_ms));
        Self { settings, early_full }
    }

    /// The level-0 runs and what must go with them, if there are any.
    pub fn force_pick_level0(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit> {
        let mut count = runs.iter().take_while(|run| run.level == 0).count();
        if count == 0 {
            return None;
        }
        if self.settings.rule == PickRule::Release2_0 && runs.get(count).is_some_and(|run| run.level == 1) {
            count += 1;
        }
        self.pick_for_size_ratio(runs, context, count, PickReason::ForceUpLevel0)
    }

    fn pick_for_size_amplification(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit> {
        if runs.len() < self.settings.compaction_trigger {
            return None;
        }
        let (oldest, newer) = runs.split_last()?;
        let limit = u128::from(self.settings.max_size_amplification_percent) * u128::from(oldest.run.total_size());
        if u128::from(total_size(newer)) * 100 <= limit {
            return None;
        }
        self.full_compaction_picked(context);
        Some(CompactUnit::of_runs(
            context.max_level(),
            runs,
            PickReason::SizeAmplification,
        ))
    }

    /// Grows the prefix of `count` runs while the next run is not clearly larger than all before it together. A prefix that
    /// stays one run is a unit only when forced.
    fn pick_for_size_ratio(
        &mut self,
        runs: &[LevelSortedRun],
        context: &PickContext,
        mut count: usize,
        reason: PickReason,
    ) -> Option<CompactUnit> {
        let forced = reason == PickReason::ForceUpLevel0;
        let mut size = total_size(runs.get(..count)?);
        while let Some(next) = runs.get(count) {
            let triggered = forced || count > 1;
            let absorbed = self.settings.rule == PickRule::Current && triggered && next.level <= 1;
            if !absorbed && self.is_clearly_larger(next, size, context) {
                break;
            }
            size = size.saturating_add(next.run.total_size());
            count += 1;
        }
        (forced || count > 1).then(|| self.create_unit(runs, context, count, reason))
    }

    /// The order of operations is that of the reference: equal sizes after rounding must round the same way.
    fn is_clearly_larger(&self, next: &LevelSortedRun, size: u64, context: &PickContext) -> bool {
        let off_peak = self
            .settings
            .off_peak
            .map_or(0, |hours| hours.ratio_percent_at(context.local_hour));
        let ratio = 100.0 + f64::from(self.settings.size_ratio_percent) + f64::from(off_peak);
        size as f64 * ratio / 100.0 < next.run.total_size() as f64
    }

    /// The first `count` runs, and as many more as keep the output off level 0.
    fn create_unit(
        &mut self,
        runs: &[LevelSortedRun],
        context: &PickContext,
        mut count: usize,
        reason: PickReason,
    ) -> CompactUnit {
        let mut output_level = match runs.get(count) {
            None => context.max_level(),
            Some(next) => (next.level - 1).max(0),
        };
        if output_level == 0 {
            // The next run is on level 0 or 1: the rest of level 0 joins, and the first run above it, whatever its size.
            for run in runs.get(count..).unwrap_or_default() {
                count += 1;
                if run.level != 0 {
                    output_level = run.level;
                    break;
                }
            }
        }
        if count == runs.len() {
            self.full_compaction_picked(context);
            output_level = context.max_level();
        }
        CompactUnit::of_runs(output_level, runs.get(..count).unwrap_or(runs), reason)
    }

    fn full_compaction_picked(&mut self, context: &PickContext) {
        if let Some(early) = &mut self.early_full {
            early.full_compaction_picked(context.now_ms);
        }
    }
}

impl CompactStrategy for UniversalCompaction {
    fn pick(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit> {
        if let Some(early) = &mut self.early_full
            && let Some(unit) = early.try_full_compact(runs, context)
        {
            return Some(unit);
        }
        if let Some(unit) = self.pick_for_size_amplification(runs, context) {
            return Some(unit);
        }
        let trigger = self.settings.compaction_trigger;
        if runs.len() >= trigger
            && let Some(unit) = self.pick_for_size_ratio(runs, context, 1, PickReason::SizeRatio)
        {
            return Some(unit);
        }
        if runs.len() > trigger {
            let count = runs.len() - trigger + 1;
            return self.pick_for_size_ratio(runs, context, count, PickReason::NumberOfRuns);
        }
        None
    }
}
