//! The kind of a change.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a row in a change stream or a data file. The number is the byte that `_VALUE_KIND` holds.
///
/// Source: `org.apache.paimon.types.RowKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(i8)]
pub enum RowKind {
    /// `+I`: a new row.
    Insert = 0,
    /// `-U`: the row before an update.
    UpdateBefore = 1,
    /// `+U`: the row after an update.
    UpdateAfter = 2,
    /// `-D`: a row that goes away.
    Delete = 3,
}

impl RowKind {
    /// From the byte of a file; `None` for anything but 0..=3.
    pub fn from_byte(byte: i8) -> Option<Self> {
        match byte {
            0 => Some(Self::Insert),
            1 => Some(Self::UpdateBefore),
            2 => Some(Self::UpdateAfter),
            3 => Some(Self::Delete),
            _ => None,
        }
    }

    /// From `+I`, `-U`, `+U`, `-D`, the letter in either case.
    pub fn from_short_string(text: &str) -> Option<Self> {
        match text {
            "+I" | "+i" => Some(Self::Insert),
            "-U" | "-u" => Some(Self::UpdateBefore),
            "+U" | "+u" => Some(Self::UpdateAfter),
            "-D" | "-d" => Some(Self::Delete),
            _ => None,
        }
    }

    /// `+I`, `-U`, `+U` or `-D`.
    pub fn short_string(self) -> &'static str {
        match self {
            Self::Insert => "+I",
            Self::UpdateBefore => "-U",
            Self::UpdateAfter => "+U",
            Self::Delete => "-D",
        }
    }

    /// `+I` and `+U`: the row is there.
    pub fn is_add(self) -> bool {
        matches!(self, Self::Insert | Self::UpdateAfter)
    }

    /// `-U` and `-D`: the row is taken back.
    pub fn is_retract(self) -> bool {
        !self.is_add()
    }
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_strings_are_read_in_either_case() {
        for byte in 0..4 {
            let kind = RowKind::from_byte(byte).unwrap();
            let text = kind.short_string();
            assert_eq!(RowKind::from_short_string(text), Some(kind));
            assert_eq!(RowKind::from_short_string(&text.to_lowercase()), Some(kind));
        }
        for text in ["", "+", "+X", "-i", "+d", " +I"] {
            assert_eq!(RowKind::from_short_string(text), None, "{text}");
        }
    }
}
