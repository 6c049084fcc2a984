//! Why a storage call failed.

use std::fmt;
use std::ops::Range;

use crate::error::ErrorKind;

/// Why a storage call failed. Always names the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// There is no such file.
    #[error("{path}: no such file")]
    NotFound {
        /// Relative to the storage's root.
        path: String,
    },
    /// The file is shorter than its reader was told.
    #[error("{path}: bytes {}..{} asked for, but the file has {size}", range.start, range.end)]
    OutOfRange {
        /// Relative to the storage's root.
        path: String,
        /// What was asked for.
        range: Range<u64>,
        /// Bytes of the file.
        size: u64,
    },
    /// The storage could not be reached or gave no clear answer: whether a write happened is unknown.
    #[error("{path}: storage unavailable: {message}")]
    Unavailable {
        /// Relative to the storage's root.
        path: String,
        /// What the storage said.
        message: String,
    },
    /// The storage refused the call, and will refuse it again (permissions, a name it cannot hold, a URL nobody configured).
    #[error("{path}: refused by the storage: {message}")]
    Refused {
        /// Relative to the storage's root.
        path: String,
        /// What the storage said.
        message: String,
    },
}

impl StorageError {
    /// The kind, by which callers branch.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound { .. } => ErrorKind::NotFound,
            Self::OutOfRange { .. } => ErrorKind::Corrupt,
            Self::Unavailable { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } => ErrorKind::Invalid,
        }
    }

    /// No such file.
    pub fn not_found(path: impl Into<String>) -> Self {
        Self::NotFound { path: path.into() }
    }

    /// No clear answer.
    pub fn unavailable(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Unavailable {
            path: path.into(),
            message: message.to_string(),
        }
    }

    /// A refusal.
    pub fn refused(path: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Refused {
            path: path.into(),
            message: message.to_string(),
        }
    }
}
