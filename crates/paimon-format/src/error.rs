//! Errors of this crate, and the kinds by which callers of every crate branch.

use std::fmt;

/// What a caller can do about an error. All error types of the workspace have `kind() -> ErrorKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Absent, or its snapshot has expired.
    NotFound,
    /// Another commit removed or overlapped the files of this one: plan again.
    Conflict,
    /// Storage or network; the outcome may be unknown. Retry later.
    Unavailable,
    /// Options, schema or call are wrong: fix them.
    Invalid,
    /// A file is not what it should be. The message names file, place and what was expected.
    Corrupt,
    /// The table uses a feature that this engine does not have. The message names it.
    Unsupported,
    /// A fault of this engine: report it.
    Internal,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
            Self::Unavailable => "unavailable",
            Self::Invalid => "invalid",
            Self::Corrupt => "corrupt",
            Self::Unsupported => "unsupported",
            Self::Internal => "internal",
        };
        f.write_str(name)
    }
}

/// Why a value, a row, a file or the storage below could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// A file's bytes are not what its format demands.
    #[error("{path}: corrupt: {message}")]
    Corrupt {
        /// The file, relative to its storage root.
        path: String,
        /// Where in the file, and what was expected.
        message: String,
    },
    /// A call, an option or a value that cannot be right.
    #[error("{0}")]
    Invalid(String),
    /// A feature that this engine does not have.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] crate::storage::StorageError),
    /// A fault of this engine.
    #[error("internal error: {0}")]
    Internal(String),
}

impl FormatError {
    /// The kind, by which callers branch.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Storage(error) => error.kind(),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// A file whose bytes are wrong.
    pub fn corrupt(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Corrupt {
            path: path.into(),
            message: message.to_string(),
        }
    }

    /// A wrong call, option or value.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }

    /// A feature that is not there.
    pub fn unsupported(message: impl fmt::Display) -> Self {
        Self::Unsupported(message.to_string())
    }

    /// A fault of this engine.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::Internal(message.to_string())
    }
}
