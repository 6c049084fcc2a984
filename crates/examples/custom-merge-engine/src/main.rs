//! The command line with an engine and a function more.

use std::process::ExitCode;

fn main() -> ExitCode {
    paimon_cli::run(custom_merge_engine::registry(), std::env::args_os())
}
