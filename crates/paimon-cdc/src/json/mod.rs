//! JSON values that keep what a change stream must not lose: the digits of numbers and the order of members.
//!
//! A general parser reads `1234567890123456.7891` as the nearest double; here a number stays its text until the column's type is known.

mod parser;

use std::borrow::Cow;
use std::fmt::{self, Write};

pub use parser::{JsonError, MAX_DEPTH, Member, members, parse};

/// A JSON value. Text without escapes and numbers borrow from the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as it is written.
    Number(&'a str),
    /// A text, unescaped.
    String(Cow<'a, str>),
    /// The elements.
    Array(Vec<Json<'a>>),
    /// The members in their order; a name may come twice, the last one counts.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// A member of an object that is not null.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        let found = match self {
            Self::Object(members) => members.iter().rev().find(|(key, _)| key == name),
            _ => None,
        };
        found.map(|(_, value)| value).filter(|value| **value != Self::Null)
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// What it is, for errors: `a number`.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a text",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

/// Without blanks, numbers and members as they came.
impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => write_text(f, text),
            Self::Array(elements) => {
                f.write_char('[')?;
                for (i, element) in elements.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    write!(f, "{element}")?;
                }
                f.write_char(']')
            }
            Self::Object(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        f.write_char(',')?;
                    }
                    write_text(f, name)?;
                    write!(f, ":{value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for char in text.chars() {
        match char {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests;
