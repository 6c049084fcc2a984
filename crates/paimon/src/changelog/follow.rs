//! What a stream does at a position.

use futures::stream::BoxStream;
use paimon_format::ErrorKind;
use paimon_manifest::scan::{Starting, StreamStart};
use paimon_manifest::snapshot::{CommitKind, Consumer, Snapshot, SnapshotStore};

use super::StreamPosition;
use super::read::{ChangesReader, SplitRows};
use crate::error::{Error, Result};
use crate::options::StreamSettings;
use crate::table::Table;

/// Looks at snapshots for a stream; knows nothing of where the stream is.
pub(super) struct Follower {
    pub(super) reader: ChangesReader,
    pub(super) settings: StreamSettings,
}

/// Where a stream is.
pub(super) enum State {
    /// Nothing is decided: the table had no snapshot yet.
    Starting(StreamStart),
    /// The snapshot of this position is to be looked at.
    At(StreamPosition),
    /// Rows of a snapshot are being read.
    Reading(Reading),
    /// The bound is reached.
    Ended(StreamPosition),
}

/// A snapshot whose rows are being read.
pub(super) struct Reading {
    /// After the rows that were given.
    pub(super) position: StreamPosition,
    pub(super) rows: BoxStream<'static, Result<SplitRows>>,
    /// The stream ends with this snapshot.
    pub(super) last: bool,
}

impl Follower {
    pub(super) fn table(&self) -> &Table {
        self.reader.table()
    }

    fn store(&self) -> &SnapshotStore {
        self.table().snapshot_store()
    }

    /// See [`TableStream::commit`](super::TableStream::commit).
    pub(super) async fn commit(&self, position: &StreamPosition) -> Result<bool> {
        let Some(id) = &self.settings.consumer else {
            return Err(Error::invalid(
                "the progress of a stream can be noted only for a consumer: set 'consumer-id'",
            ));
        };
        let Some(next_snapshot) = position.next_snapshot() else {
            return Ok(false);
        };
        self.table().consumers().put(id, Consumer { next_snapshot }).await?;
        Ok(true)
    }

    /// What comes first; `None` while the table has no snapshot to decide it by.
    pub(super) async fn starting_point(&self, start: &StreamStart) -> Result<Option<State>> {
        let next = match self.store().start(start, self.settings.changelogs).await? {
            None => return Ok(None),
            Some(Starting::Full(snapshot)) => {
                let position = StreamPosition::rows_of(snapshot.id);
                return self.read_rows(&snapshot, position).await.map(Some);
            }
            Some(Starting::Follow(next)) => next,
        };
        let position = StreamPosition::changes_of(next);
        // The bound may be behind already, though the next snapshot is yet to come.
        let reached = match self.settings.bounded_watermark {
            None => false,
            Some(_) => self
                .store()
                .find(next - 1)
                .await?
                .is_some_and(|before| self.is_bound(&before)),
        };
        Ok(Some(match reached {
            true => State::Ended(position),
            false => State::At(position),
        }))
    }

    /// What comes at a position; `None`: its snapshot is yet to come.
    pub(super) async fn look_at(&self, position: StreamPosition) -> Result<Option<State>> {
        if position.full {
            return match self.store().find(position.snapshot).await? {
                Some(snapshot) => self.read_rows(&snapshot, position).await.map(Some),
                None => Err(self.expired(position.snapshot).await?),
            };
        }
        let Some(snapshot) = self.next_snapshot(position.snapshot).await? else {
            return Ok(None);
        };
        let now_ms = self.table().context().env().clock.now_ms();
        if self.settings.delay_ms > 0 && snapshot.time_millis > now_ms.saturating_sub(self.settings.delay_ms) {
            return Ok(None);
        }
        if self.is_bound(&snapshot) {
            return Ok(Some(State::Ended(position)));
        }
        let plan = if self.settings.overwrites && snapshot.commit_kind == CommitKind::Overwrite {
            self.reader.plan_overwrite(&snapshot).await
        } else if self.reader.follow_up.reads(&snapshot) {
            let kind = self.reader.follow_up.scan_kind();
            self.reader.plan_changes(&snapshot, kind).await
        } else {
            Ok(Vec::new())
        };
        let plan = match plan {
            Ok(plan) if plan.is_empty() => {
                return Ok(Some(State::At(StreamPosition::changes_of(position.snapshot + 1))));
            }
            Ok(plan) => plan,
            Err(error) => return Err(self.explained(error, snapshot.id).await),
        };
        Ok(Some(State::Reading(Reading {
            rows: self.reader.rows(plan, &position),
            position,
            last: false,
        })))
    }

    async fn read_rows(&self, snapshot: &Snapshot, position: StreamPosition) -> Result<State> {
        let plan = match self.reader.plan_rows(snapshot).await {
            Ok(plan) => plan,
            Err(error) => return Err(self.explained(error, snapshot.id).await),
        };
        Ok(State::Reading(Reading {
            rows: self.reader.rows(plan, &position),
            position,
            last: self.is_bound(snapshot),
        }))
    }

    /// The snapshot of this id, or the long-lived changelog that is left of it; `None` when it is yet to come.
    async fn next_snapshot(&self, id: i64) -> Result<Option<Snapshot>> {
        let store = self.store();
        if let Some(snapshot) = store.find_readable(id, self.settings.changelogs).await? {
            return Ok(Some(snapshot));
        }
        let latest = store.latest_id().await?.unwrap_or(0);
        if latest >= id {
            // It came between the two looks, or it is gone.
            return match store.find_readable(id, self.settings.changelogs).await? {
                Some(snapshot) => Ok(Some(snapshot)),
                None => Err(self.expired(id).await?),
            };
        }
        if latest + 1 < id {
            return Err(Error::invalid(format!(
                "this read wants snapshot {id} next, but {}: was the table rolled back or made anew? Start again",
                match latest {
                    0 => "there is none".to_owned(),
                    latest => format!("the latest is {latest}"),
                }
            )));
        }
        Ok(None)
    }

    fn is_bound(&self, snapshot: &Snapshot) -> bool {
        let bound = self.settings.bounded_watermark;
        matches!((snapshot.watermark, bound), (Some(watermark), Some(bound)) if watermark > bound)
    }

    /// What a failed read comes down to: a file that is not there any more, because its snapshot has expired.
    pub(super) async fn explained(&self, error: Error, snapshot: i64) -> Error {
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        match self.store().find_readable(snapshot, self.settings.changelogs).await {
            Ok(None) => self.expired(snapshot).await.unwrap_or(error),
            _ => error,
        }
    }

    async fn expired(&self, snapshot: i64) -> Result<Error> {
        let store = self.store();
        let earliest = store.earliest_readable_id(self.settings.changelogs).await?;
        let (there, again) = match (earliest, store.latest_id().await?) {
            (Some(earliest), Some(latest)) => (
                format!("snapshots {earliest} to {latest} are there"),
                format!("continue from the earliest (scan.mode = from-snapshot, scan.snapshot-id = {earliest}), or "),
            ),
            _ => ("there is none".to_owned(), String::new()),
        };
        Ok(Error::not_found(format!(
            "snapshot {snapshot}, which this read wants next, has expired: {there}. Changes in between are lost to it; {again}start \
             again with all rows (latest-full). To keep snapshots for slow readers set consumer-id, or raise snapshot.time-retained \
             or changelog.time-retained"
        )))
    }
}
