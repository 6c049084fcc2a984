//! `paimon compact`: once (`once.rs`), or for good (`watch.rs`).

mod once;
mod watch;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use paimon::format::env::Budget;

use crate::args::{OptionArgs, PartArgs, TableArgs, duration, memory};
use crate::error::CliError;
use crate::session::Session;

pub(super) use once::{print_report, text};

/// Compact a table: one pick a bucket, or everything with --full; or tables for good with --watch
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  paimon compact ./wh/shop.db/orders                                     one pick a bucket
  paimon compact ./wh/shop.db/orders --full --partition dt=2026-03-01    one sorted run
  paimon compact --watch ./wh/shop.db/orders --metrics 0.0.0.0:9184      as it is written, until interrupted
  paimon compact --watch --warehouse s3://bucket/wh --tables 'shop.*'    all tables of a database")]
pub(crate) struct Compact {
    /// Path or URL of the table's directory, for example ./warehouse/db.db/orders or s3://bucket/warehouse/db.db/orders
    #[arg(
        value_name = "TABLE",
        required_unless_present = "warehouse",
        conflicts_with = "warehouse"
    )]
    table: Option<String>,
    #[command(flatten)]
    options: OptionArgs,
    #[command(flatten)]
    part: PartArgs,
    /// Make one sorted run of each bucket, at the top level; with --watch only together with --idle-time
    #[arg(long)]
    full: bool,
    /// Say what would be compacted, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Only partitions into which nothing was written for so long, for example '1 h'
    #[arg(long, visible_alias = "older-than", value_name = "TIME", value_parser = duration)]
    idle_time: Option<Duration>,
    /// Buckets that are compacted side by side; the machine's cores when not given
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Memory for all of it, for example 512mb
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Local disk for spills and lookup files of all of it, for example 10gb; as much as there is when not given
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    disk: Option<u64>,
    /// Write what would be compacted as tasks, one a line, to this file (- is standard output), and change nothing: see paimon compact-task
    #[arg(long, value_name = "FILE", conflicts_with_all = ["watch", "dry_run"])]
    plan: Option<String>,
    /// With --plan: cut the compaction of a bucket into tasks of about so many bytes, for example 1gb
    #[arg(long, value_name = "SIZE", requires = "plan", value_parser = memory)]
    part_bytes: Option<u64>,
    /// Go on until interrupted (ctrl-c, SIGTERM): compact buckets as they are written, those with most debt first
    #[arg(long)]
    watch: bool,
    /// The directory of databases whose tables are compacted, in place of TABLE
    #[arg(long, value_name = "DIR", requires = "watch")]
    warehouse: Option<String>,
    /// Which tables of the warehouse: patterns database.table, separated by commas; * stands for any characters
    #[arg(long, value_name = "PATTERNS", requires = "warehouse", default_value = "*.*")]
    tables: String,
    /// How long to wait when there is nothing to compact
    #[arg(long, value_name = "TIME", requires = "watch", default_value = "10 s", value_parser = duration)]
    interval: Duration,
    /// Answer GET /metrics at this address in the text format of Prometheus; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", requires = "watch")]
    metrics: Option<SocketAddr>,
}

impl Compact {
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        if let Some(memory) = self.memory {
            session.env = session.env.clone().with_memory(memory);
        }
        if let Some(disk) = self.disk {
            session.env.disk = Budget::new(disk);
        }
        match self.watch {
            true => self.watch(session).await,
            false => self.once(session).await,
        }
    }

    /// The one table.
    fn table(&self) -> Result<TableArgs, CliError> {
        match &self.table {
            Some(table) => Ok(TableArgs {
                table: table.clone(),
                options: self.options.clone(),
            }),
            None => Err(CliError::usage("which TABLE?")),
        }
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cores, usize::from)
    }
}
