//! `paimon write`.

use std::num::NonZeroUsize;

use clap::Args;
use paimon::format::env::Env;
use paimon::format::meta::CommitMessage;
use paimon::{CommittedPart, Table, TableCommit, TableWrite, WriteBuilder};
use serde_json::json;

use crate::args::{TableArgs, partitions};
use crate::error::CliError;
use crate::input::{self, InputFormat, InputSettings};
use crate::output::{bytes, counted, rows_without_compaction};
use crate::progress::Progress;
use crate::session::Session;
use crate::signals::{Signal, Signals};

/// Write rows into a table and commit them
#[derive(Debug, Args)]
#[command(after_help = "Example: echo '{\"op\":\"+I\",\"id\":1}' | paimon write ./wh/shop.db/orders - --kind-field op")]
pub(crate) struct Write {
    #[command(flatten)]
    table: TableArgs,
    /// The rows; - reads standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: String,
    /// The format of the rows; taken from the file's extension when not given
    #[arg(long, value_enum)]
    format: Option<InputFormat>,
    /// The field of the rows that says +I, -U, +U or -D; all rows are +I without it
    #[arg(long, value_name = "NAME")]
    kind_field: Option<String>,
    /// CSV: the text that stands for null
    #[arg(long, default_value = "")]
    null: String,
    /// CSV: the separator
    #[arg(long, default_value = ",")]
    delimiter: char,
    /// Commit after every so many rows (a batch more or less), not only at the end
    #[arg(long, value_name = "ROWS")]
    commit_every: Option<NonZeroUsize>,
    /// Commit under this name, so that a repeated run with the same --identifier is recognised
    #[arg(long, value_name = "NAME", requires = "identifier")]
    commit_user: Option<String>,
    /// The number of the first commit of this user; the next ones count up
    #[arg(long, value_name = "N", requires = "commit_user")]
    identifier: Option<i64>,
    /// Replace what is there: the partitions that are written (option dynamic-partition-overwrite), or those of --partition, or the table
    #[arg(long, conflicts_with_all = ["commit_every", "commit_user"])]
    overwrite: bool,
    /// The partition to replace, when dynamic-partition-overwrite is false: `key=value,key2=value2`, or some of the keys; may be repeated
    #[arg(long, value_name = "SPEC", requires = "overwrite")]
    partition: Vec<String>,
}

/// What was written.
#[derive(Debug, Default)]
struct Written {
    rows: usize,
    commits: usize,
    /// The latest snapshot afterwards.
    snapshot: Option<i64>,
    files: usize,
    bytes: u64,
    /// Why what was compacted is not in the table, though what was written is.
    compaction_lost: Option<String>,
}

impl Write {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.table).await?;
        let format = self.format.unwrap_or_else(|| InputFormat::of_name(&self.file));
        let settings = InputSettings {
            fields: table.schema().fields.clone(),
            kind_field: self.kind_field.clone(),
            null: self.null.clone(),
            delimiter: u8::try_from(self.delimiter).map_err(|_| {
                CliError::usage(format!("--delimiter {:?}: expected an ASCII character", self.delimiter))
            })?,
        };
        self.identifier.map(after).transpose()?;
        let input = input::open(&self.file, format, settings, session.console)?;
        let progress = Progress::start(session.console.progress, "writing");
        let written = self.write(&table, input, &session.env, &progress).await;
        progress.finish();
        report(session, &table, &written?)
    }

    async fn write(
        &self,
        table: &Table,
        input: input::Input,
        env: &Env,
        progress: &Progress,
    ) -> Result<Written, CliError> {
        let signals = Signals::listen();
        let mut builder = table.write_builder().stop_on(signals.stop());
        if let Some(user) = &self.commit_user {
            builder = builder.commit_user(user);
        }
        if self.overwrite {
            builder = builder.overwrite(partitions(&self.partition)?);
        }
        let mut writer = builder.new_write()?;
        let mut job = Job {
            commit: builder.new_commit()?,
            builder,
            signals,
            recovers: self.commit_user.is_some(),
            identifier: self.identifier.unwrap_or(1),
            written: Written::default(),
        };
        let result = self.write_batches(&mut writer, &mut job, input, env, progress).await;
        // Everything is committed, or never will be.
        writer.abort().await;
        result?;
        let mut written = job.written;
        if written.commits > 0 {
            written.snapshot = table.snapshot_store().latest_id().await.map_err(paimon::Error::from)?;
        }
        Ok(written)
    }

    async fn write_batches(
        &self,
        writer: &mut TableWrite,
        job: &mut Job,
        mut input: input::Input,
        env: &Env,
        progress: &Progress,
    ) -> Result<(), CliError> {
        let mut since_commit = 0;
        loop {
            let read = job.signals.unless_asked(input::next_batch(env, input)).await;
            let Some(((batch, kinds), rest)) = read.map_err(|signal| job.stopped(signal))?? else {
                break;
            };
            input = rest;
            match &kinds {
                Some(kinds) => writer.write_with_kinds(&batch, kinds).await?,
                None => writer.write(&batch).await?,
            }
            job.written.rows += batch.num_rows();
            since_commit += batch.num_rows();
            progress.message(format!("{} rows", job.written.rows));
            if self.commit_every.is_some_and(|rows| since_commit >= rows.get()) {
                job.commit(writer).await?;
                since_commit = 0;
            }
        }
        // An overwrite without rows may still take away.
        if since_commit > 0 || self.overwrite {
            job.commit(writer).await?;
        }
        Ok(())
    }
}

