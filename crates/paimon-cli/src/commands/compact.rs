//! `paimon compact`.

use clap::Args;
use paimon::format::env::Budget;
use paimon::lsm::pick::PickReason;
use paimon::{CompactReport, FileTotals};
use serde_json::json;

use crate::args::{PartArgs, TableArgs, memory};
use crate::error::CliError;
use crate::output::{Grid, bytes, counted, duration_ms};
use crate::progress::Progress;
use crate::session::Session;

/// Compact a table: one pick a bucket, or everything with --full
#[derive(Debug, Args)]
pub(crate) struct Compact {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    part: PartArgs,
    /// Make one sorted run of each bucket, at the top level
    #[arg(long)]
    full: bool,
    /// Say what would be compacted, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Buckets that are compacted side by side; the machine's cores when not given
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Memory for all of it, for example 512mb
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
}

impl Compact {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        if let Some(memory) = self.memory {
            session.env.memory = Budget::new(memory);
        }
        let table = session.open(&self.table).await?;
        let progress = Progress::start(session.console.progress, "compacting");
        let builder = table
            .compact_builder()
            .full(self.full)
            .dry_run(self.dry_run)
            .select(self.part.selection()?)
            .jobs(
                self.jobs
                    .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
            )
            .on_progress({
                let progress = progress.clone();
                move |done, buckets| progress.position(done as u64, buckets as u64)
            });
        let report = builder.run().await;
        progress.finish();
        let report = report?;
        if session.json {
            let report = to_json(&report, self.dry_run);
            session.console.json(&report)
        } else {
            session.console.print(text(&report, self.dry_run))
        }
    }
}

fn to_json(report: &CompactReport, dry_run: bool) -> serde_json::Value {
    let buckets = report.buckets.iter().map(|bucket| {
        json!({
            "bucket": bucket.bucket,
            "reason": bucket.reason,
            "outputLevel": bucket.output_level,
            "filesIn": bucket.input.files,
            "bytesIn": bucket.input.bytes,
            "rowsIn": bucket.input.rows,
            "filesOut": bucket.output.files,
            "bytesOut": bucket.output.bytes,
            "rowsOut": bucket.output.rows,
            "changelogFiles": bucket.changelog.files,
            "changelogRows": bucket.changelog.rows,
        })
    });
    let (input, output) = report.totals();
    json!({
        "result": if report.buckets.is_empty() { "nothing to do" } else if dry_run { "dry run" } else { "done" },
        "bucketsLookedAt": report.buckets_looked_at,
        "buckets": buckets.collect::<Vec<_>>(),
        "filesIn": input.files, "bytesIn": input.bytes, "rowsIn": input.rows,
        "filesOut": output.files, "bytesOut": output.bytes, "rowsOut": output.rows,
        "milliseconds": report.milliseconds,
        "snapshot": report.snapshot,
    })
}

/// The report for people.
pub(super) fn text(report: &CompactReport, dry_run: bool) -> String {
    let looked_at = counted(report.buckets_looked_at as u64, "bucket");
    if report.buckets.is_empty() {
        return format!("nothing to do: no compaction is due in {looked_at}\n");
    }
    let mut grid = Grid::new([
        "bucket", "rule", ">level", ">files", ">size", ">rows", "", ">files", ">size", ">rows",
    ]);
    for bucket in &report.buckets {
        let known = |count: u64| if dry_run { "?".to_owned() } else { count.to_string() };
        grid.row([
            bucket.bucket.clone(),
            rule(bucket.reason),
            bucket.output_level.to_string(),
            bucket.input.files.to_string(),
            bytes(bucket.input.bytes),
            bucket.input.rows.to_string(),
            "→".to_owned(),
            known(bucket.output.files),
            if dry_run {
                "?".to_owned()
            } else {
                bytes(bucket.output.bytes)
            },
            known(bucket.output.rows),
        ]);
    }
    let (input, output) = report.totals();
    let sums = |sums: FileTotals| {
        let (files, rows) = (counted(sums.files, "file"), counted(sums.rows, "row"));
        format!("{files}, {}, {rows}", bytes(sums.bytes))
    };
    let picked = report.buckets.len();
    let end = if dry_run {
        format!("dry run: {} would be compacted in {picked} of {looked_at}", sums(input))
    } else {
        format!(
            "done: {} in; {} out; {picked} of {looked_at}, {}, snapshot {}",
            sums(input),
            sums(output),
            duration_ms(report.milliseconds),
            report.snapshot.map_or_else(|| "?".to_owned(), |id| id.to_string()),
        )
    };
    let changes = report.buckets.iter().fold((0, 0), |(files, rows), bucket| {
        (files + bucket.changelog.files, rows + bucket.changelog.rows)
    });
    let changelog = match changes {
        (0, _) => String::new(),
        (files, rows) => format!("; changelog: {} in {}", counted(rows, "row"), counted(files, "file")),
    };
    format!("{grid}{end}{changelog}\n")
}

/// The rule as the option that it follows.
fn rule(reason: PickReason) -> String {
    match reason {
        PickReason::EarlyFullInterval => "optimization-interval".to_owned(),
        PickReason::EarlyFullTotalSize => "total-size-threshold".to_owned(),
        PickReason::EarlyFullIncrementalSize => "incremental-size-threshold".to_owned(),
        PickReason::SizeAmplification => "size amplification".to_owned(),
        PickReason::SizeRatio => "size ratio".to_owned(),
        PickReason::NumberOfRuns => "number of runs".to_owned(),
        PickReason::ForceUpLevel0 => "force up level 0".to_owned(),
        PickReason::Full => "full".to_owned(),
        other => format!("{other:?}"),
    }
}
