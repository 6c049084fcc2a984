//! `paimon truncate` and `paimon drop-partition`.

use clap::Args;
use paimon::Selection;
use serde_json::json;

use crate::args::{TableArgs, partitions};
use crate::error::CliError;
use crate::session::Session;

/// Take all rows of a table away
#[derive(Debug, Args)]
pub(crate) struct Truncate {
    #[command(flatten)]
    table: TableArgs,
}

/// Take all rows of partitions away
#[derive(Debug, Args)]
pub(crate) struct DropPartition {
    #[command(flatten)]
    table: TableArgs,
    /// The partition: `key=value,key2=value2`, or some of the keys; may be repeated
    #[arg(long, value_name = "SPEC", required = true)]
    partition: Vec<String>,
}

impl Truncate {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        truncate(session, &self.table, &Selection::all()).await
    }
}

impl DropPartition {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        truncate(session, &self.table, &partitions(&self.partition)?).await
    }
}

async fn truncate(session: &mut Session<'_>, table: &TableArgs, partitions: &Selection) -> Result<(), CliError> {
    let table = session.open(table).await?;
    let snapshot = table.write_builder().new_commit()?.truncate(partitions).await?;
    let made = table
        .snapshot_store()
        .get(snapshot)
        .await
        .map_err(paimon::Error::from)?;
    let removed = made.delta_record_count.saturating_neg();
    if session.json {
        return session
            .console
            .json(&json!({"snapshot": snapshot, "recordsRemoved": removed}));
    }
    session.console.line(format_args!(
        "removed {removed} records from the files that are read, snapshot {snapshot}"
    ))
}
