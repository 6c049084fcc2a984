//! A stream into a table.

use paimon::format::meta::CommitMessage;
use paimon::format::types::DataType;
use paimon::{CommittedPart, Error, ErrorKind, SchemaChange, StopSignal, Table, TableCommit, TableWrite};

use crate::error::RecordError;
use crate::evolve::Evolution;
use crate::format::{ChangeDecoder, ChangeFormat, Decoded};
use crate::position::Position;
use crate::rows::{RecordRows, RowBatch, RowTyper, TypedRow};

/// Rows that are handed to the table's writer together.
const BATCH_ROWS: usize = 4096;
/// Bytes of records that end a batch earlier.
const BATCH_BYTES: usize = 8 << 20;

/// How a stream is taken in.
#[derive(Clone, Debug)]
pub struct IngestSettings {
    /// What the records are.
    pub format: ChangeFormat,
    /// The member of plain JSON rows that holds their kind.
    pub kind_field: Option<String>,
    /// The name of the job. One that goes on after a failure keeps it; without a name every run is a new one.
    pub commit_user: Option<String>,
    /// What may happen to the schema.
    pub evolution: Evolution,
    /// Once it is time to stop, no call waits long for a compaction. The caller looks at it too, and [gives up](Ingest::abort).
    pub stop: StopSignal,
}

/// What came of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// So many rows, to be committed.
    Rows(usize),
    /// It changes no row.
    Nothing,
    /// It cannot be used; nothing of it was.
    Bad(RecordError),
}

/// What was taken in since the start of this run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records, blank ones and all others that change no row included.
    pub records: u64,
    /// Rows by kind: +I, -U, +U, -D.
    pub rows: [u64; 4],
    /// Records that change no row.
    pub nothing: u64,
    /// Records that could not be used.
    pub bad: u64,
    /// Columns added or widened.
    pub columns_changed: u64,
    /// Snapshots made.
    pub snapshots: u64,
    /// The last of them.
    pub last_snapshot: Option<i64>,
    /// Commits of which what was written is in the table, what was compacted is not: another job compacted the same files first, say.
    pub compactions_lost: u64,
}

impl Counts {
    /// Rows of all kinds.
    pub fn all_rows(&self) -> u64 {
        self.rows.iter().sum()
    }
}

/// Takes the records of one stream into a table, exactly once.
///
/// Every commit's identifier is the number of records up to its end, and its snapshot notes the position in the input. A run under the same
/// `commit_user` finds the newest of these ([`resume_at`](Self::resume_at)); its caller goes on behind it. What was not committed
/// is not in the table, so each record counts once whenever a run was killed. Two runs must not use one name at the same time.
///
/// Memory: one batch of rows, besides the table's write buffers.
#[derive(Debug)]
pub struct Ingest {
    table: Table,
    user: String,
    evolution: Evolution,
    stop: StopSignal,
    decoder: Box<dyn ChangeDecoder>,
    writer: TableWrite,
    commit: TableCommit,
    typer: RowTyper,
    batch: RowBatch,
    /// Behind the last record.
    position: Option<Position>,
    /// Behind the last record that is committed, by this run or an earlier one.
    committed: Option<Position>,
    resume_at: Option<Position>,
    uncommitted_rows: u64,
    /// Of this run: full compactions are due after so many.
    commits: i64,
    counts: Counts,
}

/// What came of a change of the schema.
enum Evolved {
    /// It is made.
    Made,
    /// Others have changed the schema. It is followed; what must change now is to be found anew.
    Moved,
    /// The table cannot be changed so; it is as it was.
    Refused(RecordError),
}

/// A multiple of every `full-compaction.delta-commits`.
const ALWAYS_DUE: i64 = 0;

