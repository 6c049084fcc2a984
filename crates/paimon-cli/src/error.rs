//! Why a command failed, in one paragraph.

use crate::signals::Signal;

/// A command's failure. Its text is what the user sees; nothing else is printed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// Arguments that cannot be right.
    #[error("{0}")]
    Usage(String),
    /// A row of the input could not be used.
    #[error("{input}, line {line}: {message}")]
    Input {
        /// The file, or `standard input`.
        input: String,
        /// Counted from 1.
        line: usize,
        /// Which column, what was there and what was expected.
        message: String,
    },
    /// A file of the command line (not of the table) could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// As the user gave it.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The command was asked to end before its work was done.
    #[error("stopped by {signal}: {left}")]
    Stopped {
        /// What asked.
        signal: Signal,
        /// What is in the table all the same.
        left: String,
    },
    /// Nobody reads the output any more. Ends the command quietly.
    #[error("the output was closed")]
    OutputClosed,
    /// The output could not be written.
    #[error("the output could not be written: {0}")]
    Output(std::io::Error),
    /// The table or its storage failed.
    #[error(transparent)]
    Table(#[from] paimon::Error),
    /// A value could not be turned to or from text.
    #[error(transparent)]
    Format(#[from] paimon::format::FormatError),
    /// A fault of this program.
    #[error("internal error: {0}")]
    Internal(String),
    /// Arrow refused a batch.
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}

impl CliError {
    /// Wrong arguments.
    pub(crate) fn usage(message: impl std::fmt::Display) -> Self {
        Self::Usage(message.to_string())
    }

    /// Asked to end. `left`: what is in the table all the same.
    pub(crate) fn stopped(signal: Signal, left: impl std::fmt::Display) -> Self {
        Self::Stopped {
            signal,
            left: left.to_string(),
        }
    }

    /// The exit code of a process that fails so.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Stopped { signal, .. } => signal.exit_code(),
            _ => 1,
        }
    }

    /// A fault of this program.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::Internal(message.to_string())
    }

    /// A failure of the output stream.
    pub(crate) fn output(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Output(error)
        }
    }

    /// A failure of a local file.
    pub(crate) fn file(path: impl std::fmt::Display, source: std::io::Error) -> Self {
        Self::File {
            path: path.to_string(),
            source,
        }
    }
}
