//! The loop from lines to commits.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use paimon::format::env::Env;
use paimon_cdc::{Counts, Ingest, Outcome, Position};

use super::bad_records::BadRecords;
use super::inputs::{Input, Inputs};
use super::lines::{Chunk, Line, Lines};
use crate::error::CliError;
use crate::progress::Progress;
use crate::signals::{Signal, Signals};

/// When to commit, besides at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitPolicy {
    /// After so many rows; a record is never cut.
    pub(crate) rows: u64,
    /// When rows have waited so long, even if no record comes.
    pub(crate) interval: Option<Duration>,
}

/// Takes all inputs in, and commits.
///
/// Errors: of the table, of files, a bad record that must not be passed, or `Stopped`. What is not committed then is not in the table.
pub(crate) async fn run(
    mut ingest: Ingest,
    mut inputs: Inputs,
    policy: CommitPolicy,
    bad_records: BadRecords,
    signals: Signals,
    env: &Env,
    progress: &Progress,
) -> Result<Counts, CliError> {
    let mut records = ingest.resume_at().map_or(0, |position| position.records);
    let mut job = Job {
        ingest: &mut ingest,
        bad_records,
        policy,
        signals,
        env,
        last_commit_ms: env.clock.now_ms(),
    };
    let taken = async {
        while let Some(input) = inputs.next()? {
            records = job.input(input, records, progress).await?;
        }
        Ok(())
    };
    match taken.await {
        Ok(()) => Ok(ingest.finish().await?),
        Err(error) => {
            ingest.abort().await;
            Err(error)
        }
    }
}

struct Job<'a> {
    ingest: &'a mut Ingest,
    bad_records: BadRecords,
    policy: CommitPolicy,
    signals: Signals,
    env: &'a Env,
    last_commit_ms: i64,
}

/// A read that may block: it gives the lines back.
async fn read(env: Env, mut lines: Lines) -> Result<(Lines, std::io::Result<Option<Chunk>>), CliError> {
    let read = env.blocking(move || {
        let chunk = lines.next_chunk();
        (lines, chunk)
    });
    Ok(read.await?)
}

impl Job<'_> {
    /// Takes one input in. `records`: how many came before it. Returns how many there are now.
    async fn input(&mut self, input: Input, mut records: i64, progress: &Progress) -> Result<i64, CliError> {
        let mut line_number = input.passed_lines;
        let mut reading = Box::pin(read(self.env.clone(), input.lines));
        loop {
            let timer = match self.time_left() {
                Some(time) if self.ingest.uncommitted_rows() > 0 => self.env.runtime.sleep(time),
                _ => Box::pin(futures::future::pending()),
            };
            let next = self.signals.unless_asked(select(reading, timer)).await;
            let (lines, chunk) = match next.map_err(|signal| self.stopped(signal))? {
                Either::Left((read, _)) => read?,
                Either::Right(((), unfinished)) => {
                    self.commit().await?;
                    reading = unfinished;
                    continue;
                }
            };
            let Some(chunk) = chunk.map_err(|error| CliError::file(&input.name, error))? else {
                return Ok(records);
            };
            reading = Box::pin(read(self.env.clone(), lines));
            for line in &chunk.lines {
                records += 1;
                line_number += 1;
                let position = Position {
                    records,
                    input: Arc::clone(&input.name),
                    line: line_number,
                    start: line.start,
                    end: line.end,
                    checksum: chunk.text(line).map(crc32fast::hash),
                };
                self.line(&chunk, line, position).await?;
            }
            progress.message(format!("{} rows", self.ingest.counts().all_rows()));
        }
    }

    async fn line(&mut self, chunk: &Chunk, line: &Line, position: Position) -> Result<(), CliError> {
        let Some(text) = chunk.text(line) else {
            let error = format!(
                "a record of {} bytes: longer than --max-record-bytes",
                line.end - line.start
            );
            self.bad_records.note(&position, &error, None)?;
            self.ingest.skip(position);
            return Ok(());
        };
        // A file may begin with a byte order mark.
        let text = match line.start {
            0 => text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text),
            _ => text,
        };
        if let Outcome::Bad(error) = self.ingest.record(text, position.clone()).await? {
            self.bad_records.note(&position, &error.to_string(), Some(text))?;
        }
        let late = self.time_left().is_some_and(|time| time.is_zero());
        let rows = self.ingest.uncommitted_rows();
        if rows >= self.policy.rows || (late && rows > 0) {
            self.commit().await?;
        }
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), CliError> {
        self.ingest.commit(false).await?;
        self.last_commit_ms = self.env.clock.now_ms();
        self.signals.asked().map_or(Ok(()), |signal| Err(self.stopped(signal)))
    }

    /// Ends the run early.
    fn stopped(&self, signal: Signal) -> CliError {
        match self.ingest.committed() {
            None => CliError::stopped(signal, "nothing was committed"),
            Some(position) => CliError::stopped(
                signal,
                format_args!(
                    "what is in the table ends with line {} of {}",
                    position.line, position.input
                ),
            ),
        }
    }

    /// Until a commit is due by time.
    fn time_left(&self) -> Option<Duration> {
        let interval = self.policy.interval?;
        let waited = self.env.clock.now_ms().saturating_sub(self.last_commit_ms);
        Some(interval.saturating_sub(Duration::from_millis(u64::try_from(waited).unwrap_or(0))))
    }
}
