//! What changed between two states.

use futures::{StreamExt, TryStreamExt, stream};
use paimon_manifest::scan::{FollowUp, ScanKind};
use paimon_manifest::snapshot::{CommitKind, Snapshot};

use super::read::ChangesReader;
use super::stream::ChangelogStream;
use super::{ChangelogBatch, StreamPosition, diff};
use crate::error::{Error, Result};

/// Two states of a table: changes after the first (exclusive) up to the second (inclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Between {
    /// Two tags, or two snapshot ids as text: `incremental-between`.
    Versions(String, String),
    /// Two instants, milliseconds since the epoch: `incremental-between-timestamp`.
    Timestamps(i64, i64),
}

impl Between {
    /// Two snapshot ids.
    pub fn snapshots(after: i64, to: i64) -> Self {
        Self::Versions(after.to_string(), to.to_string())
    }
}

/// How changes between two states are found: `incremental-between-scan-mode`.
///
/// Source: `org.apache.paimon.CoreOptions.IncrementalBetweenScanMode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncrementalMode {
    /// Two tags by [`Diff`](Self::Diff), others by [`Changelog`](Self::Changelog) where the table has a changelog producer, else by
    /// [`Delta`](Self::Delta).
    #[default]
    Auto,
    /// The rows of new files of APPEND snapshots, as written.
    Delta,
    /// The changelog of all snapshots but OVERWRITE ones.
    Changelog,
    /// Both states, compared row by row: a new row as `+I`, one that is another now as `+U`, one that is gone as `-D`. The positions
    /// of these batches are all that behind the second state. Rows that tables of lookup changelogs or deletion vectors hide in level 0 are in neither state.
    Diff,
}

/// States found in the table.
struct Found {
    after: i64,
    to: Snapshot,
    /// Two tags: the first one's snapshot, which may have expired otherwise.
    tagged: Option<Snapshot>,
}

/// Reads the changes. See [`ChangelogBuilder::read_between`](super::ChangelogBuilder::read_between).
pub(super) fn read(reader: ChangesReader, between: Between, mode: IncrementalMode) -> ChangelogStream {
    stream::once(async move { open(reader, between, mode).await })
        .try_flatten()
        .boxed()
}

async fn open(reader: ChangesReader, between: Between, mode: IncrementalMode) -> Result<ChangelogStream> {
    let Some(found) = reader.find(&between).await? else {
        return Ok(stream::empty().boxed());
    };
    let kind = match mode {
        IncrementalMode::Delta => ScanKind::Delta,
        IncrementalMode::Changelog => ScanKind::Changelog,
        IncrementalMode::Auto if found.tagged.is_none() => reader.follow_up.scan_kind(),
        IncrementalMode::Auto | IncrementalMode::Diff => {
            let before = match found.tagged {
                Some(tagged) => Some(tagged),
                None => reader.state_before(&found).await?,
            };
            return diff::read(reader, before, found.to).await;
        }
    };
    reader.check_range(&found).await?;
    let ids = stream::iter(found.after + 1..=found.to.id);
    let changes = ids.then(move |id| {
        let reader = reader.clone();
        async move { reader.changes_of(id, kind).await }
    });
    Ok(changes.try_flatten().boxed())
}

impl ChangesReader {
    /// The changes that one snapshot made.
    async fn changes_of(&self, id: i64, kind: ScanKind) -> Result<ChangelogStream> {
        let snapshot = self.table().snapshot_store().get(id).await?;
        let wanted = match kind {
            ScanKind::Changelog => snapshot.commit_kind != CommitKind::Overwrite,
            ScanKind::All | ScanKind::Delta => FollowUp::Delta.reads(&snapshot),
        };
        if !wanted {
            return Ok(stream::empty().boxed());
        }
        let plan = self.plan_changes(&snapshot, kind).await?;
        let mut position = StreamPosition::changes_of(id);
        let rows = self.rows(plan, &position);
        Ok(rows
            .map_ok(move |rows| {
                position.advance(rows.split, rows.kinds.len());
                ChangelogBatch::new(position, rows)
            })
            .boxed())
    }

    /// The first of the two states; `None` when it is that before the first snapshot.
    async fn state_before(&self, found: &Found) -> Result<Option<Snapshot>> {
        match self.table().snapshot_store().find(found.after).await? {
            None if found.after != 0 => Err(self.out_of_range(found.after, found.to.id).await?),
            state => Ok(state),
        }
    }

    /// `None`: nothing can have changed.
    async fn find(&self, between: &Between) -> Result<Option<Found>> {
        let store = self.table().snapshot_store();
        match between {
            Between::Versions(after, to) => {
                let tags = (store.find_tag(after).await?, store.find_tag(to).await?);
                if let (Some(after_tag), Some(to_tag)) = tags {
                    let (first, last) = (after_tag.snapshot, to_tag.snapshot);
                    in_order(
                        &format!("tag {after} (snapshot {})", first.id),
                        &format!("tag {to} (snapshot {})", last.id),
                        first.id <= last.id,
                    )?;
                    return Ok((first.id < last.id).then_some(Found {
                        after: first.id,
                        to: last,
                        tagged: Some(first),
                    }));
                }
                let (Ok(first), Ok(last)) = (after.parse::<i64>(), to.parse::<i64>()) else {
                    return Err(Error::not_found(format!(
                        "changes between {after} and {to}: these are neither two tags nor the ids of two snapshots"
                    )));
                };
                in_order(&format!("snapshot {first}"), &format!("snapshot {last}"), first <= last)?;
                if first == last || store.latest_id().await?.is_none() {
                    return Ok(None);
                }
                match store.find(last).await? {
                    Some(to) => Ok(Some(Found {
                        after: first,
                        to,
                        tagged: None,
                    })),
                    None => Err(self.out_of_range(first, last).await?),
                }
            }
            Between::Timestamps(after, to) => {
                in_order(&format!("{after} ms"), &format!("{to} ms"), after <= to)?;
                let (Some(earliest), Some(latest)) = (store.earliest().await?, store.latest().await?) else {
                    return Ok(None);
                };
                if after == to || *after > latest.time_millis || *to < earliest.time_millis {
                    return Ok(None);
                }
                let first = store.at_or_before(*after).await?;
                let last = store.at_or_before(*to).await?.unwrap_or(latest);
                Ok(Some(Found {
                    after: first.map_or(earliest.id - 1, |first| first.id),
                    to: last,
                    tagged: None,
                }))
            }
        }
    }

    /// All snapshots whose changes are read must be there.
    async fn check_range(&self, found: &Found) -> Result<()> {
        let earliest = self.table().snapshot_store().earliest_id().await?;
        match earliest {
            Some(earliest) if found.after + 1 >= earliest => Ok(()),
            _ => Err(self.out_of_range(found.after, found.to.id).await?),
        }
    }

    async fn out_of_range(&self, after: i64, to: i64) -> Result<Error> {
        let store = self.table().snapshot_store();
        let range = match (store.earliest_id().await?, store.latest_id().await?) {
            (Some(earliest), Some(latest)) => format!("snapshots {earliest} to {latest} are there"),
            _ => "the table has no snapshot".to_owned(),
        };
        Ok(Error::not_found(format!(
            "the changes after snapshot {after} up to {to} are not all there: {range}"
        )))
    }
}

fn in_order(after: &str, to: &str, is_in_order: bool) -> Result<()> {
    match is_in_order {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "changes between {after} and {to}: the first must not be later than the second"
        ))),
    }
}
