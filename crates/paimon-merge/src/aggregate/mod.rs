//! What the values of a column become when versions of a key are merged: aggregate functions by name.
//!
//! | File | Functions |
//! |---|---|
//! | `select` | `last_value`, `last_non_null_value`, `first_value`, `first_non_null_value`: a value as it is, found by position |
//! | `numbers`, `decimals` | `sum`, `product` |
//! | `extremes` | `min`, `max` |
//! | `booleans` | `bool_and`, `bool_or` |
//! | `listagg` | `listagg` |
//! | `collect` | `collect` |
//! | `maps` | `merge_map`, `merge_map_with_keytime` |
//! | `nested` | `nested_update`, `nested_partial_update` |
//! | `bitmap`, `bitmap64` | `rbm32`, `rbm64` |
//! | `sketch` | `theta_sketch`, `hll_sketch` |
//! | `natives` | what numbers and extremes share |
//! | `union` | what bitmaps and sketches share |
//!
//! Own functions join by [`AggregatorFactory`].

mod bitmap;
mod bitmap64;
mod booleans;
mod collect;
mod column;
mod decimals;
mod extremes;
mod function;
mod listagg;
mod maps;
mod natives;
mod nested;
mod numbers;
mod registry;
mod select;
mod sketch;
mod union;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;

use crate::MergeError;

pub use column::AggregatedColumn;
pub use function::{AggregateFunction, FunctionAggregator};
pub use registry::Aggregators;
pub(crate) use select::Selected;
pub use select::Selection;

/// How a value joins what its column has so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `acc = agg(acc, value)`
    Add,
    /// `acc = retract(acc, value)`: the value is of a -U or -D row.
    Retract,
    /// `acc = agg(value, acc)`: the value's sequence group is older than the one held.
    Late,
    /// `acc = value`, whatever it was: the row begins as a copy of a retract (partial-update).
    Start,
}

/// An aggregate function of one column, by whole columns.
///
/// `values` holds the values of all groups of a block, oldest first; group `g` is `values[ends[g - 1]..ends[g]]`, and may be empty. The
/// result has one value a group. With `open` the last group goes on as the first of the next call: it has no value in the result, and
/// its state is kept until then, or until [`reset`](Self::reset).
///
/// Must be associative over adjacent stretches of `Add` values: compaction merges the newest first.
pub trait Aggregator: Debug + Send {
    /// Folds the values of each group, from null.
    ///
    /// Errors name the column; the state is unspecified after one.
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError>;

    /// Forgets the state of a group that was left open.
    fn reset(&mut self);

    /// Whether it takes [`Step::Retract`].
    fn accepts_retract(&self) -> bool {
        false
    }

    /// What values must be so that they can be merged with others; `None` (the default): any will do.
    fn value_check(&self) -> Option<Arc<dyn ValueCheck>> {
        None
    }
}

/// Refuses values of a column before they are written: one that meets no other is never looked at, and would make every later merge fail.
pub trait ValueCheck: Debug + Send + Sync {
    /// Errors: `Value`, naming the column, for a value in `values` that no merge could take.
    fn check(&self, values: &ArrayRef, row: usize) -> Result<(), MergeError>;
}

/// What a factory makes.
#[derive(Debug)]
pub enum Aggregation {
    /// A value as it is: merging moves a position, no value is looked at.
    Select(Selection),
    /// A value that must be computed.
    Compute(Box<dyn Aggregator>),
}

impl Aggregation {
    /// Whether it takes values of -U and -D rows back.
    pub fn accepts_retract(&self) -> bool {
        match self {
            Self::Select(selection) => selection.accepts_retract(),
            Self::Compute(aggregator) => aggregator.accepts_retract(),
        }
    }
}

/// Makes the aggregate functions of one name: `fields.<column>.aggregate-function = <name>`.
pub trait AggregatorFactory: Debug + Send + Sync {
    /// The option's value.
    fn name(&self) -> &str;

    /// Also the check when a table is created or opened.
    ///
    /// Errors: `Invalid`, naming the column and its type or the option.
    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError>;
}

/// Folds every group of a block from the default state; the first group from what an open group left.
fn fold_groups<S: Default>(
    kept: &mut S,
    ends: &[u32],
    open: bool,
    mut step: impl FnMut(&mut S, usize) -> Result<(), MergeError>,
    mut emit: impl FnMut(S),
) -> Result<(), MergeError> {
    let mut state = std::mem::take(kept);
    let mut start = 0;
    for (group, &end) in ends.iter().enumerate() {
        for row in start..end as usize {
            step(&mut state, row)?;
        }
        start = end as usize;
        let done = std::mem::take(&mut state);
        if open && group + 1 == ends.len() {
            *kept = done;
        } else {
            emit(done);
        }
    }
    Ok(())
}

/// Where each group is, if it is as simple as it mostly is: every value is there and added, no group is empty or goes on.
fn plain_groups<'a>(
    nulls: usize,
    steps: &[Step],
    ends: &'a [u32],
    open: bool,
) -> Option<impl Iterator<Item = Range<usize>> + use<'a>> {
    let starts = || std::iter::once(0).chain(ends.iter().copied());
    let is_plain = nulls == 0
        && !open
        && steps.iter().all(|&step| step == Step::Add)
        && starts().zip(ends).all(|(start, &end)| start < end);
    is_plain.then(|| starts().zip(ends).map(|(start, &end)| start as usize..end as usize))
}

/// The step at a row; callers give one a value.
fn step_of(steps: &[Step], row: usize) -> Step {
    steps.get(row).copied().unwrap_or(Step::Add)
}
