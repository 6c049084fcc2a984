//! Errors of this crate.

use paimon_format::storage::StorageError;
use paimon_format::{ErrorKind, FormatError};
use paimon_lsm::LsmError;
use paimon_manifest::ManifestError;
use paimon_merge::MergeError;

/// Why a table could not be made, opened, written, compacted or read.
///
/// Unless a variant says otherwise nothing about the table is changed: files that were written for a failed call are removed,
/// or are unreferenced and fall to orphan cleaning.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such table, database, snapshot, tag or column.
    #[error("{0}")]
    NotFound(String),
    /// A wrong call, option, schema or value.
    #[error("{0}")]
    Invalid(String),
    /// The table uses a feature that this engine does not have.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// A fault of this engine.
    #[error("internal error: {0}")]
    Internal(String),
    /// Something failed in one bucket.
    #[error("{bucket}: {source}")]
    Bucket {
        /// The bucket's directory, relative to the table.
        bucket: String,
        /// What failed.
        source: Box<Error>,
    },
    /// Metadata could not be read or written, or a commit failed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The merge tree of a bucket failed.
    #[error(transparent)]
    Lsm(#[from] LsmError),
    /// A merge engine refused its options or rows.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A value, row or file could not be used.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Arrow refused a batch.
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
}

impl Error {
    /// The kind, by which callers branch.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Internal(_) | Self::Arrow(_) => ErrorKind::Internal,
            Self::Bucket { source, .. } => source.kind(),
            Self::Manifest(error) => error.kind(),
            Self::Lsm(error) => error.kind(),
            Self::Merge(error) => error.kind(),
            Self::Format(error) => error.kind(),
            Self::Storage(error) => error.kind(),
        }
    }

    pub(crate) fn invalid(message: impl std::fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }

    pub(crate) fn not_found(message: impl std::fmt::Display) -> Self {
        Self::NotFound(message.to_string())
    }

    pub(crate) fn unsupported(message: impl std::fmt::Display) -> Self {
        Self::Unsupported(message.to_string())
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        Self::Internal(message.to_string())
    }

    /// The same error, saying in which bucket it happened, unless it names a file of the bucket already.
    pub(crate) fn in_bucket(self, bucket: &str) -> Self {
        if self.to_string().starts_with(bucket) {
            return self;
        }
        Self::Bucket {
            bucket: bucket.to_owned(),
            source: Box::new(self),
        }
    }
}

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
