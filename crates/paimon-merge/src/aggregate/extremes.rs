//! `min` and `max`.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, UInt32Array, downcast_primitive};
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use arrow_select::concat::concat;
use arrow_select::take::take;
use paimon_format::types::{TypeKind, canonical_nan};

use super::column::Site;
use super::natives::{NativeFunction, Natives};
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, fold_groups, step_of};
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
                Box::new(Natives::<$primitive, _>::new(NativeExtreme { wins }, site))
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
struct NativeExtreme {
    wins: Ordering,
}

impl<N: ArrowNativeTypeOp> NativeFunction<N> for NativeExtreme {
    type Error = Infallible;

    fn prepare(&self, values: &ArrayRef) -> ArrayRef {
        canonical_nan(values)
    }

    #[inline]
    fn combine(&self, acc: N, value: N) -> Result<N, Infallible> {
        Ok(if value.compare(acc) == self.wins { value } else { acc })
    }

    fn accepts_retract(&self) -> bool {
        false
    }

    fn take_back(&self, acc: Option<N>, _value: Option<N>) -> Result<Option<N>, Infallible> {
        Ok(acc)
    }

    fn failed(_site: &Site, error: Infallible) -> MergeError {
        match error {}
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
