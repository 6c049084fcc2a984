//! Errors of this crate.

use std::fmt;

use paimon_format::{ErrorKind, FormatError};

use crate::engine::{INSERT_ONLY, refused};
use crate::kernel::Version;

/// Why versions could not be merged. State of files is never changed by it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// An engine met a row kind that it cannot take back.
    #[error("merge engine {engine} cannot take a {kind} row: {hint}")]
    Retract {
        /// The engine's name.
        engine: String,
        /// The row's kind.
        kind: paimon_format::types::RowKind,
        /// What to do about it.
        hint: String,
    },
    /// A computed value does not fit its column.
    #[error("column {column}: {function} overflows {data_type}")]
    Overflow {
        /// The column.
        column: String,
        /// The aggregate function.
        function: String,
        /// The column's type.
        data_type: String,
    },
    /// A row cannot be taken back from a column.
    #[error(
        "column {column}: aggregate function {function} does not support retraction; fields.{column}.ignore-retract = true lets it \
         ignore -U and -D rows"
    )]
    Unretractable {
        /// The column.
        column: String,
        /// The aggregate function.
        function: String,
    },
    /// Values that a column's function cannot merge.
    #[error("column {column}: {reason}")]
    Value {
        /// The column.
        column: String,
        /// What is wrong.
        reason: String,
    },
    /// The keys of a run descend. Whoever knows the run's files names them.
    #[error("the keys of sorted run {run} are not in order")]
    Unsorted {
        /// The run's number in the merge.
        run: usize,
    },
    /// An option that cannot be right.
    #[error("{0}")]
    Invalid(String),
    /// A fault of a lower layer.
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl MergeError {
    /// The kind, by which callers branch.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsorted { .. } => ErrorKind::Corrupt,
            Self::Retract { .. }
            | Self::Overflow { .. }
            | Self::Unretractable { .. }
            | Self::Value { .. }
            | Self::Invalid(_) => ErrorKind::Invalid,
            Self::Format(error) => error.kind(),
        }
    }

    /// A row that an engine refuses.
    pub fn retract(engine: &str, version: &Version<'_>) -> Self {
        refused(engine, version.kind(), INSERT_ONLY)
    }

    /// A fault of this engine.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::Format(FormatError::internal(message))
    }
}
