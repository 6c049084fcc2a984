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

/// A function whose accumulator is more than a value: a map that is searched, for example, so that many versions of a key cost no more
/// than their sizes.
pub(super) trait Accumulate: Debug + Send {
    type State: Debug + Send;

    /// The accumulator that holds a value, null at first, as it is.
    fn begin(&self, value: Datum) -> Self::State;

    /// `acc = agg(acc, value)`
    fn add(&self, acc: &mut Self::State, value: Datum) -> Result<(), MergeError>;

    /// `acc = agg(value, acc)`
    fn add_late(&self, acc: &mut Self::State, value: Datum) -> Result<(), MergeError> {
        let held = std::mem::replace(acc, self.begin(value));
        self.add(acc, self.finish(held))
    }

    /// Whether there is a [`retract`](Self::retract).
    fn accepts_retract(&self) -> bool {
        false
    }

    /// `acc = retract(acc, value)`; `None` (the default): it cannot.
    fn retract(&self, _acc: &mut Self::State, _value: Datum) -> Option<Result<(), MergeError>> {
        None
    }

    /// What the accumulator holds.
    fn finish(&self, acc: Self::State) -> Datum;
}

/// The accumulator is the value.
#[derive(Debug)]
struct Simple<F>(F);

impl<F: AggregateFunction> Accumulate for Simple<F> {
    type State = Datum;

    fn begin(&self, value: Datum) -> Datum {
        value
    }

    fn add(&self, acc: &mut Datum, value: Datum) -> Result<(), MergeError> {
        let held = std::mem::replace(acc, Datum::Null);
        *acc = self.0.add(held, value)?;
        Ok(())
    }

    fn add_late(&self, acc: &mut Datum, value: Datum) -> Result<(), MergeError> {
        let held = std::mem::replace(acc, Datum::Null);
        *acc = self.0.add_late(held, value)?;
        Ok(())
    }

    fn accepts_retract(&self) -> bool {
        self.0.retract(Datum::Null, Datum::Null).is_some()
    }

    fn retract(&self, acc: &mut Datum, value: Datum) -> Option<Result<(), MergeError>> {
        let held = std::mem::replace(acc, Datum::Null);
        let result = self.0.retract(held, value)?;
        Some(result.map(|value| *acc = value))
    }

    fn finish(&self, acc: Datum) -> Datum {
        acc
    }
}

/// An [`AggregateFunction`] by columns. Every value is copied out of its column.
#[derive(Debug)]
pub struct FunctionAggregator<F: AggregateFunction>(Folding<Simple<F>>);

impl<F: AggregateFunction + 'static> FunctionAggregator<F> {
    /// The function for a column.
    ///
    /// Errors: `Unsupported` for a column without an Arrow form.
    pub fn new(column: &AggregatedColumn<'_>, function: F) -> Result<Self, MergeError> {
        Folding::new(column, Simple(function)).map(Self)
    }

    /// As a factory gives it.
    pub fn into_aggregation(self) -> Aggregation {
        self.0.into_aggregation()
    }
}

/// An [`Accumulate`] by columns.
#[derive(Debug)]
pub(super) struct Folding<A: Accumulate> {
    function: A,
    site: Site,
    /// An open group's accumulator; `None`: it holds null.
    kept: Option<A::State>,
}

impl<A: Accumulate + 'static> Folding<A> {
    pub(super) fn new(column: &AggregatedColumn<'_>, function: A) -> Result<Self, MergeError> {
        Ok(Self {
            function,
            site: column.site()?,
            kept: None,
        })
    }

    pub(super) fn into_aggregation(self) -> Aggregation {
        Aggregation::Compute(Box::new(self))
    }
}

impl<A: Accumulate> Aggregator for Folding<A> {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let (function, site) = (&self.function, &self.site);
        let mut results = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |kept, row| {
                let value = Datum::from_array(values, row)?;
                let acc = kept.get_or_insert_with(|| function.begin(Datum::Null));
                match step_of(steps, row) {
                    Step::Add => function.add(acc, value)?,
                    Step::Late => function.add_late(acc, value)?,
                    Step::Start => *acc = function.begin(value),
                    Step::Retract => function.retract(acc, value).ok_or_else(|| site.unretractable())??,
                }
                Ok(())
            },
            |kept| results.push(kept.map_or(Datum::Null, |acc| function.finish(acc))),
        )?;
        Ok(array_from_datums(&site.field, &results)?)
    }

    fn reset(&mut self) {
        self.kept = None;
    }

    fn accepts_retract(&self) -> bool {
        self.function.accepts_retract()
    }
}
