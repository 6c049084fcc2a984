//! Where a streaming reader starts.

use std::fmt;

use crate::error::Result;
use crate::snapshot::{CommitKind, Snapshot, SnapshotStore};

/// Where a streaming reader starts: `scan.mode`.
///
/// Source: `org.apache.paimon.table.source.AbstractDataTableScan#createStartingScanner`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StreamStart {
    /// All rows of the latest snapshot, then changes: `latest-full`, `full`.
    #[default]
    LatestFull,
    /// Changes after the latest snapshot: `latest`.
    Latest,
    /// All rows of the newest compacted snapshot, or of the latest when there is none; then changes: `compacted-full`.
    ///
    /// With a number of commits, only a full compaction counts: one whose commit identifier is a multiple of it, or a batch job's.
    CompactedFull(Option<i64>),
    /// Changes from this snapshot on, or from the earliest when this one has expired: `from-snapshot`.
    FromSnapshot(i64),
    /// All rows of this snapshot, or of the earliest when this one has expired; then changes: `from-snapshot-full`.
    FromSnapshotFull(i64),
    /// Changes of snapshots at or after an instant, milliseconds since the epoch: `from-timestamp`.
    FromTimestamp(i64),
}

/// What a streaming reader does first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Starting {
    /// Reads all rows of this snapshot, then follows from the one after it.
    Full(Box<Snapshot>),
    /// Follows from this snapshot on, which may be yet to come.
    Follow(i64),
}

impl StreamStart {
    /// Changes from the earliest snapshot on.
    pub fn earliest() -> Self {
        Self::FromSnapshot(0)
    }
}

impl fmt::Display for StreamStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LatestFull => f.write_str("latest-full"),
            Self::Latest => f.write_str("latest"),
            Self::CompactedFull(_) => f.write_str("compacted-full"),
            Self::FromSnapshot(id) => write!(f, "from-snapshot {id}"),
            Self::FromSnapshotFull(id) => write!(f, "from-snapshot-full {id}"),
            Self::FromTimestamp(ms) => write!(f, "from-timestamp {ms}"),
        }
    }
}

impl SnapshotStore {
    /// Where a reader starts; `None` while the table has no snapshot to decide it by. `changelogs`: long-lived changelogs are read
    /// too, see [`outlives_snapshots`](crate::snapshot::outlives_snapshots).
    ///
    /// Cost: a few small reads; a read a snapshot from the latest down for [`StreamStart::CompactedFull`]; log2 of their number for
    /// [`StreamStart::FromTimestamp`]. Errors: `NotFound` when snapshots expire again and again meanwhile; `Corrupt`.
    pub async fn start(&self, start: &StreamStart, changelogs: bool) -> Result<Option<Starting>> {
        let full = |snapshot: Option<Snapshot>| snapshot.map(|snapshot| Starting::Full(Box::new(snapshot)));
        match start {
            StreamStart::LatestFull => Ok(full(self.latest().await?)),
            // Of a table that is empty now, everything is to come.
            StreamStart::Latest => Ok(Some(Starting::Follow(self.latest_id().await?.unwrap_or(0) + 1))),
            StreamStart::CompactedFull(commits) => Ok(full(self.newest_compacted(*commits).await?)),
            StreamStart::FromSnapshot(id) => {
                let earliest = self.earliest_readable_id(changelogs).await?;
                Ok(earliest.map(|earliest| Starting::Follow(earliest.max(*id))))
            }
            StreamStart::FromSnapshotFull(id) => match self.find(*id).await? {
                Some(snapshot) => Ok(full(Some(snapshot))),
                None => match self.earliest().await? {
                    // Its rows are there once it is.
                    Some(earliest) if earliest.id < *id => Ok(full(Some(self.get(*id).await?))),
                    earliest => Ok(full(earliest)),
                },
            },
            StreamStart::FromTimestamp(time_ms) => {
                let first = self.first_at_or_after(*time_ms, changelogs).await?;
                Ok(first.map(Starting::Follow))
            }
        }
    }

    /// A snapshot that streaming readers can still read: the snapshot itself, or (if `changelogs`) the long-lived changelog that is
    /// left of it.
    pub async fn find_readable(&self, id: i64, changelogs: bool) -> Result<Option<Snapshot>> {
        match self.find(id).await? {
            None if changelogs => self.find_changelog(id).await,
            found => Ok(found),
        }
    }

    /// The earliest id of [`find_readable`](Self::find_readable); `None` when there is no snapshot.
    pub async fn earliest_readable_id(&self, changelogs: bool) -> Result<Option<i64>> {
        let snapshot = self.earliest_id().await?;
        match (snapshot, changelogs) {
            (Some(snapshot), true) => Ok(self
                .earliest_changelog_id()
                .await?
                .map_or(Some(snapshot), |changelog| Some(changelog.min(snapshot)))),
            _ => Ok(snapshot),
        }
    }

    /// The newest snapshot of a compaction, or the latest. Snapshots that expire meanwhile do not count.
    ///
    /// Source: `CompactedStartingScanner`, `FullCompactedStartingScanner`.
    pub async fn newest_compacted(&self, commits: Option<i64>) -> Result<Option<Snapshot>> {
        let latest = self.latest().await?;
        let is_wanted = |snapshot: &Snapshot| {
            let identifier = snapshot.commit_identifier;
            let is_full = |commits: i64| identifier == i64::MAX || identifier.checked_rem(commits) == Some(0);
            snapshot.commit_kind == CommitKind::Compact && commits.is_none_or(is_full)
        };
        let (Some(first), Some(earliest)) = (&latest, self.earliest_id().await?) else {
            return Ok(latest);
        };
        for id in (earliest..=first.id).rev() {
            if let Some(snapshot) = self.find(id).await?.filter(is_wanted) {
                return Ok(Some(snapshot));
            }
        }
        Ok(latest)
    }

    /// The id of the first snapshot committed at or after an instant; the one to come when all are earlier. `None`: there is no
    /// snapshot.
    ///
    /// Source: `TimeTravelUtil#earlierThanTimeMills`, plus one.
    async fn first_at_or_after(&self, time_ms: i64, changelogs: bool) -> Result<Option<i64>> {
        let (Some(latest), Some(earliest)) = (self.latest_id().await?, self.earliest_readable_id(changelogs).await?)
        else {
            return Ok(None);
        };
        // All before `low` are earlier, `high` and all after it are not.
        let (mut low, mut high) = (earliest, latest + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.find_readable(middle, changelogs).await? {
                Some(snapshot) if snapshot.time_millis >= time_ms => high = middle,
                // It was earlier, or it expired meanwhile.
                _ => low = middle + 1,
            }
        }
        Ok(Some(low))
    }
}
