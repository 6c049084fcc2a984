//! `collect`.

use std::collections::BTreeSet;

use paimon_format::types::{Datum, TypeKind};

use super::{AggregateFunction, AggregatedColumn, Aggregation, AggregatorFactory, FunctionAggregator};
use crate::MergeError;

/// `collect`: the elements of all arrays, one after another; with `distinct` each once, where it came first.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldCollectAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollectFactory;

impl AggregatorFactory for CollectFactory {
    fn name(&self) -> &str {
        "collect"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        let TypeKind::Array(_) = column.field.data_type.kind else {
            return Err(column.wrong_type("ARRAY"));
        };
        let distinct = column.flag("distinct")?;
        Ok(FunctionAggregator::new(column, Collect { distinct })?.into_aggregation())
    }
}

#[derive(Debug)]
struct Collect {
    distinct: bool,
}

impl AggregateFunction for Collect {
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        Ok(match (acc, value) {
            (Datum::Array(mut all), Datum::Array(more)) => {
                all.extend(more);
                self.collected(all)
            }
            (Datum::Array(all), _) | (_, Datum::Array(all)) => self.collected(all),
            (acc, _) => acc,
        })
    }

    // The order of the elements does not depend on which value is older.
    fn add_late(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        self.add(acc, value)
    }

    fn retract(&self, acc: Datum, value: Datum) -> Option<Result<Datum, MergeError>> {
        Some(Ok(match (acc, value) {
            (Datum::Array(mut all), Datum::Array(mut gone)) => {
                gone.sort();
                let mut used = vec![false; gone.len()];
                all.retain(|element| {
                    let first = gone.partition_point(|other| other < element);
                    let same = gone.iter().skip(first).take_while(|other| *other == element).count();
                    match (first..first + same).find(|&at| !used[at]) {
                        Some(at) => {
                            used[at] = true;
                            false
                        }
                        None => true,
                    }
                });
                Datum::Array(all)
            }
            (acc, _) => acc,
        }))
    }
}

impl Collect {
    fn collected(&self, mut all: Vec<Datum>) -> Datum {
        if self.distinct {
            let mut known = BTreeSet::new();
            let first: Vec<bool> = all.iter().map(|element| known.insert(element)).collect();
            let mut first = first.into_iter();
            all.retain(|_| first.next().unwrap_or(true));
        }
        Datum::Array(all)
    }
}
