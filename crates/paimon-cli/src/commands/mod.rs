//! One command a file.

mod changelog;
mod compact;
mod compact_task;
mod create;
mod demo;
mod explain;
mod files;
mod ingest;
mod levels;
mod read;
mod rescale;
mod schema;
mod snapshots;
mod truncate;
mod write;

use clap::Subcommand;

pub(crate) use read::RowFormat;

use crate::error::CliError;
use crate::session::Session;

/// What the program does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Create(create::Create),
    Write(write::Write),
    Ingest(ingest::Ingest),
    Read(read::Read),
    Changelog(changelog::Changelog),
    Compact(compact::Compact),
    CompactTask(compact_task::CompactTask),
    Truncate(truncate::Truncate),
    DropPartition(truncate::DropPartition),
    Rescale(rescale::Rescale),
    Levels(levels::Levels),
    Explain(explain::Explain),
    Snapshots(snapshots::Snapshots),
    Files(files::Files),
    Schema(schema::Schema),
}

impl Command {
    /// Does it. Errors: the one paragraph that the user sees.
    pub(crate) async fn run(self, session: &mut Session<'_>) -> Result<(), CliError> {
        match self {
            Self::Demo(command) => command.run(session).await,
            Self::Create(command) => command.run(session).await,
            Self::Write(command) => command.run(session).await,
            Self::Ingest(command) => command.run(session).await,
            Self::Read(command) => command.run(session).await,
            Self::Changelog(command) => command.run(session).await,
            Self::Compact(command) => command.run(session).await,
            Self::CompactTask(command) => command.run(session).await,
            Self::Truncate(command) => command.run(session).await,
            Self::DropPartition(command) => command.run(session).await,
            Self::Rescale(command) => command.run(session).await,
            Self::Levels(command) => command.run(session).await,
            Self::Explain(command) => command.run(session).await,
            Self::Snapshots(command) => command.run(session).await,
            Self::Files(command) => command.run(session).await,
            Self::Schema(command) => command.run(session).await,
        }
    }
}
