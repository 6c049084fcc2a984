//! `paimon compact-task`: compactions that `paimon compact --plan` wrote down.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use paimon::{CompactionResult, CompactionTask, Context, Table};

use super::compact;
use crate::args::{OptionArgs, memory};
use crate::error::CliError;
use crate::output::counted;
use crate::same_file::check_not_read;
use crate::session::Session;
use crate::signals::Signals;

/// Run and commit compactions that `paimon compact --plan` wrote down
#[derive(Debug, Args)]
#[command(after_help = "\
Example, each line in another process:
  paimon compact ./wh/shop.db/orders --plan tasks.jsonl --part-bytes 1gb
  paimon compact-task run tasks.jsonl --number 1 --out 1.jsonl
  paimon compact-task run tasks.jsonl --number 2 --out 2.jsonl
  paimon compact-task commit 1.jsonl 2.jsonl")]
pub(crate) struct CompactTask {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    Run(Run),
    Commit(Results),
    Abort(Abort),
}

/// Run tasks; the table stays as it is until their results are committed
#[derive(Debug, Args)]
struct Run {
    /// Tasks, one a line; - reads standard input
    #[arg(value_name = "TASKS")]
    tasks: String,
    /// Only the task with this number; may be repeated
    #[arg(long, value_name = "N")]
    number: Vec<usize>,
    /// Where the results go, one a line; - is standard output
    #[arg(long, value_name = "FILE")]
    out: String,
    /// Memory for all of it, for example 512mb
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    #[command(flatten)]
    options: OptionArgs,
}

/// Commit the results of all tasks of a plan, at once; done twice it is done once
#[derive(Debug, Args)]
struct Results {
    /// Files of results
    #[arg(value_name = "RESULTS", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    options: OptionArgs,
}

/// Remove the files of results that will never be committed
#[derive(Debug, Args)]
struct Abort {
    #[command(flatten)]
    results: Results,
}

impl CompactTask {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        match self.step {
            Step::Run(run) => run.run(session).await,
            Step::Commit(results) => results.commit(session).await,
            Step::Abort(abort) => abort.run(session).await,
        }
    }
}

impl Run {
    async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        if let Some(memory) = self.memory {
            session.env = session.env.clone().with_memory(memory);
        }
        let read = [Path::new(&self.tasks)].into_iter();
        check_output("--out", &self.out, read.chain(self.options.options_file.as_deref()))?;
        let mut tasks: Vec<CompactionTask> = match self.tasks.as_str() {
            "-" => {
                let mut input = BufReader::new(&mut session.console.input);
                read_lines(&mut input, "standard input", |line| serde_json::from_str(line))?
            }
            path => read_file(path, |line| serde_json::from_str(line))?,
        };
        if let Some(unknown) = self
            .number
            .iter()
            .find(|number| !tasks.iter().any(|task| task.id.number == **number))
        {
            return Err(CliError::usage(format!(
                "--number {unknown}: {} has no such task",
                self.tasks
            )));
        }
        tasks.retain(|task| self.number.is_empty() || self.number.contains(&task.id.number));
        let context = session.context(&self.options)?;
        let signals = Signals::listen();
        let stop = signals.stop();
        let mut results: Vec<CompactionResult> = Vec::with_capacity(tasks.len());
        for task in &tasks {
            match task.run(&context, &stop).await {
                Ok(Some(result)) => results.push(result),
                ended => {
                    give_up(&results, &context).await;
                    ended?;
                    return Err(CliError::stopped(signals.signal().await, "no result was written"));
                }
            }
        }
        if let Err(error) = write_lines(session, &self.out, results.iter().map(serde_json::to_string)) {
            give_up(&results, &context).await;
            return Err(error);
        }
        if self.out == "-" || session.json {
            return Ok(());
        }
        let done = counted(results.len() as u64, "task");
        session
            .console
            .line(format_args!("ran {done}: paimon compact-task commit {}", self.out))
    }
}

