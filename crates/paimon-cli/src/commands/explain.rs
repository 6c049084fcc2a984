//! `paimon explain`.

use clap::Args;
use paimon::format::meta::DataFileMeta;
use paimon::lsm::compact::CompactStep;
use paimon::{BucketPick, TimeTravel};
use serde_json::json;

use crate::args::{PartArgs, TableArgs};
use crate::commands::levels::draw;
use crate::error::CliError;
use crate::output::{bytes, counted};
use crate::session::Session;

/// Say what a compaction would pick now, and by which rule
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    part: PartArgs,
    /// What a full compaction would pick
    #[arg(long)]
    full: bool,
}

impl Explain {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.table).await?;
        let buckets = table.buckets(&TimeTravel::Latest, &self.part.selection()?).await?;
        if buckets.is_empty() && !session.json {
            return session.console.line("no data files: nothing to compact");
        }
        for bucket in &buckets {
            let pick = table.explain(bucket, self.full)?;
            if session.json {
                session.console.json(&json!({
                    "bucket": bucket.name(),
                    "partition": bucket.partition.to_map(),
                    "bucketId": bucket.bucket,
                    "snapshot": bucket.snapshot,
                    "runs": bucket.runs().len(),
                    "pick": pick.unit.as_ref().map(|unit| json!({
                        "reason": unit.reason,
                        "runs": unit.runs,
                        "files": unit.files.iter().map(|file| &file.file_name).collect::<Vec<_>>(),
                        "bytes": pick.bytes(),
                        "outputLevel": unit.output_level,
                        "dropDelete": pick.drop_delete,
                        "steps": pick.steps.iter().map(step_json).collect::<Vec<_>>(),
                    })),
                    "why": pick.why,
                }))?;
            } else {
                session.console.print(draw(bucket)?)?;
                session.console.line(text(&pick))?;
            }
        }
        Ok(())
    }
}

/// The answer in words.
pub(super) fn text(pick: &BucketPick) -> String {
    let Some(unit) = &pick.unit else {
        return format!("→ nothing to do: {}\n", pick.why);
    };
    let runs = if unit.runs == 1 { "run" } else { "runs" };
    let deletes = if pick.drop_delete {
        "deletes go away"
    } else {
        "deletes stay"
    };
    format!(
        "→ the {} newest {runs} ({} in {}) to level {}; {deletes}\n{}  because {}\n",
        unit.runs,
        bytes(pick.bytes()),
        counted(unit.files.len() as u64, "file"),
        unit.output_level,
        steps(&pick.steps),
        pick.why,
    )
}

/// What happens to the files, where changes are looked for.
fn steps(steps: &[CompactStep]) -> String {
    let is_told = |step: &CompactStep| {
        matches!(
            step,
            CompactStep::Rewrite { changelog: true, .. } | CompactStep::Upgrade { changelog: true, .. }
        )
    };
    if !steps.iter().any(is_told) {
        return String::new();
    }
    let words = steps.iter().map(|step| {
        let told = if is_told(step) {
            "and read for changes"
        } else {
            "without a look for changes"
        };
        let (done, files) = match step {
            CompactStep::Rewrite { .. } => ("merged", files_of(step).count()),
            CompactStep::Upgrade { .. } => ("only moved", 1),
        };
        format!("{} {done}, {told}", counted(files as u64, "file"))
    });
    format!("  {}\n", words.collect::<Vec<_>>().join("; "))
}

fn step_json(step: &CompactStep) -> serde_json::Value {
    let (what, changelog) = match step {
        CompactStep::Rewrite { changelog, .. } => ("rewrite", changelog),
        CompactStep::Upgrade { changelog, .. } => ("upgrade", changelog),
    };
    json!({
        "step": what,
        "files": files_of(step).map(|file| &file.file_name).collect::<Vec<_>>(),
        "changelog": changelog,
    })
}

fn files_of(step: &CompactStep) -> Box<dyn Iterator<Item = &DataFileMeta> + '_> {
    match step {
        CompactStep::Rewrite { sections, .. } => {
            let runs = sections.iter().flatten();
            Box::new(runs.flat_map(|run| run.files()).map(AsRef::as_ref))
        }
        CompactStep::Upgrade { file, .. } => Box::new(std::iter::once(file.as_ref())),
    }
}
