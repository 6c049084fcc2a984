//! What would be compacted in a bucket, and why.

use paimon_lsm::compact::{CompactSettings, CompactStep};
use paimon_lsm::levels::{LevelSortedRun, total_bytes};
use paimon_lsm::pick::{CompactUnit, PickReason};

use crate::bucket::BucketStores;
use crate::error::Result;
use crate::levels::BucketLevels;
use crate::table::Table;

/// What would be compacted in a bucket now.
#[derive(Debug)]
pub struct BucketPick {
    /// The files and where they would go; `None`: nothing to do.
    pub unit: Option<CompactUnit>,
    /// Whether deletes would go away: nothing older than the unit can hold their keys.
    pub drop_delete: bool,
    /// What would be done, in key order.
    pub steps: Vec<CompactStep>,
    /// The rule and the numbers that made it so, in words.
    pub why: String,
}

impl BucketPick {
    /// Bytes that would be read.
    pub fn bytes(&self) -> u64 {
        self.unit.as_ref().map_or(0, |unit| total_bytes(&unit.files))
    }
}

impl Table {
    /// What a compaction of the bucket would do now: what the strategy picks, or a full compaction.
    ///
    /// Errors: `Invalid` naming an option; `Corrupt` when a file's key bounds cannot be read.
    pub fn explain(&self, bucket: &BucketLevels, full: bool) -> Result<BucketPick> {
        let stores = BucketStores::new(self)?;
        let settings = &stores.settings().compact;
        let mut compactor = stores.compactor(bucket)?;
        let Some(unit) = compactor.pick(full)? else {
            return Ok(BucketPick {
                unit: None,
                drop_delete: false,
                steps: Vec::new(),
                why: why_not(bucket.runs(), full, settings, bucket.levels().max_level()),
            });
        };
        let task = compactor.task(unit.clone())?;
        Ok(BucketPick {
            drop_delete: task.drop_delete,
            steps: compactor.steps(&task)?,
            why: why(&unit, bucket.runs(), settings),
            unit: Some(unit),
        })
    }
}

fn why(unit: &CompactUnit, runs: &[LevelSortedRun], settings: &CompactSettings) -> String {
    let universal = &settings.strategy.universal;
    let early = universal.early_full.as_ref();
    let sum = |runs: &[LevelSortedRun]| runs.iter().map(|run| run.run.total_size()).sum::<u64>();
    match unit.reason {
        PickReason::EarlyFullInterval => format!(
            "no full compaction within compaction.optimization-interval = {} ms",
            early.and_then(|early| early.interval_ms).unwrap_or_default()
        ),
        PickReason::EarlyFullTotalSize => format!(
            "all runs together, {} bytes, are below compaction.total-size-threshold = {} bytes",
            sum(runs),
            early.and_then(|early| early.total_size_bytes).unwrap_or_default()
        ),
        PickReason::EarlyFullIncrementalSize => format!(
            "the runs above the oldest level are over compaction.incremental-size-threshold = {} bytes",
            early.and_then(|early| early.incremental_size_bytes).unwrap_or_default()
        ),
        PickReason::SizeAmplification => {
            let (oldest, newer) = runs
                .split_last()
                .map_or((0, 0), |(oldest, newer)| (oldest.run.total_size(), sum(newer)));
            format!(
                "the newer runs, {newer} bytes, are over compaction.max-size-amplification-percent = {} % of the oldest, {oldest} bytes",
                universal.max_size_amplification_percent
            )
        }
        PickReason::SizeRatio => format!(
            "each of them is at most compaction.size-ratio = {} % larger than all newer ones together, or joins as a run of level 0 or 1",
            universal.size_ratio_percent
        ),
        PickReason::NumberOfRuns => format!(
            "{} sorted runs are over num-sorted-run.compaction-trigger = {}",
            runs.len(),
            universal.compaction_trigger
        ),
        PickReason::ForceUpLevel0 if settings.lookup.need_lookup() => {
            "level 0 must not stay behind where old rows are looked up (lookup-compact)".to_owned()
        }
        PickReason::ForceUpLevel0 => "level 0 must not stay behind (compaction.force-up-level-0)".to_owned(),
        PickReason::Full => "a full compaction is asked for".to_owned(),
        _ => format!("{:?}", unit.reason),
    }
}

fn why_not(runs: &[LevelSortedRun], full: bool, settings: &CompactSettings, max_level: i32) -> String {
    let trigger = settings.strategy.universal.compaction_trigger;
    let counted = if runs.len() == 1 {
        "1 sorted run is".to_owned()
    } else {
        format!("{} sorted runs are", runs.len())
    };
    if full {
        format!("all rows are in one sorted run at the top level, {max_level}")
    } else if runs.len() < trigger {
        format!("{counted} fewer than num-sorted-run.compaction-trigger = {trigger}")
    } else {
        format!(
            "{counted} not over num-sorted-run.compaction-trigger = {trigger}, and no newer run is large enough beside the next older one"
        )
    }
}
