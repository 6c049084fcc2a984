//! `paimon levels`.

use clap::Args;
use paimon::{BackPressure, BucketLevels};
use serde_json::json;

use crate::args::ViewArgs;
use crate::error::CliError;
use crate::output::{Grid, bytes, counted, rows};
use crate::session::Session;

/// Draw the sorted runs of each bucket, newest to oldest
#[derive(Debug, Args)]
pub(crate) struct Levels {
    #[command(flatten)]
    view: ViewArgs,
}

impl Levels {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let buckets = session.buckets(&self.view).await?;
        if session.json {
            for bucket in &buckets {
                session.console.json(&json(bucket)?)?;
            }
            return Ok(());
        }
        if buckets.is_empty() {
            return session.console.line("no data files");
        }
        for bucket in &buckets {
            session.console.print(draw(bucket)?)?;
            session.console.line(pressure(bucket))?;
        }
        Ok(())
    }
}

/// How many runs, beside those that make compactions begin and writers wait.
fn pressure(bucket: &BucketLevels) -> String {
    let runs = counted(bucket.runs().len() as u64, "sorted run");
    let (trigger, stop) = (bucket.compaction_trigger(), bucket.stop_trigger());
    match bucket.back_pressure() {
        BackPressure::Relaxed => format!("{runs}; compaction begins at {trigger}, writers wait above {stop}"),
        BackPressure::CompactionDue => {
            format!("{runs}: compaction is due from {trigger} on; writers wait above {stop}")
        }
        BackPressure::WritersWait => {
            format!(
                "{runs}: writers that compact wait, as there are more than {stop}; compaction is due from {trigger} on"
            )
        }
    }
}

fn json(bucket: &BucketLevels) -> Result<serde_json::Value, CliError> {
    let runs = bucket.runs().iter().map(|run| {
        let files = run.run.files();
        let (min, max) = key_range(bucket, run)?;
        Ok(json!({
            "level": run.level,
            "files": files.len(),
            "bytes": run.run.total_size(),
            "rows": files.iter().map(|file| file.row_count).sum::<i64>(),
            "deletedRows": deleted_rows(bucket, run),
            "minKey": min,
            "maxKey": max,
        }))
    });
    Ok(json!({
        "bucket": bucket.name(),
        "partition": bucket.partition.to_map(),
        "bucketId": bucket.bucket,
        "snapshot": bucket.snapshot,
        "compactionTrigger": bucket.compaction_trigger(),
        "stopTrigger": bucket.stop_trigger(),
        "backPressure": match bucket.back_pressure() {
            BackPressure::Relaxed => "relaxed",
            BackPressure::CompactionDue => "compaction due",
            BackPressure::WritersWait => "writers wait",
        },
        "runs": runs.collect::<Result<Vec<_>, CliError>>()?,
    }))
}

/// The smallest and the largest key of a run, as text.
fn key_range(bucket: &BucketLevels, run: &paimon::lsm::levels::LevelSortedRun) -> Result<(String, String), CliError> {
    let files = run.run.files();
    let min = files.first().map(|file| bucket.key_text(&file.min_key)).transpose()?;
    let max = files.last().map(|file| bucket.key_text(&file.max_key)).transpose()?;
    Ok((min.unwrap_or_default(), max.unwrap_or_default()))
}

/// Rows of a run that deletion vectors hide, if that is noted of all of them.
fn deleted_rows(bucket: &BucketLevels, run: &paimon::lsm::levels::LevelSortedRun) -> Option<i64> {
    run.run.files().iter().map(|file| bucket.deleted_rows(file)).sum()
}

/// The picture of one bucket: a line a run, bars as long as the runs are large.
pub(super) fn draw(bucket: &BucketLevels) -> Result<String, CliError> {
    const BAR: u64 = 24;
    let runs = bucket.runs();
    let largest = runs.iter().map(|run| run.run.total_size()).max().unwrap_or(0).max(1);
    let mut grid = Grid::new(["", "", "", ">size", ">files", ">rows", "keys"]);
    for (number, run) in runs.iter().enumerate() {
        let age = match number {
            0 if runs.len() > 1 => "newest",
            last if last + 1 == runs.len() && last > 0 => "oldest",
            _ => "",
        };
        let size = run.run.total_size();
        let length = usize::try_from((size.saturating_mul(BAR) / largest).clamp(1, BAR)).unwrap_or(1);
        let (min, max) = key_range(bucket, run)?;
        let row_count = run.run.files().iter().map(|file| file.row_count).sum();
        grid.row([
            format!("L{}", run.level),
            "█".repeat(length),
            age.to_owned(),
            bytes(size),
            run.run.files().len().to_string(),
            rows(row_count, deleted_rows(bucket, run)),
            format!("{min} … {max}"),
        ]);
    }
    Ok(format!("{} (snapshot {})\n{grid}", bucket.name(), bucket.snapshot))
}
