//! What one value has to be.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::predicate::LikePattern;
use crate::types::{DataField, Datum, TypeKind, array_from_datums};

/// A test of one value. Literals have the column's type; a null literal makes a comparison neither true nor false.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Test {
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
    /// `=`
    Equal(Datum),
    /// `<>`
    NotEqual(Datum),
    /// `<`
    Less(Datum),
    /// `<=`
    LessOrEqual(Datum),
    /// `>`
    Greater(Datum),
    /// `>=`
    GreaterOrEqual(Datum),
    /// `IN (…)`
    In(Vec<Datum>),
    /// `NOT IN (…)`
    NotIn(Vec<Datum>),
    /// `BETWEEN … AND …`, ends included
    Between(Datum, Datum),
    /// A string that starts so.
    StartsWith(String),
    /// A string that ends so.
    EndsWith(String),
    /// A string that has this in it.
    Contains(String),
    /// `LIKE`
    Like(LikePattern),
}

impl Test {
    /// `LIKE pattern`, as the simplest test that means the same: `abc%` is a start, `%abc` an end, `%abc%` a part, `abc` a value.
    ///
    /// Errors: `Invalid` when an escape (`\`) is not followed by `%`, `_` or `\`.
    pub fn like(pattern: &str) -> Result<Self, FormatError> {
        let pattern = LikePattern::new(pattern)?;
        Ok(match pattern.simple() {
            Some((false, text, false)) => Self::Equal(Datum::String(text)),
            Some((false, text, true)) => Self::StartsWith(text),
            Some((true, text, false)) => Self::EndsWith(text),
            Some((true, text, true)) => Self::Contains(text),
            None => Self::Like(pattern),
        })
    }

    /// Whether a value passes; `None` is SQL's unknown.
    pub fn on(&self, value: &Datum) -> Option<bool> {
        let order = |literal: &Datum| (!value.is_null() && !literal.is_null()).then(|| value.compare(literal));
        let text = |test: &dyn Fn(&str) -> bool| match value {
            Datum::String(text) => Some(test(text)),
            _ => None,
        };
        match self {
            Self::IsNull => Some(value.is_null()),
            Self::IsNotNull => Some(!value.is_null()),
            Self::Equal(literal) => order(literal).map(|order| order.is_eq()),
            Self::NotEqual(literal) => order(literal).map(|order| order.is_ne()),
            Self::Less(literal) => order(literal).map(|order| order.is_lt()),
            Self::LessOrEqual(literal) => order(literal).map(|order| order.is_le()),
            Self::Greater(literal) => order(literal).map(|order| order.is_gt()),
            Self::GreaterOrEqual(literal) => order(literal).map(|order| order.is_ge()),
            Self::In(literals) => {
                let mut unknown = value.is_null();
                for literal in literals {
                    match order(literal) {
                        Some(order) if order.is_eq() => return Some(true),
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                (!unknown).then_some(false)
            }
            Self::NotIn(literals) => Self::In(literals.clone()).on(value).map(|found| !found),
            Self::Between(low, high) => {
                let (above, below) = (
                    order(low).map(|order| order.is_ge()),
                    order(high).map(|order| order.is_le()),
                );
                match (above, below) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            Self::StartsWith(start) => text(&|text| text.starts_with(start)),
            Self::EndsWith(end) => text(&|text| text.ends_with(end)),
            Self::Contains(part) => text(&|text| text.contains(part)),
            Self::Like(pattern) => text(&|text| pattern.matches(text)),
        }
    }

    /// The literals that have the column's type.
    pub(super) fn literals(&self) -> Vec<&Datum> {
        match self {
            Self::IsNull | Self::IsNotNull => vec![],
            Self::Equal(literal)
            | Self::NotEqual(literal)
            | Self::Less(literal)
            | Self::LessOrEqual(literal)
            | Self::Greater(literal)
            | Self::GreaterOrEqual(literal) => vec![literal],
            Self::In(literals) | Self::NotIn(literals) => literals.iter().collect(),
            Self::Between(low, high) => vec![low, high],
            Self::StartsWith(_) | Self::EndsWith(_) | Self::Contains(_) | Self::Like(_) => vec![],
        }
    }

    /// Whether the test can be put to a column.
    pub(super) fn check(&self, field: &DataField) -> Result<(), FormatError> {
        let refuse = |what: &str| {
            Err(FormatError::invalid(format!(
                "the filter `{}` {self}: {what}, the column is {}",
                field.name, field.data_type
            )))
        };
        let is_string = matches!(field.data_type.kind, TypeKind::Char(_) | TypeKind::VarChar(_));
        match self {
            Self::StartsWith(_) | Self::EndsWith(_) | Self::Contains(_) | Self::Like(_) if !is_string => {
                refuse("needs a string")
            }
            _ => {
                let mut nullable = field.clone();
                nullable.data_type.nullable = true;
                match array_from_datums(&nullable, self.literals()) {
                    Ok(_) => Ok(()),
                    // A time too far for the column's unit is still a time to compare with.
                    Err(_)
                        if self
                            .literals()
                            .iter()
                            .all(|literal| is_time(literal) || literal.is_null())
                            && holds_times(field) =>
                    {
                        Ok(())
                    }
                    Err(_) => refuse("a literal of another type"),
                }
            }
        }
    }
}

fn is_time(literal: &Datum) -> bool {
    matches!(literal, Datum::Timestamp { .. })
}

fn holds_times(field: &DataField) -> bool {
    matches!(
        field.data_type.kind,
        TypeKind::Timestamp(_) | TypeKind::LocalZonedTimestamp(_)
    )
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |literals: &[Datum]| {
            let literals: Vec<String> = literals.iter().map(literal_text).collect();
            literals.join(", ")
        };
        match self {
            Self::IsNull => f.write_str("IS NULL"),
            Self::IsNotNull => f.write_str("IS NOT NULL"),
            Self::Equal(literal) => write!(f, "= {}", literal_text(literal)),
            Self::NotEqual(literal) => write!(f, "<> {}", literal_text(literal)),
            Self::Less(literal) => write!(f, "< {}", literal_text(literal)),
            Self::LessOrEqual(literal) => write!(f, "<= {}", literal_text(literal)),
            Self::Greater(literal) => write!(f, "> {}", literal_text(literal)),
            Self::GreaterOrEqual(literal) => write!(f, ">= {}", literal_text(literal)),
            Self::In(literals) => write!(f, "IN ({})", list(literals)),
            Self::NotIn(literals) => write!(f, "NOT IN ({})", list(literals)),
            Self::Between(low, high) => write!(f, "BETWEEN {} AND {}", literal_text(low), literal_text(high)),
            Self::StartsWith(text) => write!(f, "STARTS WITH '{}'", text.replace('\'', "''")),
            Self::EndsWith(text) => write!(f, "ENDS WITH '{}'", text.replace('\'', "''")),
            Self::Contains(text) => write!(f, "CONTAINS '{}'", text.replace('\'', "''")),
            Self::Like(pattern) => write!(f, "LIKE '{}'", pattern.as_str().replace('\'', "''")),
        }
    }
}

/// A literal without its type: decimals unscaled.
fn literal_text(literal: &Datum) -> String {
    match literal {
        Datum::Null => "NULL".to_owned(),
        Datum::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_text(&crate::types::DataType::nullable(TypeKind::Variant)),
    }
}
