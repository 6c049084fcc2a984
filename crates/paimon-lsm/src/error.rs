//! Errors of this crate.

use paimon_format::{ErrorKind, FormatError};
use paimon_merge::MergeError;

/// Why a bucket could not be written, compacted or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LsmError {
    /// The levels are not what they must be (overlap inside a level, a file twice).
    #[error("the levels of the bucket are broken: {0}")]
    Levels(String),
    /// A wrong setting or call.
    #[error("{0}")]
    Invalid(String),
    /// Merging failed.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A file could not be read or written.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A fault of this engine.
    #[error("internal error: {0}")]
    Internal(String),
}

impl LsmError {
    /// The kind, by which callers branch.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Levels(_) => ErrorKind::Corrupt,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Merge(error) => error.kind(),
            Self::Format(error) => error.kind(),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}
