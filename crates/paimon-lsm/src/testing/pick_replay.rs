//! Pick decisions of the reference, one JSON object a line.

use serde::Deserialize;

use super::runs::run;
use crate::levels::LevelSortedRun;
use crate::pick::{
    CompactStrategy, EarlyFullSettings, ForceUpLevel0Compaction, OffPeakHours, PickContext, PickRule,
    UniversalCompaction, UniversalSettings, pick_full_compaction,
};

/// A tree, the settings, and what the reference picked: one line of a pick table.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PickCase {
    mode: Mode,
    /// `[level, bytes]`, newest first.
    runs: Vec<(i32, i64)>,
    num_levels: i32,
    trigger: usize,
    size_amp: u32,
    size_ratio: u32,
    off_peak: Option<OffPeak>,
    early: Option<Early>,
    /// Forced picks happen at every so many idle picks; absent: at each.
    interval: Option<u32>,
    /// How many picks, all on the same runs.
    #[serde(default = "one")]
    calls: usize,
    answers: Vec<Option<PickAnswer>>,
}

/// What was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PickAnswer {
    /// How many runs, counted from the newest.
    pub runs: usize,
    /// Where the outputs go.
    pub output_level: i32,
    /// Each file is rewritten alone.
    pub file_rewrite: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Universal,
    ForceUp,
    Full,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OffPeak {
    start: i32,
    end: i32,
    ratio: i32,
    hour: u8,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Early {
    interval: Option<i64>,
    total: Option<u64>,
    incremental: Option<u64>,
    last: Option<i64>,
    #[serde(default)]
    now: i64,
}

fn one() -> usize {
    1
}

impl PickCase {
    /// Reads one line.
    ///
    /// Errors: what in the line is not as expected.
    pub fn parse(line: &str) -> Result<Self, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }

    /// The rule that a table's file name stands for: `*-master.jsonl` the current one, `*-2.0.0.jsonl` and plain `*.jsonl`
    /// (release 1.4.2) the older ones.
    pub fn rule_of(file_name: &str) -> PickRule {
        let stem = file_name.strip_suffix(".jsonl").unwrap_or(file_name);
        if stem.ends_with("-master") {
            PickRule::Current
        } else if stem.ends_with("-2.0.0") {
            PickRule::Release2_0
        } else {
            PickRule::Release1_4
        }
    }

    /// What the reference answered, one entry a pick.
    pub fn expected(&self) -> &[Option<PickAnswer>] {
        &self.answers
    }

    /// What this crate answers under `rule`, one entry a pick.
    pub fn replay(&self, rule: PickRule) -> Vec<Option<PickAnswer>> {
        let runs: Vec<LevelSortedRun> = self
            .runs
            .iter()
            .enumerate()
            .map(|(index, &(level, size))| run(index, level, size))
            .collect();
        let context = PickContext {
            num_levels: self.num_levels,
            now_ms: self.early.as_ref().map_or(0, |early| early.now),
            local_hour: self.off_peak.as_ref().map_or(0, |off_peak| off_peak.hour),
        };
        let universal =
            UniversalCompaction::with_last_full(self.settings(rule), self.early.as_ref().and_then(|early| early.last));
        let mut strategy: Box<dyn CompactStrategy> = match self.mode {
            Mode::Universal => Box::new(universal),
            Mode::ForceUp => Box::new(ForceUpLevel0Compaction::new(universal, self.interval)),
            Mode::Full => Box::new(FullCompaction),
        };
        (0..self.calls)
            .map(|_| {
                strategy.pick(&runs, &context).map(|unit| PickAnswer {
                    runs: unit.runs,
                    output_level: unit.output_level,
                    file_rewrite: unit.rewrite_each,
                })
            })
            .collect()
    }

    fn settings(&self, rule: PickRule) -> UniversalSettings {
        UniversalSettings {
            rule,
            max_size_amplification_percent: self.size_amp,
            size_ratio_percent: self.size_ratio,
            compaction_trigger: self.trigger,
            off_peak: self.off_peak.as_ref().and_then(|off_peak| {
                Some(OffPeakHours {
                    start_hour: u8::try_from(off_peak.start).ok()?,
                    end_hour: u8::try_from(off_peak.end).ok()?,
                    ratio_percent: off_peak.ratio,
                })
            }),
            early_full: self.early.as_ref().and_then(|early| {
                let limits = early.interval.is_some() || early.total.is_some() || early.incremental.is_some();
                limits.then_some(EarlyFullSettings {
                    interval_ms: early.interval,
                    total_size_bytes: early.total,
                    incremental_size_bytes: early.incremental,
                })
            }),
        }
    }
}

/// A user's full compaction, seen as a strategy.
#[derive(Debug)]
struct FullCompaction;

impl CompactStrategy for FullCompaction {
    fn pick(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<crate::pick::CompactUnit> {
        pick_full_compaction(context.num_levels, runs, |_| false)
    }
}
