//! `bool_and` and `bool_or`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use paimon_format::types::TypeKind;

use super::column::Site;
use super::{AggregatedColumn, Aggregation, Aggregator, AggregatorFactory, Step, fold_groups, step_of};
use crate::MergeError;

/// `bool_and` or `bool_or`; nulls count as nothing.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldBoolAndAgg`, `FieldBoolOrAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoolFactory {
    name: &'static str,
    /// The value that decides alone.
    decisive: bool,
}

impl BoolFactory {
    pub(super) const AND: Self = Self {
        name: "bool_and",
        decisive: false,
    };
    pub(super) const OR: Self = Self {
        name: "bool_or",
        decisive: true,
    };
}

impl AggregatorFactory for BoolFactory {
    fn name(&self) -> &str {
        self.name
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        match column.field.data_type.kind {
            TypeKind::Boolean => Ok(Aggregation::Compute(Box::new(Bool {
                decisive: self.decisive,
                site: column.site()?,
                kept: None,
            }))),
            _ => Err(column.wrong_type("BOOLEAN")),
        }
    }
}

#[derive(Debug)]
struct Bool {
    decisive: bool,
    site: Site,
    /// An open group's accumulator.
    kept: Option<bool>,
}

impl Aggregator for Bool {
    fn fold(&mut self, values: &ArrayRef, steps: &[Step], ends: &[u32], open: bool) -> Result<ArrayRef, MergeError> {
        let (decisive, site) = (self.decisive, &self.site);
        let Some(values) = values.as_boolean_opt() else {
            return Err(site.wrong_array(values.data_type()));
        };
        let mut results: Vec<Option<bool>> = Vec::with_capacity(ends.len());
        fold_groups(
            &mut self.kept,
            ends,
            open,
            |acc, row| {
                let value = values.is_valid(row).then(|| values.value(row));
                *acc = match (step_of(steps, row), *acc, value) {
                    (Step::Retract, ..) => return Err(site.unretractable()),
                    (Step::Start, _, value) => value,
                    (_, Some(held), Some(value)) if held != value => Some(decisive),
                    (_, held, value) => held.or(value),
                };
                Ok(())
            },
            |acc| results.push(acc),
        )?;
        Ok(Arc::new(BooleanArray::from(results)))
    }

    fn reset(&mut self) {
        self.kept = None;
    }
}
