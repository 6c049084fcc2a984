//! Filters on rows.
use crate::error::FormatError;
use crate::predicate::ast::unknown_column;
use crate::predicate::Predicate;
use crate::types::Datum;
impl Predicate {
    /// Whether a single row passes; `value` finds a column's value by name. For partitions.
    ///
    /// Errors: `Invalid` names a column that is not found.
    pub fn evaluate_row<'a>(&self, value: &dyn Fn(&str) -> Option<&'a Datum>) -> Result<bool, FormatError> {
        Ok(self.on_row(value)? == Some(true))
    }

    fn on_row<'a>(&self, value: &dyn Fn(&str) -> Option<&'a Datum>) -> Result<Option<bool>, FormatError> {
        let decided_by = |all: &[Self], decisive: bool| {
            let mut unknown = false;
            for part in all {
                match part.on_row(value)? {
                    Some(found) if found == decisive => return Ok(Some(decisive)),
                    Some(_) => {}
                    None => unknown = true,
                }
            }
            Ok((!unknown).then_some(!decisive))
        };
        match self {
            Self::And(all) => decided_by(all, false),
            Self::Or(all) => decided_by(all, true),
            Self::Not(inner) => Ok(inner.on_row(value)?.map(|found| !found)),
            Self::Column { name, test } => match value(name) {
                Some(value) => Ok(test.on(value)),
                None => Err(unknown_column(name)),
            },
        }
    }
}