impl Ingest {
    /// Opens the table for writing, and finds out where an earlier run ended.
    ///
    /// Errors: as [`paimon::WriteBuilder::new_write`]; `Invalid` when the last commit of `commit_user` is not one of these jobs.
    pub async fn open(table: &Table, settings: IngestSettings) -> Result<Self, Error> {
        let mut builder = table.write_builder().stop_on(settings.stop.clone());
        if let Some(user) = &settings.commit_user {
            builder = builder.commit_user(user);
        }
        let resume_at = match &settings.commit_user {
            Some(user) => resume_position(table, user).await?,
            None => None,
        };
        let typer = RowTyper::new(table.schema());
        Ok(Self {
            table: table.clone(),
            user: builder.user().to_owned(),
            evolution: settings.evolution,
            stop: settings.stop,
            decoder: settings.format.decoder(settings.kind_field),
            writer: builder.new_write()?,
            commit: builder.new_commit()?,
            batch: RowBatch::new(typer.fields().len()),
            typer,
            position: resume_at.clone(),
            committed: resume_at.clone(),
            resume_at,
            uncommitted_rows: 0,
            commits: 0,
            counts: Counts::default(),
        })
    }

    /// The last record that an earlier run of this name committed; records up to it must not be offered again.
    pub fn resume_at(&self) -> Option<&Position> {
        self.resume_at.as_ref()
    }

    /// The last record that is committed, by this run or an earlier one of its name.
    pub fn committed(&self) -> Option<&Position> {
        self.committed.as_ref()
    }

    /// What was taken in since the start of this run.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Rows that wait for a commit.
    pub fn uncommitted_rows(&self) -> u64 {
        self.uncommitted_rows
    }

    /// Takes in a record, which ends at `position`. A record whose columns the table must have first commits what came before it.
    ///
    /// Errors: of the table, after which this value must be [given up](Self::abort). A record that cannot be used is no error.
    pub async fn record(&mut self, record: &[u8], position: Position) -> Result<Outcome, Error> {
        let outcome = match std::str::from_utf8(record) {
            Err(error) => Outcome::Bad(RecordError::new(format!(
                "no UTF-8 at byte {}",
                error.valid_up_to() + 1
            ))),
            Ok(text) if text.trim().is_empty() => Outcome::Nothing,
            Ok(text) => self.text(text).await?,
        };
        match outcome {
            Outcome::Rows(_) => {}
            Outcome::Nothing => self.counts.nothing += 1,
            Outcome::Bad(_) => self.counts.bad += 1,
        }
        self.pass(position);
        Ok(outcome)
    }

    /// Passes a record that could not be read: it counts as bad.
    pub fn skip(&mut self, position: Position) {
        self.counts.bad += 1;
        self.pass(position);
    }

    fn pass(&mut self, position: Position) {
        self.counts.records += 1;
        self.position = Some(position);
    }

    async fn text(&mut self, text: &str) -> Result<Outcome, Error> {
        let mut made = Vec::new();
        loop {
            let mut found = RecordRows::default();
            let typer = &self.typer;
            let decoded = self.decoder.decode(text, &mut |change| typer.add(&change, &mut found));
            let (columns, outcome) = match decoded {
                Ok(Decoded::Columns(columns)) => (columns, Ok(Vec::new())),
                Ok(Decoded::Nothing) => return Ok(Outcome::Nothing),
                Ok(Decoded::Changes) => (found.columns, Ok(found.rows)),
                Err(error) => (found.columns, Err(error)),
            };
            let changes = self.evolution.changes(self.table.schema(), &columns);
            if !changes.is_empty() && changes != made {
                match self.evolve(&changes).await? {
                    Evolved::Made => made = changes,
                    Evolved::Moved => {}
                    Evolved::Refused(error) => return Ok(Outcome::Bad(error)),
                }
                continue;
            }
            return match outcome {
                Err(error) => Ok(Outcome::Bad(error)),
                Ok(rows) if rows.is_empty() => Ok(Outcome::Nothing),
                Ok(rows) => match self.check(&columns, &rows)? {
                    Err(error) => Ok(Outcome::Bad(error)),
                    Ok(()) => self.push(rows, text.len()).await,
                },
            };
        }
    }

