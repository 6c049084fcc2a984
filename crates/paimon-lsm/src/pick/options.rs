//! Picker settings from a table's options.

use paimon_format::options::{OptionEnum, Options};

use super::{EarlyFullSettings, ForceUpLevel0, OffPeakHours, PickRule, StrategySettings, UniversalSettings};
use crate::LsmError;
use crate::settings::{at_least, unsigned};

impl OptionEnum for PickRule {
    const VALUES: &'static [(&'static str, Self)] = &[
        ("current", Self::Current),
        ("release-2.0.0", Self::Release2_0),
        ("release-1.4.2", Self::Release1_4),
    ];
}

/// `lookup-compact`
#[derive(Clone, Copy, Debug)]
enum LookupCompact {
    Radical,
    Gentle,
}

impl OptionEnum for LookupCompact {
    const VALUES: &'static [(&'static str, Self)] = &[("radical", Self::Radical), ("gentle", Self::Gentle)];
}

impl UniversalSettings {
    /// Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options) -> Result<Self, LsmError> {
        let default = Self::default();
        Ok(Self {
            rule: options.parse_enum("compaction.pick-rule")?.unwrap_or_default(),
            max_size_amplification_percent: unsigned(
                options,
                "compaction.max-size-amplification-percent",
                default.max_size_amplification_percent,
            )?,
            size_ratio_percent: unsigned(options, "compaction.size-ratio", default.size_ratio_percent)?,
            compaction_trigger: compaction_trigger(options)?,
            off_peak: off_peak(options)?,
            early_full: early_full(options)?,
        })
    }
}

impl StrategySettings {
    /// `needs_lookup`: the table looks old rows up (changelog producer, deletion vectors, first-row); level 0 then goes up as
    /// `lookup-compact` says, and `compaction.force-up-level-0` does not count.
    ///
    /// Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options, needs_lookup: bool) -> Result<Self, LsmError> {
        let universal = UniversalSettings::from_options(options)?;
        let force_up_level0 = if needs_lookup {
            match options.parse_enum("lookup-compact")? {
                None | Some(LookupCompact::Radical) => ForceUpLevel0::Radical,
                Some(LookupCompact::Gentle) => {
                    let trigger = u32::try_from(universal.compaction_trigger).unwrap_or(u32::MAX);
                    let twice = trigger.saturating_mul(2);
                    let interval = unsigned(options, "lookup-compact.max-interval", twice)?;
                    ForceUpLevel0::Gentle(interval.max(trigger))
                }
            }
        } else if options.bool("compaction.force-up-level-0")?.unwrap_or(false) {
            ForceUpLevel0::Radical
        } else {
            ForceUpLevel0::Never
        };
        Ok(Self {
            universal,
            force_up_level0,
        })
    }
}

pub(crate) fn compaction_trigger(options: &Options) -> Result<usize, LsmError> {
    let trigger = at_least(options, "num-sorted-run.compaction-trigger", 1, 5)?;
    Ok(usize::try_from(trigger).unwrap_or(usize::MAX))
}

fn off_peak(options: &Options) -> Result<Option<OffPeakHours>, LsmError> {
    let hour = |key: &str| -> Result<Option<u8>, LsmError> {
        match options.int(key)?.unwrap_or(-1) {
            -1 => Ok(None),
            hour => match u8::try_from(hour) {
                Ok(hour @ 0..=23) => Ok(Some(hour)),
                _ => Err(LsmError::Invalid(format!(
                    "{key}: expected an hour from 0 to 23, or -1, found {hour}"
                ))),
            },
        }
    };
    let (start, end) = (
        hour("compaction.offpeak.start.hour")?,
        hour("compaction.offpeak.end.hour")?,
    );
    let ratio = unsigned(options, "compaction.offpeak-ratio", 0)?;
    Ok(start.zip(end).map(|(start_hour, end_hour)| OffPeakHours {
        start_hour,
        end_hour,
        ratio_percent: i32::try_from(ratio).unwrap_or(i32::MAX),
    }))
}

fn early_full(options: &Options) -> Result<Option<EarlyFullSettings>, LsmError> {
    let settings = EarlyFullSettings {
        interval_ms: options
            .duration("compaction.optimization-interval")?
            .map(|interval| i64::try_from(interval.as_millis()).unwrap_or(i64::MAX)),
        total_size_bytes: options.memory_size("compaction.total-size-threshold")?,
        incremental_size_bytes: options.memory_size("compaction.incremental-size-threshold")?,
    };
    let set = settings.interval_ms.is_some()
        || settings.total_size_bytes.is_some()
        || settings.incremental_size_bytes.is_some();
    Ok(set.then_some(settings))
}
