//! `paimon levels`.

use clap::Args;
use paimon::{BackPressure, BucketLevels, FileTotals};
use serde_json::json;

use crate::args::ViewArgs;
use crate::error::CliError;
use crate::output::{Grid, bytes, counted, rows};
use crate::session::Session;

/// Draw the sorted runs of each bucket, newest to oldest
#[derive(Debug, Args)]
#[command(after_help = "\
Of a table with a changelog-producer it says how much changelog came with the snapshot: the rows, files and bytes of the changelog files that this
one snapshot brought to the bucket. What earlier snapshots brought does not count; it is in no level, and readers of levels never see it.")]
pub(crate) struct Levels {
    #[command(flatten)]
    view: ViewArgs,
}

impl Levels {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let (table, buckets) = session.buckets(&self.view).await?;
        if buckets.is_empty() && !session.json {
            return session.console.line("no data files");
        }
        let mut changelogs = table.changelog_totals(&buckets).await?.unwrap_or_default().into_iter();
        for bucket in &buckets {
            let changelog = changelogs.next();
            if session.json {
                session.console.json(&json(bucket, changelog)?)?;
                continue;
            }
            session.console.print(draw(bucket)?)?;
            session.console.line(pressure(bucket))?;
            if let Some(changelog) = changelog {
                session.console.line(changelog_text(bucket, changelog))?;
            }
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

fn changelog_text(bucket: &BucketLevels, changelog: FileTotals) -> String {
    format!(
        "changelog of snapshot {}: {} in {}, {}",
        bucket.snapshot,
        counted(changelog.rows, "row"),
        counted(changelog.files, "file"),
        bytes(changelog.bytes)
    )
}

fn json(bucket: &BucketLevels, changelog: Option<FileTotals>) -> Result<serde_json::Value, CliError> {
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
        "changelog": changelog.map(|FileTotals { files, bytes, rows }| json!({"files": files, "bytes": bytes, "rows": rows})),
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
