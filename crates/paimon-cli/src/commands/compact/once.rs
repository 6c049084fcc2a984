//! One compaction of one table.

use paimon::lsm::pick::PickReason;
use paimon::{BucketReport, CompactReport, FileTotals};
use serde_json::{Value, json};

use super::Compact;
use crate::commands::compact_task::{check_output, write_lines};
use crate::error::CliError;
use crate::output::{Grid, bytes, counted, duration_ms};
use crate::progress::Progress;
use crate::session::Session;
use crate::signals::Signals;

impl Compact {
    pub(super) async fn once(&self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.table()?).await?;
        let progress = Progress::start(session.console.progress, "compacting");
        let signals = Signals::listen();
        let mut builder = table
            .compact_builder()
            .full(self.full)
            .dry_run(self.dry_run)
            .select(self.part.selection()?)
            .jobs(self.jobs())
            .stop_on(signals.stop())
            .on_progress({
                let progress = progress.clone();
                move |done, buckets| progress.position(done as u64, buckets as u64)
            });
        if let Some(idle) = self.idle_time {
            builder = builder.idle(idle);
        }
        if let Some(to) = &self.plan {
            check_output("--plan", to, self.options.options_file.as_deref().into_iter())?;
            let tasks = builder.plan(self.part_bytes).await;
            progress.finish();
            let tasks = tasks?;
            write_lines(session, to, tasks.iter().map(serde_json::to_string))?;
            if to == "-" {
                return Ok(());
            }
            if session.json {
                return session.console.json(&json!({"tasks": tasks.len()}));
            }
            let count = counted(tasks.len() as u64, "task");
            return session
                .console
                .line(format_args!("{count} in {to}: see paimon compact-task"));
        }
        let report = builder.run().await;
        progress.finish();
        let report = report?;
        if !report.stopped {
            return print_report(session, &report, self.dry_run);
        }
        print_report(session, &report, false)?;
        let done = match report.buckets.len() {
            0 => "nothing".to_owned(),
            done => counted(done as u64, "bucket"),
        };
        Err(CliError::stopped(
            signals.signal().await,
            format_args!("compacted {done}"),
        ))
    }
}

/// Prints what was compacted, or would be.
pub(in crate::commands) fn print_report(
    session: &mut Session<'_>,
    report: &CompactReport,
    dry_run: bool,
) -> Result<(), CliError> {
    match session.json {
        true => session.console.json(&to_json(report, dry_run)),
        false => session.console.print(text(report, dry_run)),
    }
}

/// A bucket's part of a report.
pub(super) fn bucket_json(bucket: &BucketReport) -> Value {
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
}

fn to_json(report: &CompactReport, dry_run: bool) -> Value {
    let buckets = report.buckets.iter().map(bucket_json);
    let distributed = report.distributed.iter().map(|part| {
        json!({
            "partition": part.partition.to_map(),
            "files": part.files,
            "rows": part.rows,
            "buckets": part.buckets,
        })
    });
    let (input, output) = report.totals();
    json!({
        "result": if report.stopped { "stopped" } else if report.buckets.is_empty() && report.distributed.is_empty() { "nothing to do" } else if dry_run { "dry run" } else { "done" },
        "bucketsLookedAt": report.buckets_looked_at,
        "buckets": buckets.collect::<Vec<_>>(),
        "distributed": distributed.collect::<Vec<_>>(),
        "filesIn": input.files, "bytesIn": input.bytes, "rowsIn": input.rows,
        "filesOut": output.files, "bytesOut": output.bytes, "rowsOut": output.rows,
        "milliseconds": report.milliseconds,
        "snapshot": report.snapshot,
    })
}

/// The report for people.
pub(in crate::commands) fn text(report: &CompactReport, dry_run: bool) -> String {
    let looked_at = counted(report.buckets_looked_at as u64, "bucket");
    let distributed = distributed(report, dry_run);
    if report.buckets.is_empty() && report.stopped {
        return distributed;
    }
    if report.buckets.is_empty() {
        let idle = if distributed.is_empty() { "nothing to do: " } else { "" };
        return format!("{distributed}{idle}no compaction is due in {looked_at}\n");
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
    format!("{distributed}{grid}{end}{changelog}\n")
}

/// A line for each partition whose rows waited for a bucket.
fn distributed(report: &CompactReport, dry_run: bool) -> String {
    let lines = report.distributed.iter().map(|part| {
        let partition = match part.partition.values().next() {
            Some(_) => format!("{}: ", part.partition),
            None => String::new(),
        };
        let (rows, files) = (counted(part.rows, "row"), counted(part.files, "file"));
        let went = if dry_run { "would go" } else { "went" };
        let buckets = counted(u64::from(part.buckets.unsigned_abs()), "bucket");
        format!("{partition}{rows} in {files} waited for a bucket and {went} into {buckets}\n")
    });
    lines.collect()
}

/// The rule as the option that it follows.
pub(super) fn rule(reason: PickReason) -> String {
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
