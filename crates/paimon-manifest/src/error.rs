//! Errors of this crate.

use std::fmt;

use paimon_format::storage::StorageError;
use paimon_format::{ErrorKind, FormatError};

/// Why a schema, a snapshot, a manifest, a scan or a commit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A snapshot, tag or schema that is not there (any more).
    #[error("{0}")]
    NotFound(String),
    /// Another commit removed or overlapped the files of this one. Nothing of this commit is visible; plan again.
    #[error("commit conflict: {0}")]
    Conflict(String),
    /// Another process has made this commit, under the same user and identifier: this snapshot. Nothing of this one is visible.
    #[error("another process of this commit user made the same commit: snapshot {0}")]
    AlreadyCommitted(i64),
    /// The commit was given up after its retries, and certainly nothing of this snapshot is visible.
    #[error("commit given up after {attempts} attempts: {message}")]
    GaveUp {
        /// How often it was tried.
        attempts: u32,
        /// What went wrong last.
        message: String,
    },
    /// The commit was given up, and the storage left open whether its snapshot is there: recover by offering it again under the
    /// same user and identifier. Its files must not be deleted.
    #[error("commit given up after {attempts} attempts, its snapshot may be there all the same: {message}")]
    Unclear {
        /// How often it was tried.
        attempts: u32,
        /// What went wrong last.
        message: String,
    },
    /// A metadata file's bytes are not what its format demands.
    #[error("{path}: corrupt: {message}")]
    Corrupt {
        /// The file, relative to the table.
        path: String,
        /// Where in the file, and what was expected.
        message: String,
    },
    /// A call, an option or a schema that cannot be right.
    #[error("{0}")]
    Invalid(String),
    /// A feature of the table that this engine does not have.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// The layers below: rows, types, storage.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl ManifestError {
    /// The kind, by which callers branch.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Conflict(_) | Self::AlreadyCommitted(_) => ErrorKind::Conflict,
            Self::GaveUp { .. } | Self::Unclear { .. } => ErrorKind::Unavailable,
            Self::Corrupt { .. } => ErrorKind::Corrupt,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Format(error) => error.kind(),
        }
    }

    /// A file whose bytes are wrong.
    pub(crate) fn corrupt(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Corrupt {
            path: path.into(),
            message: message.to_string(),
        }
    }

    /// A wrong call, option or schema.
    pub(crate) fn invalid(message: impl fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }
}

impl From<StorageError> for ManifestError {
    fn from(error: StorageError) -> Self {
        Self::Format(FormatError::Storage(error))
    }
}

/// Results of this crate.
pub(crate) type Result<T, E = ManifestError> = std::result::Result<T, E>;
