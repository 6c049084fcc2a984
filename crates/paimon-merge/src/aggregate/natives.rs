//! Functions over native values: numbers, dates and times, decimals by their unscaled values.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};

use super::column::Site;
use super::{Aggregator, Step, fold_groups, plain_groups, step_of};
use crate::MergeError;

/// What two native values become, whichever of them is older. Nulls count as nothing.
pub(super) trait NativeFunction<N>: Debug + Send {
    type Error;

    /// The values as they are compared or computed with.
    fn prepare(&self, values: &ArrayRef) -> ArrayRef {
        Arc::clone(values)
    }

    /// `agg(acc, value)` of two values.
    fn combine(&self, acc: N, value: N) -> Result<N, Self::Error>;

    /// Whether there is a [`take_back`](Self::take_back).
    fn accepts_retract(&self) -> bool;

    /// `retract(acc, value)`. Not called where retracts are not accepted.
    fn take_back(&self, acc: Option<N>, value: Option<N>) -> Result<Option<N>, Self::Error>;

    /// The error of a column.
    fn failed(site: &Site, error: Self::Error) -> MergeError;
}

/// A [`NativeFunction`] by columns of one primitive type.
#[derive(Debug)]
pub(super) struct Natives<T: ArrowPrimitiveType, F> {
    function: F,
    site: Site,
    /// An open group's accumulator.
    kept: Option<T::Native>,
}

impl<T: ArrowPrimitiveType, F> Natives<T, F> {
    pub(super) fn new(function: F, site: Site) -> Self {
        Self {
            function,
            site,
            kept: None,
        }
    }
}

impl<T: ArrowPrimitiveType + Debug, F: NativeFunction<T::Native>> Natives<T, F> {
    /// The groups of [`plain_groups`]: no step to look at, no null.
    fn fold_plain(
        &self,
        values: &[T::Native],
        groups: impl Iterator<Item = Range<usize>>,
    ) -> Result<PrimitiveArray<T>, MergeError> {
        let fold = |group: Range<usize>| {
            let mut all = values.get(group).unwrap_or_default().iter().copied();
            let first = all.next().unwrap_or_default();
            all.try_fold(first, |acc, value| self.function.combine(acc, value))
        };
        let results = groups.map(fold).collect::<Result<Vec<T::Native>, _>>();
        let results = results.map_err(|error| F::failed(&self.site, error))?;
        Ok(PrimitiveArray::new(results.into(), None))
    }

    fn fold_steps(
        &mut self,
        values: &PrimitiveArray<T>,
        steps: &[Step],
        ends: &[u32],
        open: bool,
    ) -> Result<PrimitiveArray<T>, MergeError> {
        let (function, site) = (&self.function, &self.site);
        let mut results: Vec<Option<T::Native>> = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |acc, row| {
                let value = values.is_valid(row).then(|| values.value(row));
                let result = match (step_of(steps, row), *acc, value) {
                    (Step::Start, _, value) => Ok(value),
                    (Step::Retract, ..) if !function.accepts_retract() => return Err(site.unretractable()),
                    (Step::Retract, acc, value) => function.take_back(acc, value),
                    (Step::Add | Step::Late, Some(acc), Some(value)) => function.combine(acc, value).map(Some),
                    (Step::Add | Step::Late, acc, value) => Ok(acc.or(value)),
                };
                *acc = result.map_err(|error| F::failed(site, error))?;
                Ok(())
            },
            |acc| results.push(acc),
        )?;
        Ok(results.into_iter().collect())
    }
}

impl<T: ArrowPrimitiveType + Debug, F: NativeFunction<T::Native>> Aggregator for Natives<T, F> {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let prepared = self.function.prepare(values);
        let Some(values) = prepared.as_primitive_opt::<T>() else {
            return Err(self.site.wrong_array(prepared.data_type()));
        };
        let plain = match self.kept {
            None => plain_groups(values.null_count(), steps, ends, open),
            Some(_) => None,
        };
        let results = match plain {
            Some(groups) => self.fold_plain(values.values(), groups)?,
            None => self.fold_steps(values, steps, ends, open)?,
        };
        Ok(Arc::new(results.with_data_type(self.site.arrow.clone())))
    }

    fn reset(&mut self) {
        self.kept = None;
    }

    fn accepts_retract(&self) -> bool {
        self.function.accepts_retract()
    }
}
