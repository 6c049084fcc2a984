//! What a reader of changes wants.

use std::time::Duration;

use paimon_format::predicate::Predicate;
use paimon_format::types::DataField;
use paimon_manifest::scan::{FollowUp, StreamStart};

use super::StreamPosition;
use super::follow::Follower;
use super::incremental::{self, Between, IncrementalMode};
use super::read::ChangesReader;
use super::stream::{ChangelogStream, TableStream};
use crate::error::{Error, Result};
use crate::options::{self, StreamSettings};
use crate::partition::Selection;
use crate::read::ReadBuilder;
use crate::table::Table;

/// Collects what a reader of changes wants; makes a [`TableStream`], or a bounded read of what changed between two states.
///
/// What is not said here is taken from the table's options: `scan.mode`, `scan.snapshot-id`, `scan.timestamp-millis`, `consumer-id`,
/// `continuous.discovery-interval`, `scan.bounded.watermark`, `streaming.read.snapshot.delay`, `streaming-read-overwrite`,
/// `incremental-between`, …
///
/// Source: `org.apache.paimon.table.source.ReadBuilder#newStreamScan`.
#[derive(Clone, Debug)]
pub struct ChangelogBuilder {
    read: ReadBuilder,
    start: Option<StreamStart>,
    position: Option<StreamPosition>,
    consumer: Option<String>,
    ignore_progress: bool,
    discovery_interval: Option<Duration>,
    between: Option<Between>,
    mode: Option<IncrementalMode>,
    parallelism: usize,
}

/// Splits of a snapshot that are read ahead when the caller does not say.
const DEFAULT_PARALLELISM: usize = 4;

impl ChangelogBuilder {
    pub(crate) fn new(table: Table) -> Self {
        Self {
            read: ReadBuilder::new(table),
            start: None,
            position: None,
            consumer: None,
            ignore_progress: false,
            discovery_interval: None,
            between: None,
            mode: None,
            parallelism: DEFAULT_PARALLELISM,
        }
    }

    /// Only these columns, in this order. Errors: as [`ReadBuilder::projection`].
    pub fn projection<S: AsRef<str>>(mut self, names: &[S]) -> Result<Self> {
        self.read = self.read.projection(names)?;
        Ok(self)
    }

    /// Only rows that pass the filter. Every change is tested by itself: of an update that makes a row pass, the `+U` comes without
    /// its `-U`. The rows of a full read are tested merged. Several filters must all be passed.
    #[must_use]
    pub fn filter(mut self, filter: Predicate) -> Self {
        self.read = self.read.filter(filter);
        self
    }

    /// Only these partitions and buckets.
    #[must_use]
    pub fn select(mut self, selection: Selection) -> Self {
        self.read = self.read.select(selection);
        self
    }

    /// Where the stream starts, whatever the table's options say. A consumer's progress goes before it.
    #[must_use]
    pub fn start(mut self, start: StreamStart) -> Self {
        self.start = Some(start);
        self
    }

    /// The stream goes on from a position that an earlier one gave. Goes before everything else.
    #[must_use]
    pub fn resume(mut self, position: StreamPosition) -> Self {
        self.position = Some(position);
        self
    }

    /// The stream goes on where the consumer of this id has come to, if it is there; [`TableStream::commit`] notes its progress.
    #[must_use]
    pub fn consumer(mut self, id: impl Into<String>) -> Self {
        self.consumer = Some(id.into());
        self
    }

    /// The consumer's progress does not decide where the stream starts.
    #[must_use]
    pub fn ignore_progress(mut self) -> Self {
        self.ignore_progress = true;
        self
    }

    /// The longest pause between two looks for a new snapshot. After news the next look comes earlier, then pauses double.
    #[must_use]
    pub fn discovery_interval(mut self, interval: Duration) -> Self {
        self.discovery_interval = Some(interval);
        self
    }

