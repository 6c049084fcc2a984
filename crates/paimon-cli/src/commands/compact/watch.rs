//! Compaction for good.

use std::sync::Arc;

use paimon::{
    BucketFailure, CompactService, FileSystemCatalog, RoundBucket, RoundReport, ServiceSettings, TableSource,
};
use serde_json::{Value, json};

use super::Compact;
use super::once::{bucket_json, rule};
use crate::error::CliError;
use crate::metrics_endpoint;
use crate::output::{Grid, bytes, counted, duration_ms};
use crate::session::Session;
use crate::signals::Signals;

impl Compact {
    pub(super) async fn watch(&self, session: &mut Session<'_>) -> Result<(), CliError> {
        if self.full && self.idle_time.is_none() {
            return Err(CliError::usage(
                "--full --watch: every commit would ask for another full compaction; add --idle-time",
            ));
        }
        let settings = ServiceSettings {
            selection: self.part.selection()?,
            full: self.full,
            idle: self.idle_time,
            jobs: self.jobs(),
            interval: self.interval,
        };
        let stop = Signals::listen().stop();
        let mut service = CompactService::new(self.source(session).await?, settings, stop);
        if self.dry_run {
            let report = service.dry_run().await?;
            return print(session, &report, true);
        }
        if let Some(address) = self.metrics {
            let address = metrics_endpoint::serve(address, &session.env).await?;
            let said = writeln!(session.console.err, "metrics at http://{address}/metrics");
            said.map_err(CliError::output)?;
        }
        while let Some(report) = service.next_round().await? {
            print(session, &report, false)?;
            // Somebody watches.
            session.console.flush()?;
        }
        Ok(())
    }

    async fn source(&self, session: &mut Session<'_>) -> Result<TableSource, CliError> {
        let Some(warehouse) = &self.warehouse else {
            return Ok(TableSource::One(session.open(&self.table()?).await?));
        };
        let context = session.context(&self.options)?;
        let pattern = self.tables.parse();
        Ok(TableSource::Matching {
            pattern: pattern.map_err(|error| CliError::usage(format!("--tables {error}")))?,
            options: self.options.options()?,
            catalog: Arc::new(FileSystemCatalog::new(warehouse, context.clone())),
            context,
        })
    }
}

fn print(session: &mut Session<'_>, report: &RoundReport, dry_run: bool) -> Result<(), CliError> {
    match session.json {
        true => session.console.json(&to_json(report, dry_run)),
        false => session.console.print(text(report, dry_run)),
    }
}

fn to_json(report: &RoundReport, dry_run: bool) -> Value {
    let bucket = |bucket: &RoundBucket| {
        let mut json = bucket_json(&bucket.report);
        json["table"] = json!(bucket.table);
        json["runs"] = json!(bucket.runs);
        json["snapshot"] = json!(bucket.snapshot);
        json
    };
    let failure = |failure: &BucketFailure| {
        json!({
            "table": failure.table,
            "bucket": failure.bucket,
            "conflict": failure.conflict,
            "error": failure.error,
            "retryInMilliseconds": failure.retry_in_ms,
        })
    };
    json!({
        "round": report.round,
        "result": match (report.buckets.is_empty(), dry_run) {
            (true, _) => "nothing to do",
            (false, true) => "dry run",
            (false, false) => "done",
        },
        "tables": report.tables,
        "tablesLookedAt": report.tables_looked_at,
        "bucketsLookedAt": report.buckets_looked_at,
        "bucketsWaiting": report.waiting.0,
        "bytesWaiting": report.waiting.1,
        "buckets": report.buckets.iter().map(bucket).collect::<Vec<_>>(),
        "failures": report.failures.iter().map(failure).collect::<Vec<_>>(),
        "milliseconds": report.milliseconds,
    })
}

/// The report for people; nothing for a round in which nothing happened.
fn text(report: &RoundReport, dry_run: bool) -> String {
    let mut text = String::new();
    if !report.buckets.is_empty() {
        let mut grid = Grid::new([
            "table",
            "bucket",
            ">runs",
            "rule",
            ">level",
            ">files",
            ">size",
            "",
            ">files",
            ">size",
            ">snapshot",
        ]);
        for RoundBucket {
            table,
            runs,
            report: bucket,
            snapshot,
        } in &report.buckets
        {
            let known = |text: String| if dry_run { "?".to_owned() } else { text };
            grid.row([
                table.clone(),
                bucket.bucket.clone(),
                runs.to_string(),
                rule(bucket.reason),
                bucket.output_level.to_string(),
                bucket.input.files.to_string(),
                bytes(bucket.input.bytes),
                "→".to_owned(),
                known(bucket.output.files.to_string()),
                known(bytes(bucket.output.bytes)),
                known(snapshot.map_or_else(String::new, |id| id.to_string())),
            ]);
        }
        text.push_str(&grid.to_string());
    }
    for failure in &report.failures {
        let bucket = failure.bucket.as_deref().unwrap_or("the whole table");
        text.push_str(&format!(
            "{} {bucket}: {}; again in {}\n",
            failure.table,
            failure.error,
            duration_ms(failure.retry_in_ms)
        ));
    }
    let (waiting, size) = report.waiting;
    if dry_run {
        text.push_str(&format!(
            "dry run: {} to compact, {}, in {} of {}\n",
            counted(waiting as u64, "bucket"),
            bytes(size),
            counted(report.buckets_looked_at as u64, "bucket"),
            counted(report.tables as u64, "table"),
        ));
    } else if !report.buckets.is_empty() {
        text.push_str(&format!(
            "round {}: {} of {waiting} with something to compact, {}\n",
            report.round,
            counted(report.buckets.len() as u64, "bucket"),
            duration_ms(report.milliseconds),
        ));
    }
    text
}