    /// Whether a record's rows can be written. What is found later fails the whole batch.
    fn check(&self, columns: &[(String, DataType)], rows: &[TypedRow]) -> Result<Result<(), RecordError>, Error> {
        if let Some(name) = self.unknown_column(columns) {
            return Ok(Err(RecordError::new(format!("{name:?} is no column of the table"))));
        }
        let mut rows = rows.iter();
        fault_of_record(rows.try_for_each(|(kind, row)| self.writer.check_row(*kind, row)))
    }

    fn unknown_column<'a>(&self, columns: &'a [(String, DataType)]) -> Option<&'a str> {
        let mut names = columns.iter().map(|(name, _)| name.as_str());
        names.find(|name| self.table.schema().field(name).is_none())
    }

    async fn push(&mut self, rows: Vec<TypedRow>, bytes: usize) -> Result<Outcome, Error> {
        let count = rows.len();
        for (kind, _) in &rows {
            if let Some(rows) = self.counts.rows.get_mut(*kind as usize) {
                *rows += 1;
            }
        }
        self.uncommitted_rows += count as u64;
        self.batch.push(rows, bytes);
        if self.batch.rows() >= BATCH_ROWS || self.batch.bytes() >= BATCH_BYTES {
            self.write_batch().await?;
        }
        Ok(Outcome::Rows(count))
    }

    async fn write_batch(&mut self) -> Result<(), Error> {
        if self.batch.rows() == 0 {
            return Ok(());
        }
        let (batch, kinds) = self.batch.take(self.typer.fields())?;
        self.writer.write_with_kinds(&batch, &kinds).await
    }

    /// Commits the rows of all records so far. With `wait_compaction` the compactions that are due end first and go along. They do so in
    /// any case where the table wants it (`lookup-wait`), and when a full compaction is due: after `full-compaction.delta-commits` commits
    /// of this run, and before its end.
    ///
    /// If another job compacted the same files first, what was compacted here is lost, which is [counted](Counts::compactions_lost) and no error:
    /// the rows are in the table.
    ///
    /// Returns the newest snapshot made; `None` when there was nothing to commit, or its compaction was lost. Errors: as [`TableCommit::commit`].
    pub async fn commit(&mut self, wait_compaction: bool) -> Result<Option<i64>, Error> {
        self.commits += 1;
        self.commit_as(self.commits, wait_compaction).await
    }

    /// `number`: which decides on full compactions.
    async fn commit_as(&mut self, number: i64, wait_compaction: bool) -> Result<Option<i64>, Error> {
        self.write_batch().await?;
        let full = self.writer.compact_if_due(number).await?;
        let wait = wait_compaction || full || self.writer.prepare_commit_wait_compaction();
        let messages = self.writer.prepare_commit(wait).await?;
        let Some(position) = &self.position else {
            return Ok(None);
        };
        let (commit, records) = (&self.commit, position.records);
        let committed = commit
            .commit_with_properties(records, messages.clone(), position.properties())
            .await;
        let committed = commit.or_abort(committed, records, &messages).await;
        match committed {
            Ok(snapshots) => {
                let newest = snapshots.last().copied();
                self.pass_commit(snapshots.len() as u64, newest);
                self.writer.close_idle_buckets().await?;
                Ok(newest)
            }
            Err(error) => {
                let snapshots = self.at_least_in_part(error, records, &messages).await?;
                let newest = match snapshots {
                    0 => None,
                    // That it cannot be told is no reason to fail: the rows are in the table.
                    _ => self
                        .table
                        .snapshot_store()
                        .latest_of_user(&self.user)
                        .await
                        .ok()
                        .flatten(),
                };
                let newest = newest.map(|snapshot| snapshot.id);
                self.pass_commit(snapshots, newest);
                self.begin_anew().await?;
                Ok(newest)
            }
        }
    }

    /// All records so far are committed.
    fn pass_commit(&mut self, snapshots: u64, newest: Option<i64>) {
        self.committed.clone_from(&self.position);
        self.uncommitted_rows = 0;
        self.counts.snapshots += snapshots;
        self.counts.last_snapshot = newest.or(self.counts.last_snapshot);
    }

    /// How many snapshots a commit made that failed, though all rows up to its end are in the table: its compaction was lost, or only the answer.
    ///
    /// Errors: that of the commit, when rows are not in the table, or that cannot be told.
    async fn at_least_in_part(
        &mut self,
        error: Error,
        identifier: i64,
        messages: &[CommitMessage],
    ) -> Result<u64, Error> {
        let mut increments = messages.iter().map(|message| &message.increment);
        if increments.clone().all(|increment| increment.data.is_empty()) && error.kind() == ErrorKind::Conflict {
            self.compaction_lost(&error);
            return Ok(0);
        }
        match self.commit.committed_in_part(identifier, messages).await {
            Ok(CommittedPart::All) => Ok(1 + u64::from(increments.any(|increment| !increment.compact.is_empty()))),
            Ok(CommittedPart::Written) => {
                self.compaction_lost(&error);
                Ok(1)
            }
            Ok(CommittedPart::Nothing) | Err(_) => Err(error),
        }
    }

    fn compaction_lost(&mut self, error: &Error) {
        tracing::warn!(%error, "what was compacted is not in the table, all rows are");
        self.counts.compactions_lost += 1;
    }

    /// Changes the schema and goes on with a writer for the new one.
    ///
    /// Errors: of the table. That the change itself is refused is none.
    async fn evolve(&mut self, changes: &[SchemaChange]) -> Result<Evolved, Error> {
        // The new writer must see the files of the old one: their sequence numbers come first.
        self.commit_as(ALWAYS_DUE, true).await?;
        let evolved = match fault_of_record(self.table.alter_if_latest(changes).await)? {
            Err(error) => return Ok(Evolved::Refused(error)),
            Ok(Some(table)) => {
                self.table = table;
                self.counts.columns_changed += changes.len() as u64;
                Evolved::Made
            }
            Ok(None) => {
                self.table = self.table.refreshed().await?;
                Evolved::Moved
            }
        };
        self.begin_anew().await?;
        self.typer = RowTyper::new(self.table.schema());
        self.batch = RowBatch::new(self.typer.fields().len());
        Ok(evolved)
    }

    /// A writer for the table as it is now, which knows no files that are not in it.
    async fn begin_anew(&mut self) -> Result<(), Error> {
        let builder = self.table.write_builder().commit_user(&self.user);
        let builder = builder.stop_on(self.stop.clone());
        let old = std::mem::replace(&mut self.writer, builder.new_write()?);
        old.abort().await;
        self.commit = builder.new_commit()?;
        Ok(())
    }

    /// Commits the rest and closes the writer. Returns the counts of the whole run.
    pub async fn finish(mut self) -> Result<Counts, Error> {
        let committed = self.commit_as(ALWAYS_DUE, true).await;
        self.writer.abort().await;
        committed?;
        Ok(self.counts)
    }

    /// Gives up what is not committed.
    pub async fn abort(self) {
        self.writer.abort().await;
    }
}

/// Tells what is wrong with a record from what is wrong with the table.
fn fault_of_record<T>(result: Result<T, Error>) -> Result<Result<T, RecordError>, Error> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unsupported) => {
            Ok(Err(RecordError::new(error)))
        }
        Err(error) => Err(error),
    }
}

async fn resume_position(table: &Table, user: &str) -> Result<Option<Position>, Error> {
    let Some(snapshot) = table.snapshot_store().latest_of_user(user).await? else {
        return Ok(None);
    };
    let properties = snapshot.properties.unwrap_or_default();
    let position = Position::from_properties(snapshot.commit_identifier, &properties);
    position.map(Some).map_err(|message| {
        Error::Invalid(format!(
            "the last commit of user {user:?} (snapshot {}) is not one of an ingest job: {message}",
            snapshot.id
        ))
    })
}
