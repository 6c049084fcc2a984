//! Between which states changes are read when the caller does not say.

use paimon_format::FormatError;
use paimon_format::env::Clock;
use paimon_format::options::{OptionEnum, Options};
use paimon_manifest::scan::{FollowUp, ScanKind};

use super::travel::local_ms;
use crate::changelog::{Between, IncrementalMode};
use crate::error::Result;

impl OptionEnum for IncrementalMode {
    const VALUES: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("delta", Self::Delta),
        ("changelog", Self::Changelog),
        ("diff", Self::Diff),
    ];
}

/// From `incremental-between` or `incremental-between-timestamp`, with `incremental-between-scan-mode`; `None` when neither is set.
///
/// Errors: `Invalid`, naming the option; `Unsupported` for `incremental-to-auto-tag`.
///
/// Source: `org.apache.paimon.table.source.AbstractDataTableScan#createIncrementalStartingScanner`.
pub(crate) fn incremental_range(options: &Options, clock: &dyn Clock) -> Result<Option<(Between, IncrementalMode)>> {
    let mut mode = options
        .parse_enum("incremental-between-scan-mode")?
        .unwrap_or(IncrementalMode::Auto);
    if let Some(text) = options.string("incremental-between") {
        let (after, to) = pair(
            "incremental-between",
            &text,
            "two tags or two snapshot ids, such as '3,7'",
        )?;
        let to_snapshot = options.bool("incremental-between-tag-to-snapshot")?.unwrap_or(false);
        if to_snapshot && mode == IncrementalMode::Auto {
            mode = match FollowUp::from_options(options)?.scan_kind() {
                ScanKind::Changelog => IncrementalMode::Changelog,
                ScanKind::All | ScanKind::Delta => IncrementalMode::Delta,
            };
        }
        return Ok(Some((Between::Versions(after.to_owned(), to.to_owned()), mode)));
    }
    if let Some(text) = options.string("incremental-between-timestamp") {
        let key = "incremental-between-timestamp";
        let (after, to) = pair(
            key,
            &text,
            "two instants, in milliseconds or such as '2024-01-01 00:00:00'",
        )?;
        let instant = |text: &str| text.parse().or_else(|_| local_ms(key, text, clock));
        return Ok(Some((Between::Timestamps(instant(after)?, instant(to)?), mode)));
    }
    if options.string("incremental-to-auto-tag").is_some() {
        return Err(FormatError::unsupported(
            "option 'incremental-to-auto-tag': this engine makes no tags by itself; name two tags in 'incremental-between'",
        )
        .into());
    }
    Ok(None)
}

fn pair<'a>(key: &str, text: &'a str, expected: &str) -> Result<(&'a str, &'a str), FormatError> {
    match text.split(',').map(str::trim).collect::<Vec<_>>().as_slice() {
        [after, to] if !after.is_empty() && !to.is_empty() => Ok((after, to)),
        _ => Err(FormatError::invalid(format!(
            "option '{key}' = '{text}': expected {expected}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use paimon_format::env::TickingClock;

    use super::*;

    fn range(pairs: &[(&str, &str)]) -> Result<Option<(Between, IncrementalMode)>, String> {
        let options: Options = pairs.iter().copied().collect();
        incremental_range(&options, &TickingClock::new(0, 0)).map_err(|error| error.to_string())
    }

    #[test]
    fn options_say_between_which_states() {
        let versions = |mode| Ok(Some((Between::Versions("a".to_owned(), "b".to_owned()), mode)));
        assert_eq!(range(&[]), Ok(None));
        assert_eq!(
            range(&[("incremental-between", "a, b")]),
            versions(IncrementalMode::Auto)
        );
        let to_snapshot = ("incremental-between-tag-to-snapshot", "true");
        assert_eq!(
            range(&[("incremental-between", "a,b"), to_snapshot]),
            versions(IncrementalMode::Delta)
        );
        assert_eq!(
            range(&[
                ("incremental-between", "a,b"),
                to_snapshot,
                ("changelog-producer", "lookup")
            ]),
            versions(IncrementalMode::Changelog)
        );
        assert_eq!(
            range(&[
                ("incremental-between-timestamp", "5,1970-01-02"),
                ("incremental-between-scan-mode", "diff")
            ]),
            Ok(Some((Between::Timestamps(5, 86_400_000), IncrementalMode::Diff)))
        );
    }

    #[test]
    fn wrong_ranges_are_refused_by_name() {
        let errors = [
            &[("incremental-between", "1")][..],
            &[("incremental-between", "1,")],
            &[("incremental-between-timestamp", "1,noon")],
            &[("incremental-between", "1,2"), ("incremental-between-scan-mode", "all")],
            &[("incremental-to-auto-tag", "x")],
        ]
        .map(|pairs| range(pairs).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"));
    }
}
