//! How changes are read when the caller does not say.

use std::time::Duration;

use paimon_format::FormatError;
use paimon_format::env::Clock;
use paimon_format::options::Options;
use paimon_manifest::scan::StreamStart;
use paimon_manifest::snapshot::outlives_snapshots;

use super::travel::{INCREMENTAL, full_compaction_commits, scan_timestamp_ms};
use crate::error::Result;

/// `continuous.discovery-interval`.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);

/// How a stream of changes goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamSettings {
    /// `consumer-id`: where progress is noted.
    pub(crate) consumer: Option<String>,
    /// `consumer.ignore-progress`: start as if there were no progress.
    pub(crate) ignore_progress: bool,
    /// `continuous.discovery-interval`: the longest pause between two looks for a new snapshot.
    pub(crate) discovery_interval: Duration,
    /// `streaming.read.snapshot.delay`: how old a snapshot must be, milliseconds.
    pub(crate) delay_ms: i64,
    /// `scan.bounded.watermark`: the stream ends before the first snapshot with a later watermark.
    pub(crate) bounded_watermark: Option<i64>,
    /// `streaming-read-overwrite`: OVERWRITE snapshots are read as the rows that went and the rows that came.
    pub(crate) overwrites: bool,
    /// Long-lived changelogs are read in place of expired snapshots.
    pub(crate) changelogs: bool,
}

impl StreamSettings {
    /// From a table's options. Errors: `Invalid`, naming the option.
    pub(crate) fn from_options(options: &Options) -> Result<Self> {
        let delay = options.duration("streaming.read.snapshot.delay")?.unwrap_or_default();
        Ok(Self {
            consumer: options.string("consumer-id"),
            ignore_progress: options.bool("consumer.ignore-progress")?.unwrap_or(false),
            discovery_interval: options
                .duration("continuous.discovery-interval")?
                .unwrap_or(DISCOVERY_INTERVAL),
            delay_ms: i64::try_from(delay.as_millis()).unwrap_or(i64::MAX),
            bounded_watermark: options.long("scan.bounded.watermark")?,
            overwrites: options.bool("streaming-read-overwrite")?.unwrap_or(false),
            changelogs: outlives_snapshots(options)?,
        })
    }
}

/// Where a stream starts: `scan.mode`, or what the other `scan.…` options that are set ask for.
///
/// Errors: `Invalid`, naming the option: a mode without the option it needs, or one that streams do not have.
///
/// Source: `org.apache.paimon.CoreOptions#startupMode`, `AbstractDataTableScan#createStartingScanner`.
pub(crate) fn stream_start(options: &Options, clock: &dyn Clock) -> Result<StreamStart, FormatError> {
    let timestamp = scan_timestamp_ms(options, clock)?;
    let is_set = |key: &str| options.lookup(key).is_some();
    let mode = match options.string("scan.mode").map(|mode| mode.to_ascii_lowercase()) {
        Some(mode) if mode != "default" => mode,
        _ if timestamp.is_some() => "from-timestamp".to_owned(),
        _ if ["scan.snapshot-id", "scan.tag-name", "scan.version"]
            .into_iter()
            .any(is_set) =>
        {
            "from-snapshot".to_owned()
        }
        _ if INCREMENTAL.into_iter().any(is_set) => "incremental".to_owned(),
        _ => "latest-full".to_owned(),
    };
    let needs = |key: &str| FormatError::invalid(format!("option 'scan.mode' = '{mode}': needs option '{key}'"));
    match mode.as_str() {
        "latest-full" | "full" => Ok(StreamStart::LatestFull),
        "latest" => Ok(StreamStart::Latest),
        "compacted-full" => Ok(StreamStart::CompactedFull(full_compaction_commits(options)?)),
        "from-timestamp" => match timestamp {
            Some((_, time_ms)) => Ok(StreamStart::FromTimestamp(time_ms)),
            None => Err(needs("scan.timestamp-millis' or 'scan.timestamp")),
        },
        "from-snapshot" => Ok(StreamStart::FromSnapshot(
            snapshot_id(options)?.ok_or_else(|| needs("scan.snapshot-id"))?,
        )),
        "from-snapshot-full" => Ok(StreamStart::FromSnapshotFull(
            options
                .long("scan.snapshot-id")?
                .ok_or_else(|| needs("scan.snapshot-id"))?,
        )),
        _ => Err(FormatError::invalid(format!(
            "option 'scan.mode' = '{mode}': a stream of changes starts by one of latest-full, latest, compacted-full, from-timestamp, from-snapshot, from-snapshot-full"
        ))),
    }
}

/// `scan.snapshot-id`, or `scan.version` where it is a number.
fn snapshot_id(options: &Options) -> Result<Option<i64>, FormatError> {
    if let Some(id) = options.long("scan.snapshot-id")? {
        return Ok(Some(id));
    }
    for key in ["scan.tag-name", "scan.version"] {
        if let Some(name) = options.string(key) {
            return match name.parse() {
                Ok(id) if key == "scan.version" => Ok(Some(id)),
                _ => Err(FormatError::invalid(format!(
                    "option '{key}' = '{name}': a stream of changes does not start from a tag; set 'scan.snapshot-id'"
                ))),
            };
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use paimon_format::env::TickingClock;

    use super::*;

    fn start(pairs: &[(&str, &str)]) -> Result<StreamStart, String> {
        let options: Options = pairs.iter().copied().collect();
        stream_start(&options, &TickingClock::new(0, 0)).map_err(|error| error.to_string())
    }

    #[test]
    fn options_say_where_a_stream_starts() {
        for (pairs, expected) in [
            (&[][..], StreamStart::LatestFull),
            (&[("scan.mode", "full")], StreamStart::LatestFull),
            (&[("scan.mode", "LATEST")], StreamStart::Latest),
            (&[("scan.mode", "compacted-full")], StreamStart::CompactedFull(None)),
            (
                &[
                    ("scan.mode", "compacted-full"),
                    ("changelog-producer", "full-compaction"),
                ],
                StreamStart::CompactedFull(Some(1)),
            ),
            (&[("scan.snapshot-id", "4")], StreamStart::FromSnapshot(4)),
            (&[("scan.version", "5")], StreamStart::FromSnapshot(5)),
            (
                &[("scan.mode", "from-snapshot-full"), ("scan.snapshot-id", "4")],
                StreamStart::FromSnapshotFull(4),
            ),
            (&[("scan.timestamp-millis", "7")], StreamStart::FromTimestamp(7)),
            (
                &[("scan.timestamp", "1970-01-02")],
                StreamStart::FromTimestamp(86_400_000),
            ),
        ] {
            assert_eq!(start(pairs), Ok(expected), "{pairs:?}");
        }
    }

    #[test]
    fn what_a_stream_cannot_do_is_refused_by_name() {
        let errors = [
            &[("scan.mode", "from-timestamp")][..],
            &[("scan.mode", "from-snapshot-full")],
            &[("scan.tag-name", "noon")],
            &[("scan.version", "noon")],
            &[("scan.mode", "from-snapshot"), ("scan.tag-name", "7")],
            &[("incremental-between", "1,2")],
        ]
        .map(|pairs| start(pairs).unwrap_err());
        insta::assert_snapshot!(errors.join("\n"));
    }
}