    /// How many splits of a snapshot are read side by side, at least 1; 4 when not set.
    #[must_use]
    pub fn parallelism(mut self, splits: usize) -> Self {
        self.parallelism = splits.max(1);
        self
    }

    /// The states of [`read_between`](Self::read_between).
    #[must_use]
    pub fn between(mut self, between: Between) -> Self {
        self.between = Some(between);
        self
    }

    /// How [`read_between`](Self::read_between) finds out what changed.
    #[must_use]
    pub fn mode(mut self, mode: IncrementalMode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Whether [`TableStream::commit`] will have a consumer to note progress for: one given here, or by the option `consumer-id`.
    pub fn notes_progress(&self) -> bool {
        self.consumer.is_some() || self.read.table.options().get("consumer-id").is_some()
    }

    /// The columns of the batches that come out.
    pub fn fields(&self) -> &[DataField] {
        self.read.fields()
    }

    /// The stream of changes. Reads the consumer's progress, nothing else.
    ///
    /// The table's schema is the one that it was opened with: columns that are added later do not show.
    ///
    /// Errors: `Invalid`, `Unsupported`, naming the option; `Corrupt` when the consumer file is.
    pub async fn stream(&self) -> Result<TableStream> {
        let table = &self.read.table;
        let reader = self.reader()?;
        let mut settings = StreamSettings::from_options(table.options())?;
        settings.consumer = self.consumer.clone().or(settings.consumer);
        settings.ignore_progress |= self.ignore_progress;
        if settings.overwrites && matches!(reader.follow_up, FollowUp::Lookup | FollowUp::FullCompaction) {
            return Err(Error::invalid(format!(
                "option 'streaming-read-overwrite' = 'true': a table with changelog-producer {} tells all its changes already",
                table.options().string("changelog-producer").unwrap_or_default()
            )));
        }
        if settings.overwrites && table.options().bool("deletion-vectors.enabled")?.unwrap_or(false) {
            return Err(Error::unsupported(
                "option 'streaming-read-overwrite' = 'true' of a table with deletion vectors",
            ));
        }
        settings.discovery_interval = self.discovery_interval.unwrap_or(settings.discovery_interval);
        let progress = match &settings.consumer {
            Some(id) if !settings.ignore_progress => table.consumers().find(id).await?,
            _ => None,
        };
        let position = self
            .position
            .or(progress.map(|consumer| StreamPosition::changes_of(consumer.next_snapshot)));
        let start = match (&self.start, position) {
            (Some(start), _) => start.clone(),
            // It is not asked for.
            (None, Some(_)) => StreamStart::default(),
            (None, None) => options::stream_start(table.options(), &*table.context().env().clock)?,
        };
        Ok(TableStream::new(Follower { reader, settings }, start, position))
    }

    /// What changed between two states, oldest change first; the stream ends there. Nothing is read before the first poll.
    ///
    /// Errors: `Invalid`, `Unsupported`, naming the option, or when no states are named. In the stream: `NotFound` for a snapshot or
    /// tag that is not there, `Corrupt`, `Unavailable`, naming the file.
    pub fn read_between(&self) -> Result<ChangelogStream> {
        let table = &self.read.table;
        let from_options = options::incremental_range(table.options(), &*table.context().env().clock)?;
        let (between, mode) = match (self.between.clone(), from_options) {
            (Some(between), from_options) => (between, from_options.map(|(_, mode)| mode)),
            (None, Some((between, mode))) => (between, Some(mode)),
            (None, None) => {
                return Err(Error::invalid(
                    "a read of changes between two states needs both: 'incremental-between' or 'incremental-between-timestamp'",
                ));
            }
        };
        let mode = self.mode.or(mode).unwrap_or_default();
        Ok(incremental::read(self.reader()?, between, mode))
    }

    fn reader(&self) -> Result<ChangesReader> {
        ChangesReader::new(&self.read, self.parallelism)
    }
}
