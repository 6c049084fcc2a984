//! When and how a bucket is compacted.

use paimon_format::FormatError;
use paimon_format::options::Options;
use paimon_lsm::compact::CompactSettings;
use paimon_lsm::pick::{EarlyFullSettings, ForceUpLevel0, OffPeakHours, PickRule, StrategySettings, UniversalSettings};

use super::writing::target_file_size;

/// Settings of a bucket's compactions. `rule` is which version of the reference's picker to follow; it is no option of Paimon.
///
/// Errors: `Invalid` naming the option.
///
/// Source: `org.apache.paimon.CoreOptions`, `org.apache.paimon.mergetree.compact.MergeTreeCompactManagerFactory`.
pub fn compact_settings(options: &Options, rule: PickRule) -> Result<CompactSettings, FormatError> {
    let trigger = at_least(options, "num-sorted-run.compaction-trigger", 5, 1)?;
    // Fewer than the trigger would make a writer wait for a compaction that nothing starts.
    let stop_trigger = at_least(options, "num-sorted-run.stop-trigger", trigger.saturating_add(3), 1)?.max(trigger);
    let num_levels = at_least(options, "num-levels", trigger.saturating_add(1), 2)?;
    let max_fan_in = at_least(options, "sort-spill-threshold", stop_trigger.saturating_add(1), 2)?;
    let universal = UniversalSettings {
        rule,
        max_size_amplification_percent: count(options, "compaction.max-size-amplification-percent", 200, 0)?,
        size_ratio_percent: count(options, "compaction.size-ratio", 1, 0)?,
        compaction_trigger: usize::try_from(trigger).unwrap_or(usize::MAX),
        off_peak: off_peak(options)?,
        early_full: early_full(options)?,
    };
    let force_up = options.bool("compaction.force-up-level-0")?.unwrap_or(false);
    Ok(CompactSettings {
        strategy: StrategySettings {
            universal,
            force_up_level0: if force_up { ForceUpLevel0::Radical } else { ForceUpLevel0::Never },
        },
        num_levels,
        stop_trigger: usize::try_from(stop_trigger).unwrap_or(usize::MAX),
        small_file_bytes: small_file_bytes(options)?,
        force_rewrite_all_files: options.bool("compaction.force-rewrite-all-files")?.unwrap_or(false),
        force_keep_delete: false,
        max_fan_in: usize::try_from(max_fan_in).unwrap_or(usize::MAX),
    })
}

fn off_peak(options: &Options) -> Result<Option<OffPeakHours>, FormatError> {
    let hour = |key: &str| match options.int(key)?.unwrap_or(-1) {
        -1 => Ok(None),
        hour => match u8::try_from(hour) {
            Ok(hour) if hour < 24 => Ok(Some(hour)),
            _ => Err(illegal(key, hour, "an hour of 0 to 23, or -1 for none")),
        },
    };
    let start = hour("compaction.offpeak.start.hour")?;
    let end = hour("compaction.offpeak.end.hour")?;
    let ratio_percent = options.int("compaction.offpeak-ratio")?.unwrap_or(0);
    Ok(start.zip(end).map(|(start_hour, end_hour)| OffPeakHours {
        start_hour,
        end_hour,
        ratio_percent,
    }))
}

fn early_full(options: &Options) -> Result<Option<EarlyFullSettings>, FormatError> {
    let interval = options.duration("compaction.optimization-interval")?;
    let settings = EarlyFullSettings {
        interval_ms: interval.map(|interval| i64::try_from(interval.as_millis()).unwrap_or(i64::MAX)),
        total_size_bytes: options.memory_size("compaction.total-size-threshold")?,
        incremental_size_bytes: options.memory_size("compaction.incremental-size-threshold")?,
    };
    let any = settings.interval_ms.is_some()
        || settings.total_size_bytes.is_some()
        || settings.incremental_size_bytes.is_some();
    Ok(any.then_some(settings))
}

/// The share of the target size below which a file is merged rather than moved up.
fn small_file_bytes(options: &Options) -> Result<u64, FormatError> {
    let key = "compaction.small-file-ratio";
    let ratio = options.double(key)?.unwrap_or(0.7);
    if !(0.0..=1.0).contains(&ratio) {
        return Err(illegal(key, ratio, "a share between 0 and 1"));
    }
    // Both are far below 2^53 in any table that exists; rounding down is Java's cast.
    Ok((target_file_size(options)? as f64 * ratio) as u64)
}

fn at_least(options: &Options, key: &str, default: i32, least: i32) -> Result<i32, FormatError> {
    match options.int(key)?.unwrap_or(default) {
        value if value >= least => Ok(value),
        value => Err(illegal(key, value, &format!("a number from {least}"))),
    }
}

fn count(options: &Options, key: &str, default: i32, least: i32) -> Result<u32, FormatError> {
    Ok(u32::try_from(at_least(options, key, default, least)?).unwrap_or(0))
}

fn illegal(key: &str, value: impl std::fmt::Display, expected: &str) -> FormatError {
    FormatError::invalid(format!("option '{key}' = '{value}': expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &[(&str, &str)]) -> Result<CompactSettings, String> {
        let options: Options = options.iter().copied().collect();
        compact_settings(&options, PickRule::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_follow_the_trigger() {
        let default = settings(&[]).unwrap();
        assert_eq!((default.num_levels, default.stop_trigger, default.max_fan_in), (6, 8, 9));
        assert_eq!(default.small_file_bytes, 93_952_409);
        let three = settings(&[("num-sorted-run.compaction-trigger", "3")]).unwrap();
        assert_eq!((three.num_levels, three.stop_trigger, three.max_fan_in), (4, 6, 7));
        let low_stop = settings(&[("num-sorted-run.stop-trigger", "2")]).unwrap();
        assert_eq!((low_stop.stop_trigger, low_stop.max_fan_in), (5, 6));
        let never = settings(&[("num-sorted-run.stop-trigger", "2147483647")]).unwrap();
        assert_eq!(never.max_fan_in, usize::try_from(i32::MAX).unwrap());
    }

    #[test]
    fn off_peak_needs_both_hours() {
        let none = settings(&[("compaction.offpeak.start.hour", "22")]).unwrap();
        assert_eq!(none.strategy.universal.off_peak, None);
        let both = settings(&[
            ("compaction.offpeak.start.hour", "22"),
            ("compaction.offpeak.end.hour", "5"),
            ("compaction.offpeak-ratio", "10"),
        ]);
        let hours = both.unwrap().strategy.universal.off_peak.unwrap();
        assert_eq!((hours.start_hour, hours.end_hour, hours.ratio_percent), (22, 5, 10));
    }

    #[test]
    fn illegal_values_are_refused_by_name() {
        let errors = [
            ("num-levels", "1"),
            ("num-sorted-run.compaction-trigger", "0"),
            ("compaction.offpeak.end.hour", "24"),
            ("compaction.small-file-ratio", "1.5"),
            ("compaction.total-size-threshold", "much"),
        ]
        .map(|option| settings(&[option]).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"));
    }
}
