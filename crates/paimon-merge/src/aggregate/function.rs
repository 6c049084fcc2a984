//! Aggregate functions value by value.

use std::fmt::Debug;

use arrow_array::ArrayRef;
use paimon_format::types::{Datum, array_from_datums};

use super::column::Site;
use super::{AggregatedColumn, Aggregation, Aggregator, Step, fold_groups, step_of};
use crate::MergeError;

/// The simple way to write an aggregate function. [`FunctionAggregator`] makes it one by columns.
///
/// Values have the column's type; the accumulator begins as null. What is not an [`Aggregator`]'s state must not be kept in it.
pub trait AggregateFunction: Debug + Send {
    /// `agg(acc, value)`; either may be null.
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError>;

    /// `agg(value, acc)` for a value that is older than what the accumulator holds.
    fn add_late(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        self.add(value, acc)
    }

    /// `retract(acc, value)`; `None` (the default): it cannot.
    fn retract(&self, _acc: Datum, _value: Datum) -> Option<Result<Datum, MergeError>> {
        None
    }
}

/// An [`AggregateFunction`] by columns. Every value is copied out of its column.
#[derive(Debug)]
pub struct FunctionAggregator<F> {
    function: F,
    site: Site,
    /// An open group's accumulator.
    kept: Accumulator,
}

/// Null at first.
#[derive(Debug)]
struct Accumulator(Datum);

impl Default for Accumulator {
    fn default() -> Self {
        Self(Datum::Null)
    }
}

impl<F: AggregateFunction + 'static> FunctionAggregator<F> {
    /// The function for a column.
    ///
    /// Errors: `Unsupported` for a column without an Arrow form.
    pub fn new(column: &AggregatedColumn<'_>, function: F) -> Result<Self, MergeError> {
        Ok(Self {
            function,
            site: column.site()?,
            kept: Accumulator::default(),
        })
    }

    /// As a factory gives it.
    pub fn into_aggregation(self) -> Aggregation {
        Aggregation::Compute(Box::new(self))
    }
}

impl<F: AggregateFunction> Aggregator for FunctionAggregator<F> {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let (function, site) = (&self.function, &self.site);
        let mut results = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |acc, row| {
                let value = Datum::from_array(values, row)?;
                let held = std::mem::replace(&mut acc.0, Datum::Null);
                acc.0 = match step_of(steps, row) {
                    Step::Add => function.add(held, value)?,
                    Step::Late => function.add_late(held, value)?,
                    Step::Start => value,
                    Step::Retract => function.retract(held, value).ok_or_else(|| site.unretractable())??,
                };
                Ok(())
            },
            |acc| results.push(acc.0),
        )?;
        Ok(array_from_datums(&site.field, &results)?)
    }

    fn reset(&mut self) {
        self.kept = Accumulator::default();
    }

    fn accepts_retract(&self) -> bool {
        self.function.retract(Datum::Null, Datum::Null).is_some()
    }
}
