//! Runs golden scenarios, foreign tables, pick tables and hash tables against this engine and compares the answers.
//!
//! | Command | Material |
//! |---|---|
//! | `golden DIR…` | every `scenario.json` below the folders is played on this engine and compared with the expectation beside it |
//! | `tables DIR…` | tables that another engine wrote are read and compared, snapshot by snapshot |
//! | `pick FILE.jsonl…` | decisions of the reference's compaction picker |
//! | `hash FILE.jsonl…` | `BinaryRow` bytes, hashes and buckets of the reference |
//!
//! Each prints what differs, then one line `N passed, N failed, N skipped`, and ends with exit code 1 on a failure.

mod expectation;
mod foreign;
mod golden;
mod hash;
mod observe;
mod pick;
mod player;
mod queries;
mod rows;
mod scenario;
mod tables;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::tally::Tally;

#[derive(Parser)]
#[command(
    name = "paimon-conformance",
    about = "Compares this engine with recorded answers of the reference."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays every scenario.json below the folders and compares rows, changelog, snapshots and files.
    Golden {
        /// Leaves the table of each scenario as `DIR/<scenario name>`, for other readers.
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
        /// Folders.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
    /// Reads the tables that other engines wrote: warehouses beside scenarios, and folders with a rows.json.
    Tables {
        /// Folders.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
    /// Replays pick decisions. `*-master.jsonl`: the current rule; `*-2.0.0.jsonl`: release 2.0.0; others: release 1.4.2.
    Pick {
        /// Files, one decision a line.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Replays binary rows, hashes and buckets.
    Hash {
        /// Files, one row a line.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut tally = Tally::default();
    let result = match arguments.command {
        Command::Golden { keep, folders } => golden::run(&folders, keep.as_deref(), &mut tally).await,
        Command::Tables { folders } => tables::run(&folders, &mut tally).await,
        Command::Pick { files } => pick::run(&files, &mut tally),
        Command::Hash { files } => hash::run(&files, &mut tally),
    };
    if let Err(error) = result {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    println!("{tally}");
    if tally.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
