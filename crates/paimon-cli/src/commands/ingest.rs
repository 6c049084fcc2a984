//! `paimon ingest`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use paimon::Table;
use paimon_cdc::{ChangeFormat, Counts, Evolution, IngestSettings, Position};
use serde_json::json;

use crate::args::{TableArgs, memory};
use crate::error::CliError;
use crate::ingest::{BadRecords, CommitPolicy, Inputs, run};
use crate::output::{counted, rows_without_compaction};
use crate::progress::Progress;
use crate::same_file::check_not_read;
use crate::session::Session;
use crate::signals::Signals;

/// Take a change stream of a database into a table
#[derive(Debug, Args)]
#[command(
    after_help = "Example: paimon ingest ./wh/shop.db/orders --format debezium-json --commit-user orders-1 --bad-records bad.jsonl orders.jsonl\n\n\
    A run that was killed goes on where its last commit ended when it is started again with the same --commit-user and files. Standard input \
    cannot be rewound: such a run cannot go on."
)]
pub(crate) struct Ingest {
    #[command(flatten)]
    table: TableArgs,
    /// One record a line; several files are one stream, in this order; - reads standard input
    #[arg(value_name = "FILE", default_value = "-")]
    files: Vec<String>,
    /// What the records are: debezium-json, canal-json, maxwell-json, or json (a row as an object)
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: ChangeFormat,
    /// Format json: the field of the rows that says +I, -U, +U or -D; all rows are +I without it
    #[arg(long, value_name = "NAME")]
    kind_field: Option<String>,
    /// The name of this job, under which it commits and finds its place again
    #[arg(long, value_name = "NAME")]
    commit_user: Option<String>,
    /// Commit when so many rows were taken in
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    commit_rows: u64,
    /// Commit when rows have waited for so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    commit_seconds: Option<u64>,
    /// Add columns that the stream has and the table has not
    #[arg(long)]
    add_columns: bool,
    /// Give columns the wider type that the stream declares (INT to BIGINT, longer texts and decimals), but not key columns
    #[arg(long)]
    widen_columns: bool,
    /// Note records that cannot be used in this file, as lines of JSON, and go on; without it the first one ends the run
    #[arg(long, value_name = "FILE")]
    bad_records: Option<PathBuf>,
    /// End the run when there are more bad records than this
    #[arg(long, value_name = "N", requires = "bad_records")]
    max_bad_records: Option<u64>,
    /// The longest record that is read, for example 16mb
    #[arg(long, value_name = "SIZE", default_value = "16mb", value_parser = memory)]
    max_record_bytes: u64,
}

fn format(name: &str) -> Result<ChangeFormat, String> {
    name.parse()
}

impl Ingest {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        if self.kind_field.is_some() && self.format != ChangeFormat::Json {
            return Err(CliError::usage(format!(
                "--kind-field: records of {} say themselves what they are",
                self.format.name()
            )));
        }
        if self.commit_user.is_some() {
            Inputs::check_resumable(&self.files)?;
        }
        if let Some(output) = &self.bad_records {
            let inputs = self.files.iter().map(Path::new);
            check_not_read(
                "--bad-records",
                output,
                inputs.chain(self.table.options.options_file.as_deref()),
            )?;
        }
        let table = session.open(&self.table).await?;
        let signals = Signals::listen();
        let settings = IngestSettings {
            format: self.format,
            kind_field: self.kind_field,
            commit_user: self.commit_user,
            evolution: Evolution {
                add_columns: self.add_columns,
                widen_columns: self.widen_columns,
            },
            stop: signals.stop(),
        };
        let ingest = paimon_cdc::Ingest::open(&table, settings).await?;
        let resumed_at = ingest.resume_at().cloned();
        let max_bytes = usize::try_from(self.max_record_bytes).unwrap_or(usize::MAX);
        let standard_input = std::mem::replace(&mut session.console.input, Box::new(std::io::empty()));
        let inputs = Inputs::new(self.files, standard_input, resumed_at.as_ref(), max_bytes)?;
        let bad_records = BadRecords::open(self.bad_records.as_deref(), self.max_bad_records)?;
        let policy = CommitPolicy {
            rows: self.commit_rows,
            interval: self.commit_seconds.map(Duration::from_secs),
        };
        let progress = Progress::start(session.console.progress, "taking in");
        let counts = run(ingest, inputs, policy, bad_records, signals, &session.env, &progress).await;
        progress.finish();
        report(session, &table, &counts?, resumed_at.as_ref())
    }
}

fn report(
    session: &mut Session<'_>,
    table: &Table,
    counts: &Counts,
    resumed_at: Option<&Position>,
) -> Result<(), CliError> {
    let [insert, before, after, delete] = counts.rows;
    if session.json {
        return session.console.json(&json!({
            "records": counts.records,
            "rows": {"+I": insert, "-U": before, "+U": after, "-D": delete},
            "recordsWithoutRows": counts.nothing,
            "badRecords": counts.bad,
            "columnsChanged": counts.columns_changed,
            "snapshots": counts.snapshots,
            "lastSnapshot": counts.last_snapshot,
            "compactionsLost": counts.compactions_lost,
            "resumedAt": resumed_at.map(|position| json!({"input": &*position.input, "line": position.line})),
        }));
    }
    if let Some(position) = resumed_at {
        session.console.line(format_args!(
            "went on behind line {} of {}",
            position.line, position.input
        ))?;
    }
    session.console.line(format_args!(
        "took in {}: {} (+I {insert}, -U {before}, +U {after}, -D {delete}), {} without rows, {} bad",
        counted(counts.records, "record"),
        counted(counts.all_rows(), "row"),
        counts.nothing,
        counts.bad,
    ))?;
    if counts.columns_changed > 0 {
        session
            .console
            .line(format_args!("changed {}", counted(counts.columns_changed, "column")))?;
    }
    if counts.compactions_lost > 0 {
        session.console.line(format_args!(
            "what was compacted is lost of {}; {}",
            counted(counts.compactions_lost, "commit"),
            rows_without_compaction(table)?
        ))?;
    }
    match counts.last_snapshot {
        None => session.console.line("nothing to commit"),
        Some(last) => session.console.line(format_args!(
            "made {}, the last is {last}",
            counted(counts.snapshots, "snapshot")
        )),
    }
}
