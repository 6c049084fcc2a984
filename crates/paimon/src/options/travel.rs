//! Which snapshot a read sees when the caller does not say.

use paimon_format::FormatError;
use paimon_format::options::Options;
use paimon_manifest::snapshot::TimeTravel;

/// From `scan.snapshot-id`, `scan.tag-name`, `scan.timestamp-millis`, `scan.version`.
///
/// Errors: `Invalid` when more than one of them is set.
///
/// Source: `org.apache.paimon.table.source.snapshot.TimeTravelUtil`.
pub(crate) fn time_travel(options: &Options) -> Result<TimeTravel, FormatError> {
    let mut found = Vec::new();
    if let Some(id) = options.long("scan.snapshot-id")? {
        found.push(("scan.snapshot-id", TimeTravel::SnapshotId(id)));
    }
    if let Some(name) = options.string("scan.tag-name") {
        found.push(("scan.tag-name", TimeTravel::Tag(name)));
    }
    if let Some(time_ms) = options.long("scan.timestamp-millis")? {
        found.push(("scan.timestamp-millis", TimeTravel::TimestampMillis(time_ms)));
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
