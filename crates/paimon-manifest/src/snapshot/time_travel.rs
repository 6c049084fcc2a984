//! Which snapshot a read wants.

use super::model::Snapshot;
use super::store::SnapshotStore;
use crate::error::{ManifestError, Result};

/// Which version of the table a batch read sees.
///
/// Source: `org.apache.paimon.table.source.snapshot.TimeTravelUtil`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TimeTravel {
    /// The latest snapshot.
    #[default]
    Latest,
    /// `scan.snapshot-id`
    SnapshotId(i64),
    /// `scan.tag-name`
    Tag(String),
    /// `scan.timestamp-millis`: the newest snapshot at or before it.
    TimestampMillis(i64),
    /// `scan.version`: a tag of this name, else a snapshot of this id.
    Version(String),
    /// `scan.mode = compacted-full`: the newest snapshot of a compaction (of a full one: a commit identifier that is a multiple of
    /// the number, or a batch job's), or the latest when there is none.
    Compacted(Option<i64>),
}

impl SnapshotStore {
    /// The snapshot that `travel` names. `None` only for [`TimeTravel::Latest`] and [`TimeTravel::Compacted`] on a table without
    /// snapshots.
    ///
    /// Errors: `NotFound` with the range of snapshots that are there; `Corrupt`.
    pub async fn travel(&self, travel: &TimeTravel) -> Result<Option<Snapshot>> {
        let snapshot = match travel {
            TimeTravel::Latest => return self.latest().await,
            TimeTravel::Compacted(commits) => return self.newest_compacted(*commits).await,
            TimeTravel::SnapshotId(id) => self.by_id(*id).await?,
            TimeTravel::Tag(name) => self.tag(name).await?.snapshot,
            TimeTravel::TimestampMillis(time_ms) => match self.at_or_before(*time_ms).await? {
                Some(snapshot) => snapshot,
                None => return Err(self.nothing_at(*time_ms).await?),
            },
            TimeTravel::Version(version) => match (self.find_tag(version).await?, version.parse()) {
                (Some(tag), _) => tag.snapshot,
                (None, Ok(id)) => self.by_id(id).await?,
                (None, Err(_)) => {
                    return Err(ManifestError::NotFound(format!(
                        "version {version} is neither a tag nor the id of a snapshot"
                    )));
                }
            },
        };
        Ok(Some(snapshot))
    }

    async fn by_id(&self, id: i64) -> Result<Snapshot> {
        if let Some(snapshot) = self.find(id).await? {
            return Ok(snapshot);
        }
        let range = match (self.earliest_id().await?, self.latest_id().await?) {
            (Some(earliest), Some(latest)) => format!("snapshots {earliest} to {latest} are there"),
            _ => "the table has no snapshot".to_string(),
        };
        Err(ManifestError::NotFound(format!(
            "snapshot {id} does not exist: {range}"
        )))
    }

    async fn nothing_at(&self, time_ms: i64) -> Result<ManifestError> {
        let message = match self.earliest().await? {
            Some(earliest) => format!(
                "no snapshot at or before {time_ms} ms: the earliest, {}, is of {} ms",
                earliest.id, earliest.time_millis
            ),
            None => format!("no snapshot at or before {time_ms} ms: the table has no snapshot"),
        };
        Ok(ManifestError::NotFound(message))
    }
}
