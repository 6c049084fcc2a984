//! What compaction is told by the table's options.

use paimon_format::options::Options;
use paimon_merge::changelog::ChangelogSettings;
use paimon_merge::engine::Promises;
use serde::{Deserialize, Serialize};

use super::ChangelogProducer;
use crate::LsmError;
use crate::lookup::LookupStrategy;
use crate::pick::{StrategySettings, compaction_trigger};
use crate::settings::at_least;

/// `target-file-size` of a table with a primary key, bytes.
const TARGET_FILE_SIZE: u64 = 128 << 20;
const SMALL_FILE_RATIO: f64 = 0.7;

/// Settings of a bucket's compactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactSettings {
    /// What is picked.
    pub strategy: StrategySettings,
    /// `num-levels`, level 0 included; at least 2.
    pub num_levels: i32,
    /// `num-sorted-run.stop-trigger`: with more runs the writer waits for compaction.
    pub stop_trigger: usize,
    /// Files smaller than this are merged with their neighbours rather than upgraded, bytes: `target-file-size` times
    /// `compaction.small-file-ratio`.
    pub small_file_bytes: u64,
    /// `compaction.force-rewrite-all-files`: a full compaction rewrites every file, nothing is upgraded by metadata.
    pub force_rewrite_all_files: bool,
    /// `chain-table.enabled`: deletes are never dropped.
    pub force_keep_delete: bool,
    /// `sort-spill-threshold`: a section with more runs is merged in passes; at least 2.
    pub sort_spill_threshold: usize,
    /// `changelog-producer`
    pub producer: ChangelogProducer,
    /// What is worth a changelog row.
    pub changelog: ChangelogSettings,
    /// What is looked up.
    pub lookup: LookupStrategy,
    /// The writer overwrites what was there: its compactions make no lookup changelog.
    pub ignore_previous_files: bool,
}

impl Default for CompactSettings {
    fn default() -> Self {
        Self {
            strategy: StrategySettings::default(),
            num_levels: 6,
            stop_trigger: 8,
            small_file_bytes: small_file_bytes(TARGET_FILE_SIZE, SMALL_FILE_RATIO),
            force_rewrite_all_files: false,
            force_keep_delete: false,
            sort_spill_threshold: 9,
            producer: ChangelogProducer::None,
            changelog: ChangelogSettings::default(),
            lookup: LookupStrategy::default(),
            ignore_previous_files: false,
        }
    }
}

impl CompactSettings {
    /// For a table with these options, whose merge engine promises this.
    ///
    /// Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options, promises: Promises) -> Result<Self, LsmError> {
        let lookup = LookupStrategy::from_options(options, promises)?;
        let trigger = i32::try_from(compaction_trigger(options)?).unwrap_or(i32::MAX);
        let stop = at_least(options, "num-sorted-run.stop-trigger", 1, trigger.saturating_add(3))?.max(trigger);
        let target = options.memory_size("target-file-size")?.unwrap_or(TARGET_FILE_SIZE);
        let ratio = options
            .double("compaction.small-file-ratio")?
            .unwrap_or(SMALL_FILE_RATIO);
        if !(ratio.is_finite() && ratio >= 0.0) {
            return Err(LsmError::Invalid(format!(
                "compaction.small-file-ratio: expected a fraction of at least 0, found {ratio}"
            )));
        }
        let count = |number: i32| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(Self {
            strategy: StrategySettings::from_options(options, lookup.need_lookup())?,
            num_levels: at_least(options, "num-levels", 2, trigger.saturating_add(1))?,
            stop_trigger: count(stop),
            small_file_bytes: small_file_bytes(target, ratio),
            force_rewrite_all_files: options.bool("compaction.force-rewrite-all-files")?.unwrap_or(false),
            force_keep_delete: options.bool("chain-table.enabled")?.unwrap_or(false),
            sort_spill_threshold: count(at_least(options, "sort-spill-threshold", 2, stop.saturating_add(1))?),
            producer: ChangelogProducer::from_options(options)?,
            changelog: ChangelogSettings::from_options(options)?,
            lookup,
            ignore_previous_files: false,
        })
    }
}

impl CompactSettings {
    /// Whether compactions write changelog files.
    pub fn makes_changelog(&self) -> bool {
        match self.producer {
            ChangelogProducer::None | ChangelogProducer::Input => false,
            ChangelogProducer::Lookup => !self.ignore_previous_files,
            ChangelogProducer::FullCompaction => true,
        }
    }
}

