//! Errors of this crate.

use paimon_format::{ErrorKind, FormatError};

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
            Self::Retract { .. } | Self::Overflow { .. } | Self::Invalid(_) => ErrorKind::Invalid,
            Self::Format(error) => error.kind(),
        }
    }
}
