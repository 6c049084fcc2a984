//! Where a command reads and prints.

use std::io::{IsTerminal, Read, Write};

use crate::error::CliError;

/// Standard input, output and error of a command, so that a test or an embedding program can give its own.
pub struct Console {
    /// What `write TABLE -` reads.
    pub input: Box<dyn Read + Send>,
    /// Results.
    pub out: Box<dyn Write + Send>,
    /// Errors and progress.
    pub err: Box<dyn Write + Send>,
    /// Whether a progress bar may be drawn on the real standard error.
    pub progress: bool,
}

impl Console {
    /// The process's own streams.
    pub fn process() -> Self {
        Self {
            input: Box::new(std::io::stdin()),
            out: Box::new(std::io::BufWriter::new(std::io::stdout())),
            err: Box::new(std::io::stderr()),
            progress: std::io::stderr().is_terminal(),
        }
    }

    /// Prints to the output.
    ///
    /// Errors: `OutputClosed` when nobody reads any more (`paimon read … | head`), else the failure of the stream.
    pub(crate) fn print(&mut self, text: impl std::fmt::Display) -> Result<(), CliError> {
        write!(self.out, "{text}").map_err(CliError::output)
    }

    /// Prints a line to the output. Errors as [`Console::print`].
    pub(crate) fn line(&mut self, text: impl std::fmt::Display) -> Result<(), CliError> {
        writeln!(self.out, "{text}").map_err(CliError::output)
    }

    /// Prints a value as one line of JSON. Errors as [`Console::print`].
    pub(crate) fn json(&mut self, value: &serde_json::Value) -> Result<(), CliError> {
        self.line(value)
    }

    /// Hands everything printed to the operating system.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        self.out.flush().map_err(CliError::output)
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}