/// The product as a double-precision number, without its fraction, as in the reference.
fn small_file_bytes(target: u64, ratio: f64) -> u64 {
    (target as f64 * ratio) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pick::{EarlyFullSettings, ForceUpLevel0, OffPeakHours, PickRule};

    fn settings(options: &[(&str, &str)]) -> Result<CompactSettings, String> {
        let options: Options = options.iter().copied().collect();
        CompactSettings::from_options(&options, Promises::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults() {
        assert_eq!(settings(&[]).unwrap(), CompactSettings::default());
        assert_eq!(CompactSettings::default().small_file_bytes, 93_952_409);
    }

    #[test]
    fn the_trigger_carries_others_along() {
        let three = settings(&[("num-sorted-run.compaction-trigger", "3")]).unwrap();
        assert_eq!(
            (three.num_levels, three.stop_trigger, three.sort_spill_threshold),
            (4, 6, 7)
        );
        let most = "2147483647";
        let all = settings(&[
            ("num-sorted-run.compaction-trigger", most),
            ("num-sorted-run.stop-trigger", "2"),
        ])
        .unwrap();
        assert_eq!(all.num_levels, i32::MAX);
        assert_eq!(all.stop_trigger, 2_147_483_647);
        assert_eq!(all.sort_spill_threshold, 2_147_483_647);
    }

    #[test]
    fn every_option_counts() {
        let all = settings(&[
            ("compaction.pick-rule", "release-1.4.2"),
            ("compaction.max-size-amplification-percent", "50"),
            ("compaction.size-ratio", "3"),
            ("compaction.offpeak.start.hour", "22"),
            ("compaction.offpeak.end.hour", "6"),
            ("compaction.offpeak-ratio", "40"),
            ("compaction.optimization-interval", "1 h"),
            ("compaction.total-size-threshold", "1 mb"),
            ("compaction.incremental-size-threshold", "2 mb"),
            ("compaction.force-up-level-0", "true"),
            ("compaction.force-rewrite-all-files", "true"),
            ("chain-table.enabled", "true"),
            ("target-file-size", "1000"),
            ("compaction.small-file-ratio", "0.25"),
        ])
        .unwrap();
        assert_eq!(all.strategy.universal.rule, PickRule::Release1_4);
        assert_eq!(all.strategy.universal.max_size_amplification_percent, 50);
        assert_eq!(all.strategy.universal.size_ratio_percent, 3);
        let off_peak = OffPeakHours {
            start_hour: 22,
            end_hour: 6,
            ratio_percent: 40,
        };
        assert_eq!(all.strategy.universal.off_peak, Some(off_peak));
        let early = EarlyFullSettings {
            interval_ms: Some(3_600_000),
            total_size_bytes: Some(1 << 20),
            incremental_size_bytes: Some(2 << 20),
        };
        assert_eq!(all.strategy.universal.early_full, Some(early));
        assert_eq!(all.strategy.force_up_level0, ForceUpLevel0::Radical);
        assert!(all.force_rewrite_all_files && all.force_keep_delete);
        assert_eq!(all.small_file_bytes, 250);
    }

    #[test]
    fn lookup_tables_push_level_0_up() {
        let force = |options: &[(&str, &str)]| {
            let options: Options = options.iter().copied().collect();
            let first_row = Promises {
                existence_only: true,
                ..Promises::default()
            };
            CompactSettings::from_options(&options, first_row)
                .unwrap()
                .strategy
                .force_up_level0
        };
        assert_eq!(force(&[]), ForceUpLevel0::Radical);
        let gentle = ("lookup-compact", "gentle");
        assert_eq!(force(&[gentle]), ForceUpLevel0::Gentle(10));
        assert_eq!(
            force(&[gentle, ("lookup-compact.max-interval", "2")]),
            ForceUpLevel0::Gentle(5)
        );
        assert_eq!(
            force(&[gentle, ("compaction.force-up-level-0", "true")]),
            ForceUpLevel0::Gentle(10)
        );
    }

    #[test]
    fn illegal_options_are_named() {
        let error = |key: &str, value: &str| settings(&[(key, value)]).unwrap_err();
        assert_eq!(
            error("num-levels", "1"),
            "num-levels: expected a number of at least 2, found 1"
        );
        assert_eq!(
            error("num-sorted-run.compaction-trigger", "0"),
            "num-sorted-run.compaction-trigger: expected a number of at least 1, found 0"
        );
        assert_eq!(
            error("sort-spill-threshold", "1"),
            "sort-spill-threshold: expected a number of at least 2, found 1"
        );
        assert_eq!(
            error("compaction.size-ratio", "-1"),
            "compaction.size-ratio: expected a number of at least 0, found -1"
        );
        assert_eq!(
            error("compaction.offpeak.end.hour", "24"),
            "compaction.offpeak.end.hour: expected an hour from 0 to 23, or -1, found 24"
        );
        assert!(error("compaction.pick-rule", "newest").contains("compaction.pick-rule"));
        assert!(error("compaction.small-file-ratio", "-0.1").contains("compaction.small-file-ratio"));
    }
}
