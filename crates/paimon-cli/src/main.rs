//! The `paimon` binary: the command line with the built-in merge engines.

use std::process::ExitCode;

fn main() -> ExitCode {
    paimon_cli::run(paimon::Registry::default(), std::env::args_os())
}