/// Removes what was made: without a file of results nobody would know of it. What cannot be removed is left to orphan cleaning; the user is
/// told why there is no result.
async fn give_up(results: &[CompactionResult], context: &Context) {
    for result in results {
        let _ = result.discard(context).await;
    }
}

impl Results {
    /// The results, and the table that they are of.
    async fn open(&self, session: &mut Session<'_>) -> Result<(Table, Vec<CompactionResult>), CliError> {
        let mut results: Vec<CompactionResult> = Vec::new();
        for file in &self.files {
            let of_file = read_file(&file.display().to_string(), |line| serde_json::from_str(line));
            results.extend(of_file?);
        }
        let Some(first) = results.first() else {
            return Err(CliError::usage("there is no result in these files"));
        };
        let context = session.context(&self.options)?;
        let mut options = first.id.options.clone();
        for (key, value) in self.options.options()?.iter() {
            options.set(key, value);
        }
        Ok((Table::open(&first.id.table, options, &context).await?, results))
    }

    async fn commit(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let (table, results) = self.open(session).await?;
        let report = table.commit_compaction(results).await?;
        compact::print_report(session, &report, false)
    }
}

impl Abort {
    async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let (table, results) = self.results.open(session).await?;
        table.abort_compaction(&results).await?;
        if session.json {
            return session.console.json(&serde_json::json!({"removed": results.len()}));
        }
        let removed = counted(results.len() as u64, "result");
        session.console.line(format_args!("removed the files of {removed}"))
    }
}

fn read_file<T>(path: &str, parse: impl Fn(&str) -> serde_json::Result<T>) -> Result<Vec<T>, CliError> {
    let file = std::fs::File::open(path).map_err(|error| CliError::file(path, error))?;
    read_lines(&mut BufReader::new(file), path, parse)
}

/// Values, one a line. Errors: `Usage`, naming file and line.
fn read_lines<T>(
    lines: &mut dyn BufRead,
    name: &str,
    parse: impl Fn(&str) -> serde_json::Result<T>,
) -> Result<Vec<T>, CliError> {
    let mut values = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let line = line.map_err(|error| CliError::file(name, error))?;
        if line.trim().is_empty() {
            continue;
        }
        values.push(parse(&line).map_err(|error| {
            CliError::usage(format!("{name}, line {number}: not what paimon wrote there: {error}"))
        })?);
    }
    Ok(values)
}

/// Where a file is written before it gets its name.
fn part_of(to: &str) -> String {
    format!("{to}.part")
}

/// Errors: `Usage` when [`write_lines`] would write over a file that is read.
pub(super) fn check_output<'a>(
    argument: &str,
    to: &str,
    inputs: impl Iterator<Item = &'a Path> + Clone,
) -> Result<(), CliError> {
    if to == "-" {
        return Ok(());
    }
    check_not_read(argument, Path::new(to), inputs.clone())?;
    check_not_read(argument, Path::new(&part_of(to)), inputs)
}

/// Writes values, one a line, to a file or, for `-`, to the output. A file appears whole or not at all.
pub(super) fn write_lines(
    session: &mut Session<'_>,
    to: &str,
    values: impl Iterator<Item = serde_json::Result<String>>,
) -> Result<(), CliError> {
    let mut text = String::new();
    for value in values {
        text.push_str(&value.map_err(CliError::internal)?);
        text.push('\n');
    }
    if to == "-" {
        return session.console.print(text);
    }
    // A file appears whole; a device or a link stays what it is.
    let written = match std::fs::symlink_metadata(to) {
        Ok(there) if !there.is_file() => std::fs::write(to, &text),
        _ => {
            let part = part_of(to);
            std::fs::write(&part, &text).and_then(|()| std::fs::rename(&part, to))
        }
    };
    written.map_err(|error| CliError::file(to, error))
}
