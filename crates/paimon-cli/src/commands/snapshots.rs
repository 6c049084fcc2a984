//! `paimon snapshots`.

use clap::Args;

use crate::args::TableArgs;
use crate::error::CliError;
use crate::output::{Grid, time_ms};
use crate::session::Session;

/// List the snapshots of a table, newest first
#[derive(Debug, Args)]
pub(crate) struct Snapshots {
    #[command(flatten)]
    table: TableArgs,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

impl Snapshots {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.table).await?;
        let snapshots = table.snapshots(self.limit).await?;
        if session.json {
            for snapshot in &snapshots {
                session
                    .console
                    .json(&serde_json::to_value(snapshot).map_err(CliError::internal)?)?;
            }
            return Ok(());
        }
        if snapshots.is_empty() {
            return session.console.line("no snapshots: nothing was committed yet");
        }
        let mut grid = Grid::new([
            ">id",
            "kind",
            "time (UTC)",
            "user",
            ">identifier",
            ">schema",
            ">records",
            ">change",
        ]);
        for snapshot in &snapshots {
            grid.row([
                snapshot.id.to_string(),
                snapshot.commit_kind.to_string(),
                time_ms(snapshot.time_millis),
                snapshot.commit_user.clone(),
                snapshot.commit_identifier.to_string(),
                snapshot.schema_id.to_string(),
                snapshot.total_record_count.to_string(),
                format!("{:+}", snapshot.delta_record_count),
            ]);
        }
        session.console.print(grid)
    }
}
