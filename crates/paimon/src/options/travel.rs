//! Which snapshot a read sees when the caller does not say.

use paimon_format::FormatError;
use paimon_format::env::Clock;
use paimon_format::options::Options;
use paimon_format::types::{DataType, Datum, TypeKind};
use paimon_manifest::snapshot::TimeTravel;

use super::changelog::delta_commits;

/// Options of reads of changes between two states.
pub(super) const INCREMENTAL: [&str; 3] = [
    "incremental-between",
    "incremental-between-timestamp",
    "incremental-to-auto-tag",
];

/// From `scan.snapshot-id`, `scan.tag-name`, `scan.timestamp-millis`, `scan.timestamp`, `scan.version`, and `scan.mode` where it
/// names a snapshot by itself.
///
/// Errors: `Invalid` when more than one of them is set, or for a read of changes.
///
/// Source: `org.apache.paimon.table.source.snapshot.TimeTravelUtil`.
pub(crate) fn time_travel(options: &Options, clock: &dyn Clock) -> Result<TimeTravel, FormatError> {
    let mode = options.string("scan.mode").map(|mode| mode.to_ascii_lowercase());
    if let Some(key) = INCREMENTAL.iter().find(|key| options.get(key).is_some()) {
        return Err(FormatError::invalid(format!(
            "option '{key}': a read of changes is no read of rows; use a changelog builder"
        )));
    }
    if mode.as_deref() == Some("incremental") {
        return Err(FormatError::invalid(
            "option 'scan.mode' = 'incremental': needs 'incremental-between' or 'incremental-between-timestamp', and a changelog builder",
        ));
    }
    let mut found = Vec::new();
    if mode.as_deref() == Some("compacted-full") {
        found.push(("scan.mode", TimeTravel::Compacted(full_compaction_commits(options)?)));
    }
    if let Some(id) = options.long("scan.snapshot-id")? {
        found.push(("scan.snapshot-id", TimeTravel::SnapshotId(id)));
    }
    if let Some(name) = options.string("scan.tag-name") {
        found.push(("scan.tag-name", TimeTravel::Tag(name)));
    }
    if let Some((key, time_ms)) = scan_timestamp_ms(options, clock)? {
        found.push((key, TimeTravel::TimestampMillis(time_ms)));
    }
    if let Some(version) = options.string("scan.version") {
        found.push(("scan.version", TimeTravel::Version(version)));
    }
    match found.as_slice() {
        [] => Ok(TimeTravel::Latest),
        [(_, travel)] => Ok(travel.clone()),
        several => {
            let keys: Vec<&str> = several.iter().map(|(key, _)| *key).collect();
            Err(FormatError::invalid(format!(
                "options {} name different snapshots: set one of them",
                keys.join(" and ")
            )))
        }
    }
}

/// The option that names an instant, `scan.timestamp-millis` before `scan.timestamp`, with milliseconds since the epoch.
pub(super) fn scan_timestamp_ms(
    options: &Options,
    clock: &dyn Clock,
) -> Result<Option<(&'static str, i64)>, FormatError> {
    if let Some(time_ms) = options.long("scan.timestamp-millis")? {
        return Ok(Some(("scan.timestamp-millis", time_ms)));
    }
    let Some(text) = options.string("scan.timestamp") else {
        return Ok(None);
    };
    Ok(Some(("scan.timestamp", local_ms("scan.timestamp", &text, clock)?)))
}

/// A local time as text (`2024-01-01 12:30:00.123`), as milliseconds since the epoch.
pub(super) fn local_ms(key: &str, text: &str, clock: &dyn Clock) -> Result<i64, FormatError> {
    let timestamp = DataType::nullable(TypeKind::Timestamp(3));
    match Datum::parse(text.trim(), &timestamp) {
        Ok(Datum::Timestamp { millis, .. }) => {
            // The offset at that very instant, as far as one look ahead can tell.
            let about = millis - clock.local_offset_ms(millis);
            Ok(millis - clock.local_offset_ms(about))
        }
        _ => Err(FormatError::invalid(format!(
            "option '{key}' = '{text}': expected a local time such as '2024-01-01 12:30:00'"
        ))),
    }
}

/// Which compactions `compacted-full` takes for full ones: all where the table does not count commits.
pub(super) fn full_compaction_commits(options: &Options) -> Result<Option<i64>, FormatError> {
    let commits = delta_commits(options)?;
    let producer = options.string("changelog-producer").unwrap_or_default();
    Ok(match commits {
        None if producer.eq_ignore_ascii_case("full-compaction") => Some(1),
        commits => commits.map(i64::from),
    })
}

#[cfg(test)]
mod tests {
    use paimon_format::env::TickingClock;

    use super::*;

    fn travel(pairs: &[(&str, &str)]) -> Result<TimeTravel, String> {
        let options: Options = pairs.iter().copied().collect();
        let clock = TickingClock::new(0, 0).with_offset_ms(3_600_000);
        time_travel(&options, &clock).map_err(|error| error.to_string())
    }

    #[test]
    fn one_option_names_the_snapshot() {
        assert_eq!(travel(&[]), Ok(TimeTravel::Latest));
        assert_eq!(travel(&[("scan.mode", "latest-full")]), Ok(TimeTravel::Latest));
        assert_eq!(
            travel(&[("scan.mode", "compacted-full")]),
            Ok(TimeTravel::Compacted(None))
        );
        assert_eq!(
            travel(&[("scan.mode", "compacted-full"), ("full-compaction.delta-commits", "3")]),
            Ok(TimeTravel::Compacted(Some(3)))
        );
        assert_eq!(travel(&[("scan.snapshot-id", "3")]), Ok(TimeTravel::SnapshotId(3)));
        assert_eq!(
            travel(&[("scan.timestamp", "1970-01-01 02:00:00.5")]),
            Ok(TimeTravel::TimestampMillis(3_600_500))
        );
        assert_eq!(
            travel(&[("scan.snapshot-id", "3"), ("scan.tag-name", "x")]).unwrap_err(),
            "options scan.snapshot-id and scan.tag-name name different snapshots: set one of them"
        );
        assert_eq!(
            travel(&[("incremental-between", "1,2")]).unwrap_err(),
            "option 'incremental-between': a read of changes is no read of rows; use a changelog builder"
        );
        assert_eq!(
            travel(&[("scan.timestamp", "noon")]).unwrap_err(),
            "option 'scan.timestamp' = 'noon': expected a local time such as '2024-01-01 12:30:00'"
        );
    }
}
