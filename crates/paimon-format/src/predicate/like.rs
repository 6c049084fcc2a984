//! SQL's `LIKE`.

use serde::{Deserialize, Serialize};

use crate::error::FormatError;

/// A pattern of `LIKE`: `%` is any text, `_` any character, `\` makes the next one of `%`, `_`, `\` plain.
///
/// Source: `org.apache.paimon.predicate.Like`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LikePattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Any,
    One,
    Char(char),
}

impl LikePattern {
    /// Reads a pattern.
    ///
    /// Errors: `Invalid` with pattern and position when `\` is not followed by `%`, `_` or `\`.
    pub fn new(text: &str) -> Result<Self, FormatError> {
        let mut parts = Vec::new();
        let mut chars = text.chars().enumerate();
        while let Some((position, c)) = chars.next() {
            parts.push(match c {
                '%' => Part::Any,
                '_' => Part::One,
                '\\' => match chars.next() {
                    Some((_, c @ ('%' | '_' | '\\'))) => Part::Char(c),
                    _ => {
                        return Err(FormatError::invalid(format!(
                            "the pattern {text:?}: expected %, _ or \\ after the \\ at position {position}"
                        )));
                    }
                },
                c => Part::Char(c),
            });
        }
        parts.dedup_by(|a, b| *a == Part::Any && *b == Part::Any);
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole of `text` is as the pattern says.
    pub fn matches(&self, text: &str) -> bool {
        let mut rest = text.chars();
        let mut parts = self.parts.as_slice();
        // Where to go on when the characters after the last `%` do not match: one character later.
        let mut retry: Option<(&[Part], std::str::Chars<'_>)> = None;
        loop {
            let matched = match parts {
                [Part::Any, after @ ..] => {
                    retry = Some((after, rest.clone()));
                    parts = after;
                    continue;
                }
                [Part::One, ..] => rest.next().is_some(),
                [Part::Char(wanted), ..] => rest.next() == Some(*wanted),
                [] => rest.as_str().is_empty(),
            };
            match (matched, parts, &mut retry) {
                (true, [], _) => return true,
                (true, [_, after @ ..], _) => parts = after,
                (false, _, Some((after, from))) => {
                    if from.next().is_none() {
                        return false;
                    }
                    (parts, rest) = (after, from.clone());
                }
                (false, _, None) => return false,
            }
        }
    }

    /// The text that every match starts with.
    pub(super) fn prefix(&self) -> String {
        let plain = self.parts.iter().map_while(|part| match part {
            Part::Char(c) => Some(*c),
            _ => None,
        });
        plain.collect()
    }

    /// Plain text with or without `%` before and after it; `None` for any other pattern.
    pub(super) fn simple(&self) -> Option<(bool, String, bool)> {
        let (before, rest) = match self.parts.as_slice() {
            [Part::Any, rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let (after, rest) = match rest {
            [rest @ .., Part::Any] => (true, rest),
            rest => (false, rest),
        };
        let text = rest.iter().map(|part| match part {
            Part::Char(c) => Some(*c),
            _ => None,
        });
        Some((before, text.collect::<Option<String>>()?, after))
    }
}

impl TryFrom<String> for LikePattern {
    type Error = FormatError;

    fn try_from(text: String) -> Result<Self, FormatError> {
        Self::new(&text)
    }
}

impl From<LikePattern> for String {
    fn from(pattern: LikePattern) -> Self {
        pattern.text
    }
}
