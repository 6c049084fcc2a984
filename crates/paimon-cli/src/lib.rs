#![doc = include_str!("../README.md")]

mod args;
mod commands;
mod error;
mod ingest;
mod input;
pub mod json;
mod metrics_endpoint;
mod output;
mod progress;
mod same_file;
mod session;
mod signals;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use paimon::format::env::Env;
use paimon::{Context, Registry};

pub use error::CliError;
pub use output::Console;
pub use signals::Signal;

use crate::commands::Command;
use crate::session::Session;

/// Compact, write, read and explain Apache Paimon primary-key tables
#[derive(Debug, Parser)]
#[command(name = "paimon", version, max_term_width = 100, arg_required_else_help = true)]
struct Cli {
    /// Print JSON, one value a line, instead of text for people
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

/// Runs the command line of a process: `args` with the program's name first, output on the process's streams.
///
/// The exit code is 0 when the command did its job ("nothing to do" included), 1 when it failed, 2 for wrong arguments,
/// 130 or 143 when ctrl-c or SIGTERM stopped it before its work was done.
pub fn run(registry: Registry, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut console = Console::process();
    // Logs go to standard error, and only when asked for: RUST_LOG=info.
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    // A program that embeds this one may have set its own subscriber.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .try_init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(console.err, "error: the async runtime does not start: {error}");
            return ExitCode::from(1);
        }
    };
    let code = runtime.block_on(async {
        match Context::system() {
            Ok(context) => execute(registry, args, context.env().clone(), &mut console).await,
            Err(error) => {
                let _ = writeln!(console.err, "error: {error}");
                1
            }
        }
    });
    // A read of standard input that nobody waits for any more must not hold up the end.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// Runs one command with a given environment and console: what tests and embedding programs call. Returns the exit code of
/// [`run`]. Must be called in a tokio runtime with all its drivers: commands that write listen for signals.
pub async fn execute(
    registry: Registry,
    args: impl IntoIterator<Item = OsString>,
    env: Env,
    console: &mut Console,
) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(message) => {
            // Help and version are no failure and belong on the output.
            let text = message.render();
            let stream = if message.use_stderr() {
                &mut console.err
            } else {
                &mut console.out
            };
            let _ = write!(stream, "{text}").and_then(|()| stream.flush());
            return u8::try_from(message.exit_code()).unwrap_or(2);
        }
    };
    let mut session = Session::new(registry, env, console, cli.json);
    let result = cli
        .command
        .run(&mut session)
        .await
        .and_then(|()| session.console.flush());
    match result {
        Ok(()) | Err(CliError::OutputClosed) => 0,
        Err(error) => {
            let _ = session.console.flush();
            let _ = writeln!(session.console.err, "error: {error}");
            error.exit_code()
        }
    }
}