/// The commits of one run.
struct Job {
    builder: WriteBuilder,
    commit: TableCommit,
    signals: Signals,
    /// The user named the commits: an earlier run may have made some of them.
    recovers: bool,
    identifier: i64,
    written: Written,
}

impl Job {
    /// Ends the run early.
    fn stopped(&self, signal: Signal) -> CliError {
        match self.written.commits {
            0 => CliError::stopped(signal, "nothing was committed"),
            commits => {
                let commits = counted(commits as u64, "commit");
                CliError::stopped(
                    signal,
                    format_args!("{commits} made before, nothing of the rest is in the table"),
                )
            }
        }
    }

    async fn commit(&mut self, writer: &mut TableWrite) -> Result<(), CliError> {
        let next = after(self.identifier)?;
        writer.compact_if_due(self.identifier).await?;
        let messages = writer.prepare_commit(true).await?;
        // From here on it is too late: a commit is not cut in the middle.
        if let Some(signal) = self.signals.asked() {
            self.commit.abort(&messages).await?;
            return Err(self.stopped(signal));
        }
        let files = messages.iter().flat_map(|message| &message.increment.data.new_files);
        let (count, bytes) = files.fold((0, 0), |(count, bytes), file| {
            (count + 1, bytes + u64::try_from(file.file_size).unwrap_or(0))
        });
        let identifier = self.identifier;
        self.identifier = next;
        if self.recovers {
            let committed = self
                .commit
                .filter_and_commit(vec![(identifier, messages.clone())])
                .await;
            let committed = self.commit.or_abort(committed, identifier, &messages).await;
            if self.at_least_in_part(writer, identifier, &messages, committed).await? == Some(0) {
                // The earlier run's files are in the table; these are not, and never will be.
                self.commit.abort(&messages).await?;
                // Its next compaction would look for them.
                return self.begin_anew(writer).await;
            }
        } else {
            let committed = self.commit.commit(identifier, messages.clone()).await;
            let committed = self.commit.or_abort(committed, identifier, &messages).await;
            self.at_least_in_part(writer, identifier, &messages, committed).await?;
        }
        self.written.files += count;
        self.written.bytes += bytes;
        self.written.commits += 1;
        Ok(())
    }

    /// What a commit came to. `None`: it failed, but the rows are committed: another job compacted the same files first, or only the answer was
    /// lost. That is no failure of the write: a second run would write the rows twice.
    async fn at_least_in_part<T>(
        &mut self,
        writer: &mut TableWrite,
        identifier: i64,
        messages: &[CommitMessage],
        committed: Result<T, paimon::Error>,
    ) -> Result<Option<T>, CliError> {
        let error = match committed {
            Ok(committed) => return Ok(Some(committed)),
            Err(error) => error,
        };
        match self.commit.committed_in_part(identifier, messages).await {
            Ok(CommittedPart::All) => {}
            Ok(CommittedPart::Written) => self.written.compaction_lost = Some(error.to_string()),
            // That this cannot be told matters less than the error.
            Ok(CommittedPart::Nothing) | Err(_) => return Err(error.into()),
        }
        self.begin_anew(writer).await?;
        Ok(None)
    }

    /// A writer that knows nothing of files that are not in the table.
    async fn begin_anew(&self, writer: &mut TableWrite) -> Result<(), CliError> {
        let fresh = self.builder.new_write()?;
        std::mem::replace(writer, fresh).abort().await;
        Ok(())
    }
}

/// The number of the commit after this one. Errors: `Usage` for the last number, which is no job's: there is none after it.
fn after(identifier: i64) -> Result<i64, CliError> {
    identifier.checked_add(1).ok_or_else(|| {
        CliError::usage(format!(
            "--identifier: commits are numbered up to {}, no further",
            i64::MAX - 1
        ))
    })
}

fn report(session: &mut Session<'_>, table: &Table, written: &Written) -> Result<(), CliError> {
    if session.json {
        let mut report = json!({
            "rows": written.rows,
            "commits": written.commits,
            "snapshot": written.snapshot,
            "files": written.files,
            "bytes": written.bytes,
        });
        if let (Some(report), Some(lost)) = (report.as_object_mut(), &written.compaction_lost) {
            report.insert("compactionLost".to_owned(), json!(lost));
        }
        return session.console.json(&report);
    }
    if let Some(lost) = &written.compaction_lost {
        session.console.line(format_args!(
            "what was compacted is lost; {}: {lost}",
            rows_without_compaction(table)?
        ))?;
    }
    match written.snapshot {
        None if written.rows == 0 => session.console.line("nothing to do: no rows"),
        None => session
            .console
            .line("nothing to do: these commits are in the table already"),
        Some(snapshot) => session.console.line(format_args!(
            "wrote {} in {} ({}), snapshot {snapshot}",
            counted(written.rows as u64, "row"),
            counted(written.files as u64, "file"),
            bytes(written.bytes),
        )),
    }
}
