//! Errors of this crate.

/// Why one record of a stream cannot become rows. The stream goes on behind it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(String);

impl RecordError {
    /// With what was found and what was expected.
    pub fn new(message: impl std::fmt::Display) -> Self {
        Self(message.to_string())
    }

    /// The same about a column.
    pub(crate) fn in_column(self, name: &str) -> Self {
        Self(format!("column {name}: {}", self.0))
    }
}

impl From<crate::json::JsonError> for RecordError {
    fn from(error: crate::json::JsonError) -> Self {
        Self::new(error)
    }
}
