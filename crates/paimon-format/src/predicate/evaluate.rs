//! Filters on rows.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar, StringArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_ord::cmp;
use arrow_schema::{DataType as ArrowType, Field};
use std::sync::Arc;

use crate::error::FormatError;
use crate::predicate::ast::unknown_column;
use crate::predicate::{Predicate, Test};
use crate::types::{Datum, build_array, canonical_nan};

/// For each row, whether a test is surely true and surely false; neither where it is unknown.
struct Outcome {
    yes: BooleanBuffer,
    no: BooleanBuffer,
}

impl Outcome {
    fn all(value: bool, rows: usize) -> Self {
        let (set, unset) = (BooleanBuffer::new_set(rows), BooleanBuffer::new_unset(rows));
        match value {
            true => Self { yes: set, no: unset },
            false => Self { yes: unset, no: set },
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            yes: &self.yes & &other.yes,
            no: &self.no | &other.no,
        }
    }

    fn not(self) -> Self {
        Self {
            yes: self.no,
            no: self.yes,
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

impl From<BooleanArray> for Outcome {
    fn from(array: BooleanArray) -> Self {
        match array.nulls() {
            None => Self {
                yes: array.values().clone(),
                no: !array.values(),
            },
            Some(nulls) => Self {
                yes: array.values() & nulls.inner(),
                no: &!array.values() & nulls.inner(),
            },
        }
    }
}

impl Predicate {
    /// For each row of a batch, whether it passes: a mask without nulls.
    ///
    /// Errors: `Invalid` names a column that the batch does not have; `Internal` when a column's Arrow type is of no Paimon type, or a
    /// literal has another type than the column.
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray, FormatError> {
        Ok(BooleanArray::new(self.outcome(batch)?.yes, None))
    }

    fn outcome(&self, batch: &RecordBatch) -> Result<Outcome, FormatError> {
        let rows = batch.num_rows();
        match self {
            Self::And(all) => {
                let empty = Outcome::all(true, rows);
                all.iter()
                    .try_fold(empty, |all, part| Ok(all.and(part.outcome(batch)?)))
            }
            Self::Or(all) => {
                let empty = Outcome::all(false, rows);
                all.iter().try_fold(empty, |any, part| Ok(any.or(part.outcome(batch)?)))
            }
            Self::Not(inner) => Ok(inner.outcome(batch)?.not()),
            Self::Column { name, test } => match batch.column_by_name(name) {
                Some(column) => on_column(test, &canonical_nan(column), name),
                None => Err(unknown_column(name)),
            },
        }
    }

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

fn on_column(test: &Test, column: &ArrayRef, name: &str) -> Result<Outcome, FormatError> {
    let compare = |literal: &Datum, kernel: Kernel| compare(column, literal, kernel, name);
    Ok(match test {
        Test::IsNull | Test::IsNotNull => {
            let there = present(column);
            let outcome = Outcome {
                no: !&there,
                yes: there,
            };
            if matches!(test, Test::IsNull) {
                outcome.not()
            } else {
                outcome
            }
        }
        Test::Equal(literal) => compare(literal, Kernel::Equal)?,
        Test::NotEqual(literal) => compare(literal, Kernel::Equal)?.not(),
        Test::Less(literal) => compare(literal, Kernel::Less)?,
        Test::GreaterOrEqual(literal) => compare(literal, Kernel::Less)?.not(),
        Test::Greater(literal) => compare(literal, Kernel::Greater)?,
        Test::LessOrEqual(literal) => compare(literal, Kernel::Greater)?.not(),
        Test::In(literals) => one_of(literals, column, name)?,
        Test::NotIn(literals) => one_of(literals, column, name)?.not(),
        Test::Between(low, high) => compare(low, Kernel::Less)?
            .not()
            .and(compare(high, Kernel::Greater)?.not()),
        Test::StartsWith(start) => on_text(column, name, |text| text.starts_with(start))?,
        Test::EndsWith(end) => on_text(column, name, |text| text.ends_with(end))?,
        Test::Contains(part) => on_text(column, name, |text| text.contains(part))?,
        Test::Like(pattern) => on_text(column, name, |text| pattern.matches(text))?,
    })
}

/// A few literals go one by one through Arrow's kernel.
fn one_of(literals: &[Datum], column: &ArrayRef, name: &str) -> Result<Outcome, FormatError> {
    // Null is unknown even where no literal is given.
    let none = Outcome {
        yes: BooleanBuffer::new_unset(column.len()),
        no: present(column),
    };
    let mut literals = literals.iter();
    literals.try_fold(none, |any, literal| {
        Ok(any.or(compare(column, literal, Kernel::Equal, name)?))
    })
}

/// The rows that are not null.
fn present(column: &ArrayRef) -> BooleanBuffer {
    match column.logical_nulls() {
        Some(nulls) => nulls.inner().clone(),
        None => BooleanBuffer::new_set(column.len()),
    }
}

#[derive(Clone, Copy)]
enum Kernel {
    Equal,
    Less,
    Greater,
}

fn compare(column: &ArrayRef, literal: &Datum, kernel: Kernel, name: &str) -> Result<Outcome, FormatError> {
    if literal.is_null() {
        let unset = BooleanBuffer::new_unset(column.len());
        return Ok(Outcome {
            yes: unset.clone(),
            no: unset,
        });
    }
    if column.data_type().is_nested() {
        return by_value(column, literal, kernel);
    }
    let field = Arc::new(Field::new(name, column.data_type().clone(), true));
    let literal_array = match build_array(&field, vec![literal], name) {
        Ok(array) => Scalar::new(canonical_nan(&array)),
        // A time too far for the column's unit: no scalar of the column's type, but all can be compared.
        Err(_) if matches!(literal, Datum::Timestamp { .. }) => return by_value(column, literal, kernel),
        Err(error) => return Err(error),
    };
    let mask = match kernel {
        Kernel::Equal => cmp::eq(column, &literal_array),
        Kernel::Less => cmp::lt(column, &literal_array),
        Kernel::Greater => cmp::gt(column, &literal_array),
    };
    mask.map(Outcome::from)
        .map_err(|error| FormatError::internal(format!("column {name}: {error}")))
}

fn by_value(column: &ArrayRef, literal: &Datum, kernel: Kernel) -> Result<Outcome, FormatError> {
    let mask = (0..column.len()).map(|row| {
        let value = Datum::from_array(column, row)?;
        let order = value.compare(literal);
        Ok((!value.is_null()).then_some(match kernel {
            Kernel::Equal => order.is_eq(),
            Kernel::Less => order.is_lt(),
            Kernel::Greater => order.is_gt(),
        }))
    });
    Ok(mask.collect::<Result<BooleanArray, FormatError>>()?.into())
}

fn on_text(column: &ArrayRef, name: &str, test: impl Fn(&str) -> bool) -> Result<Outcome, FormatError> {
    if column.data_type() != &ArrowType::Utf8 {
        return Err(FormatError::internal(format!(
            "column {name}: {} is no string",
            column.data_type()
        )));
    }
    let strings: &StringArray = column.as_string();
    let mut mask = BooleanBufferBuilder::new(strings.len());
    for row in 0..strings.len() {
        // Values below nulls are tested too; they do not count.
        mask.append(test(strings.value(row)));
    }
    Ok(BooleanArray::new(mask.finish(), strings.nulls().cloned()).into())
}
