//! What is wrong with a container file, and in which field.

use std::fmt;

/// The file's reader adds the file's name.
#[derive(Debug)]
pub(crate) struct AvroError {
    /// Names of the fields around the fault, outermost first, joined by dots.
    field: String,
    message: String,
}

/// Results of decoding and encoding.
pub(crate) type Result<T> = std::result::Result<T, AvroError>;

impl AvroError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self {
            field: String::new(),
            message: message.to_string(),
        }
    }

    /// The same error inside a field.
    pub(super) fn within(mut self, field: &str) -> Self {
        self.field = if self.field.is_empty() {
            field.to_string()
        } else {
            format!("{field}.{}", self.field)
        };
        self
    }
}

impl fmt::Display for AvroError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl From<String> for AvroError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for AvroError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

impl From<paimon_format::FormatError> for AvroError {
    fn from(error: paimon_format::FormatError) -> Self {
        Self::new(error)
    }
}
