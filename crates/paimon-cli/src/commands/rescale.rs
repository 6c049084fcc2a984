//! `paimon rescale`.

use clap::Args;
use serde_json::json;

use crate::args::{TableArgs, partitions};
use crate::error::CliError;
use crate::output::{Grid, counted};
use crate::session::Session;
use crate::signals::Signals;

/// Give a table another fixed number of buckets, and rewrite its partitions into them
#[derive(Debug, Args)]
#[command(
    after_help = "Nobody should write meanwhile: a partition that someone has written to since it was read is not rewritten, and says so. \
    Started again the command does what is left."
)]
pub(crate) struct Rescale {
    #[command(flatten)]
    table: TableArgs,
    /// How many buckets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    buckets: i32,
    /// Only this partition: `key=value,key2=value2`, or some of the keys; may be repeated. Others refuse writes until they are rescaled
    #[arg(long, value_name = "SPEC")]
    partition: Vec<String>,
}

impl Rescale {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        let table = session.open(&self.table).await?;
        let signals = Signals::listen();
        let rescaled = table
            .rescale(self.buckets, &partitions(&self.partition)?, &signals.stop())
            .await?;
        if let Some(signal) = signals.asked().filter(|_| rescaled.stopped) {
            let done = counted(rescaled.partitions.len() as u64, "partition");
            return Err(CliError::stopped(
                signal,
                format_args!("{done} rewritten; run it again for the rest"),
            ));
        }
        if session.json {
            let partitions = rescaled.partitions.iter().map(|partition| {
                json!({
                    "partition": partition.partition.to_string(),
                    "bucketsBefore": partition.buckets_before,
                    "buckets": self.buckets,
                    "rows": partition.rows,
                    "snapshot": partition.snapshot,
                })
            });
            return session.console.json(&partitions.collect());
        }
        if rescaled.partitions.is_empty() {
            return session
                .console
                .line(format_args!("nothing to do: all files are in {} buckets", self.buckets));
        }
        let mut grid = Grid::new(["partition", ">buckets before", ">buckets", ">rows", ">snapshot"]);
        for partition in &rescaled.partitions {
            grid.row([
                partition.partition.to_string(),
                partition.buckets_before.to_string(),
                self.buckets.to_string(),
                partition.rows.to_string(),
                partition.snapshot.to_string(),
            ]);
        }
        session.console.print(grid)
    }
}
