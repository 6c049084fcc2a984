//! The tree of a filter.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::predicate::Test;
use crate::types::DataField;

/// A filter over rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Predicate {
    /// All of them; true when there are none.
    And(Vec<Predicate>),
    /// One of them at least; false when there are none.
    Or(Vec<Predicate>),
    /// The opposite; null stays null.
    Not(Box<Predicate>),
    /// A test of one column.
    Column {
        /// The column's name.
        name: String,
        /// What its value has to be.
        test: Test,
    },
}

impl Predicate {
    /// A test of the column `name`.
    pub fn column(name: impl Into<String>, test: Test) -> Self {
        Self::Column {
            name: name.into(),
            test,
        }
    }

    /// Both; conjunctions are merged.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::And(mut all), Self::And(more)) => {
                all.extend(more);
                Self::And(all)
            }
            (Self::And(mut all), one) | (one, Self::And(mut all)) => {
                all.push(one);
                Self::And(all)
            }
            (one, other) => Self::And(vec![one, other]),
        }
    }

    /// The parts of which each has to be true, `NOT` moved down first. A filter with `OR` at its top is one part.
    pub fn conjuncts(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        self.moved_down(false).split(&mut parts);
        parts
    }

    fn split(self, parts: &mut Vec<Self>) {
        match self {
            Self::And(all) => all.into_iter().for_each(|part| part.split(parts)),
            part => parts.push(part),
        }
    }

    /// The same filter with `NOT` before columns only.
    fn moved_down(&self, negated: bool) -> Self {
        let parts = |all: &[Self]| all.iter().map(|part| part.moved_down(negated)).collect();
        match (self, negated) {
            (Self::And(all), false) | (Self::Or(all), true) => Self::And(parts(all)),
            (Self::Or(all), false) | (Self::And(all), true) => Self::Or(parts(all)),
            (Self::Not(inner), negated) => inner.moved_down(!negated),
            (Self::Column { .. }, false) => self.clone(),
            (Self::Column { .. }, true) => Self::Not(Box::new(self.clone())),
        }
    }

    /// The names of the columns that it tests.
    pub fn columns(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        self.add_columns(&mut names);
        names
    }

    fn add_columns<'a>(&'a self, names: &mut BTreeSet<&'a str>) {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().for_each(|part| part.add_columns(names)),
            Self::Not(inner) => inner.add_columns(names),
            Self::Column { name, .. } => {
                names.insert(name);
            }
        }
    }

    /// What it demands of the columns that `keep` names: a filter that passes every row that this one passes. `None` when it demands
    /// nothing of them alone.
    pub fn project(&self, keep: &dyn Fn(&str) -> bool) -> Option<Self> {
        self.moved_down(false).projected(keep)
    }

    fn projected(self, keep: &dyn Fn(&str) -> bool) -> Option<Self> {
        match self {
            Self::And(all) if !all.is_empty() => {
                let mut parts: Vec<_> = all.into_iter().filter_map(|part| part.projected(keep)).collect();
                match parts.len() {
                    0 | 1 => parts.pop(),
                    _ => Some(Self::And(parts)),
                }
            }
            Self::Or(all) => all
                .into_iter()
                .map(|part| part.projected(keep))
                .collect::<Option<_>>()
                .map(Self::Or),
            part => part.columns().iter().all(|name| keep(name)).then_some(part),
        }
    }

    /// The same filter about columns of other names.
    pub fn renamed(&self, name_of: &dyn Fn(&str) -> String) -> Self {
        let parts = |all: &[Self]| all.iter().map(|part| part.renamed(name_of)).collect();
        match self {
            Self::And(all) => Self::And(parts(all)),
            Self::Or(all) => Self::Or(parts(all)),
            Self::Not(inner) => Self::Not(Box::new(inner.renamed(name_of))),
            Self::Column { name, test } => Self::column(name_of(name), test.clone()),
        }
    }

    /// Whether the filter can be put to rows of `fields`.
    ///
    /// Errors: `Invalid` names the column that is unknown, or whose type is not that of a literal.
    pub fn check(&self, fields: &[DataField]) -> Result<(), FormatError> {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().try_for_each(|part| part.check(fields)),
            Self::Not(inner) => inner.check(fields),
            Self::Column { name, test } => match fields.iter().find(|field| field.name == *name) {
                Some(field) => test.check(field),
                None => Err(unknown_column(name)),
            },
        }
    }
}

pub(super) fn unknown_column(name: &str) -> FormatError {
    FormatError::invalid(format!("the filter tests the column {name}, which is not there"))
}

/// SQL text for messages; literals are shown without their type.
impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, all: &[Self], word: &str, none: &str| {
            if all.is_empty() {
                return f.write_str(none);
            }
            for (i, part) in all.iter().enumerate() {
                if i > 0 {
                    write!(f, " {word} ")?;
                }
                match part {
                    Self::And(_) | Self::Or(_) => write!(f, "({part})")?,
                    _ => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::And(all) => list(f, all, "AND", "TRUE"),
            Self::Or(all) => list(f, all, "OR", "FALSE"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::Column { name, test } => write!(f, "`{}` {test}", name.replace('`', "``")),
        }
    }
}
