//! A stream that follows a table.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use paimon_manifest::scan::StreamStart;

use super::follow::{Follower, State};
use super::{ChangelogBatch, StreamPosition};
use crate::error::Result;

/// Batches of changes, in the order of snapshots.
pub type ChangelogStream = BoxStream<'static, Result<ChangelogBatch>>;

/// The first pause is this part of the longest.
const FIRST_PAUSE: u32 = 16;

/// The changes of a table, snapshot by snapshot: first the rows that are there when the start asks for them, then what changes.
///
/// Within a snapshot the changes of one key come in their order. A snapshot without changes (a compaction, an empty commit) gives
/// nothing; [`position`](Self::position) moves on all the same.
///
/// All methods may be dropped at any await: nothing is lost, the next call goes on. After an error the stream stands where it
/// stood before; the call may be repeated.
///
/// Source: `org.apache.paimon.table.source.DataTableStreamScan`.
pub struct TableStream {
    follower: Follower,
    state: State,
    pause: Duration,
}

impl TableStream {
    /// A stream that goes on from a position, or begins at the start when there is none.
    pub(super) fn new(follower: Follower, start: StreamStart, position: Option<StreamPosition>) -> Self {
        let mut stream = Self {
            follower,
            state: position.map_or(State::Starting(start), State::At),
            pause: Duration::ZERO,
        };
        stream.reset_pause();
        stream
    }

    /// Where a reader that has all rows so far goes on; `None`: nothing is decided, as the table had no snapshot yet.
    pub fn position(&self) -> Option<StreamPosition> {
        match &self.state {
            State::Starting(_) => None,
            State::At(position) | State::Ended(position) => Some(*position),
            State::Reading(reading) => Some(reading.position),
        }
    }

    /// Whether the bound (`scan.bounded.watermark`) is reached: no more rows will come.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended(_))
    }

    /// The next changes that are there now. `None`: the stream has caught up with the table, or has ended.
    ///
    /// Errors: `NotFound` when a snapshot that was to be read next has expired, with what can be done; `Invalid` when the table went
    /// back behind it; `Corrupt`, `Unsupported`, `Unavailable`, naming the file.
    pub async fn next_available(&mut self) -> Result<Option<ChangelogBatch>> {
        loop {
            match &mut self.state {
                State::Ended(_) => return Ok(None),
                State::Starting(start) => {
                    let start = start.clone();
                    match self.follower.starting_point(&start).await? {
                        Some(state) => self.state = state,
                        None => return Ok(None),
                    }
                }
                State::At(position) => {
                    let position = *position;
                    match self.follower.look_at(position).await? {
                        Some(state) => {
                            self.reset_pause();
                            self.state = state;
                        }
                        None => return Ok(None),
                    }
                }
                State::Reading(reading) => match reading.rows.next().await {
                    Some(Ok(rows)) => {
                        reading.position.advance(rows.split, rows.kinds.len());
                        return Ok(Some(ChangelogBatch::new(reading.position, rows)));
                    }
                    Some(Err(error)) => {
                        let position = reading.position;
                        self.state = State::At(position);
                        return Err(self.follower.explained(error, position.snapshot).await);
                    }
                    None => {
                        let next = StreamPosition::changes_of(reading.position.snapshot + 1);
                        self.state = match reading.last {
                            true => State::Ended(next),
                            false => State::At(next),
                        };
                    }
                },
            }
        }
    }

    /// The next changes; waits for them. `None`: the stream has ended. Errors: as [`next_available`](Self::next_available).
    pub async fn next(&mut self) -> Result<Option<ChangelogBatch>> {
        loop {
            match self.next_available().await? {
                None if !self.has_ended() => self.wait().await,
                found => return Ok(found),
            }
        }
    }

    /// Pauses before the next look for a snapshot: shortly after news, then twice as long each time up to the discovery interval.
    pub async fn wait(&mut self) {
        let runtime = Arc::clone(&self.follower.table().context().env().runtime);
        runtime.sleep(self.pause).await;
        self.pause = self
            .pause
            .saturating_mul(2)
            .min(self.follower.settings.discovery_interval);
    }

    /// As a stream of batches that waits for changes, and ends at the bound or after an error.
    pub fn into_stream(self) -> ChangelogStream {
        stream::try_unfold(self, |mut stream| async move {
            let batch = stream.next().await?;
            Ok(batch.map(|batch| (batch, stream)))
        })
        .boxed()
    }

    /// Notes in the consumer's file how far its reader has come: a later stream of this consumer begins there, and until then the
    /// snapshots from there on do not expire. Call it with the position up to which rows are safe, again and again, as an idle
    /// consumer is forgotten after `consumer.expiration-time`.
    ///
    /// The file knows whole snapshots only. A position in the midst of one counts as before it: its first rows may come again. In
    /// the midst of a full read nothing is noted, and the next stream starts over; `false` then.
    ///
    /// Errors: `Invalid` when the stream has no consumer id; those of the storage, with the file in its old or its new state.
    pub fn commit(&self, position: &StreamPosition) -> impl Future<Output = Result<bool>> + Send {
        self.follower.commit(position)
    }

    fn reset_pause(&mut self) {
        self.pause = self.follower.settings.discovery_interval / FIRST_PAUSE;
    }
}

impl fmt::Debug for TableStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableStream")
            .field("table", &self.follower.table().location())
            .field("position", &self.position())
            .finish_non_exhaustive()
    }
}
