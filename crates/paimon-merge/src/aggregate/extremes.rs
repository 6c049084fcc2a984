//! `min` and `max`.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, PrimitiveArray, UInt32Array, downcast_primitive,
};
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use arrow_select::concat::concat;
use arrow_select::take::take;
use paimon_format::types::{TypeKind, canonical_nan};

use super::column::Site;
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, fold_groups, plain_groups, step_of};
use crate::MergeError;

/// `min` or `max`, in Java's order: NaN highest, -0.0 below 0.0, text and binary by unsigned bytes. Nulls count as nothing.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldMinAgg`, `FieldMaxAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtremeFactory {
    name: &'static str,
    /// How a value compares to the one held when it replaces it.
    wins: Ordering,
}

impl ExtremeFactory {
    pub(super) const MIN: Self = Self {
        name: "min",
        wins: Ordering::Less,
    };
    pub(super) const MAX: Self = Self {
        name: "max",
        wins: Ordering::Greater,
    };
}

impl AggregatorFactory for ExtremeFactory {
    fn name(&self) -> &str {
        self.name
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        let kind = &column.field.data_type.kind;
        if !kind.is_flat() || *kind == TypeKind::Boolean {
            return Err(column.wrong_type("numbers, text, binary, dates and times"));
        }
        Ok(Aggregation::Compute(self.aggregator(column.site()?)))
    }
}

impl ExtremeFactory {
    fn aggregator(&self, site: Site) -> Box<dyn Aggregator> {
        let wins = self.wins;
        macro_rules! native {
            ($primitive:ty) => {
                Box::new(NativeExtreme::<$primitive> {
                    wins,
                    site,
                    kept: None,
                })
            };
        }
        downcast_primitive! {
            &site.arrow => (native),
            _ => Box::new(Extreme { wins, site, kept: None })
        }
    }
}

/// Compares native values.
#[derive(Debug)]
struct NativeExtreme<T: ArrowPrimitiveType> {
    wins: Ordering,
    site: Site,
    /// An open group's extreme value.
    kept: Option<T::Native>,
}

impl<T: ArrowPrimitiveType + Debug> Aggregator for NativeExtreme<T> {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let (wins, site) = (self.wins, &self.site);
        let values = canonical_nan(values);
        let Some(values) = values.as_primitive_opt::<T>() else {
            return Err(site.wrong_array(values.data_type()));
        };
        let better = |held: T::Native, value: T::Native| if value.compare(held) == wins { value } else { held };
        if self.kept.is_none()
            && let Some(groups) = plain_groups(values.null_count(), steps, ends, open)
        {
            let natives = values.values();
            let best = |group: Range<usize>| {
                let best = natives.get(group).unwrap_or_default().iter().copied().reduce(better);
                best.unwrap_or_default()
            };
            let results = PrimitiveArray::<T>::new(groups.map(best).collect(), None);
            return Ok(Arc::new(results.with_data_type(site.arrow.clone())));
        }
        let mut results: Vec<Option<T::Native>> = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |held, row| {
                let value = values.is_valid(row).then(|| values.value(row));
                *held = match (step_of(steps, row), *held, value) {
                    (Step::Retract, ..) => return Err(site.unretractable()),
                    (Step::Start, _, value) => value,
                    (_, Some(held), Some(value)) => Some(better(held, value)),
                    (_, held, value) => held.or(value),
                };
                Ok(())
            },
            |held| results.push(held),
        )?;
        let results: PrimitiveArray<T> = results.into_iter().collect();
        Ok(Arc::new(results.with_data_type(site.arrow.clone())))
    }

    fn reset(&mut self) {
        self.kept = None;
    }
}

/// Text and binary: finds positions, then takes their values.
#[derive(Debug)]
struct Extreme {
    wins: Ordering,
    site: Site,
    /// An open group's extreme value: one row.
    kept: Option<ArrayRef>,
}

impl Aggregator for Extreme {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        // What was kept stands before the values of this call.
        let kept = self.kept.take();
        let before = usize::from(kept.is_some());
        let all = match &kept {
            Some(kept) => concat(&[kept, values]).map_err(MergeError::internal)?,
            None => Arc::clone(values),
        };
        let ordered = canonical_nan(&all);
        let compare = make_comparator(&ordered, &ordered, SortOptions::default()).map_err(MergeError::internal)?;
        let (wins, site) = (self.wins, &self.site);
        let mut best: Vec<Option<u32>> = Vec::with_capacity(ends.len());
        let mut state = kept.is_some().then_some(0_usize);
        fold_groups(
            &mut state,
            ends,
            open,
            |held, row| {
                let at = row + before;
                let value = all.is_valid(at).then_some(at);
                *held = match (step_of(steps, row), *held, value) {
                    (Step::Retract, ..) => return Err(site.unretractable()),
                    (Step::Start, _, value) => value,
                    (_, Some(held), Some(value)) if compare(value, held) == wins => Some(value),
                    (_, held, value) => held.or(value),
                };
                Ok(())
            },
            |held| best.push(held.map(|at| at as u32)),
        )?;
        self.kept = state.map(|at| all.slice(at, 1));
        take(&all, &UInt32Array::from(best), None).map_err(MergeError::internal)
    }

    fn reset(&mut self) {
        self.kept = None;
    }
}
