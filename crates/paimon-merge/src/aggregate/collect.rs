//! `collect`.

use std::collections::BTreeSet;

use paimon_format::types::{Datum, TypeKind};

use super::function::{Accumulate, Folding};
use super::{AggregatedColumn, Aggregation, AggregatorFactory};
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
        Ok(Folding::new(column, Collect { distinct })?.into_aggregation())
    }
}

#[derive(Debug)]
struct Collect {
    distinct: bool,
}

/// Elements so far.
#[derive(Debug)]
struct Collected {
    /// `None` is null.
    elements: Option<Vec<Datum>>,
    /// The elements, once they are known to be distinct.
    known: Option<BTreeSet<Datum>>,
}

impl Accumulate for Collect {
    type State = Collected;

    fn begin(&self, value: Datum) -> Collected {
        Collected {
            elements: elements_of(value),
            known: None,
        }
    }

    fn add(&self, acc: &mut Collected, value: Datum) -> Result<(), MergeError> {
        let value = elements_of(value);
        if value.is_none() && acc.elements.is_none() {
            return Ok(());
        }
        let all = acc.elements.get_or_insert_default();
        if !self.distinct {
            all.extend(value.into_iter().flatten());
            return Ok(());
        }
        let known = acc.known.get_or_insert_with(|| {
            let mut known = BTreeSet::new();
            all.retain(|element| known.insert(element.clone()));
            known
        });
        let new = value
            .into_iter()
            .flatten()
            .filter(|element| known.insert(element.clone()));
        all.extend(new);
        Ok(())
    }

    // The order of the elements does not depend on which value is older.
    fn add_late(&self, acc: &mut Collected, value: Datum) -> Result<(), MergeError> {
        self.add(acc, value)
    }

    fn accepts_retract(&self) -> bool {
        true
    }

    fn retract(&self, acc: &mut Collected, value: Datum) -> Option<Result<(), MergeError>> {
        if let (Some(all), Some(mut gone)) = (&mut acc.elements, elements_of(value)) {
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
            acc.known = None;
        }
        Some(Ok(()))
    }

    fn finish(&self, acc: Collected) -> Datum {
        acc.elements.map_or(Datum::Null, Datum::Array)
    }
}

fn elements_of(value: Datum) -> Option<Vec<Datum>> {
    match value {
        Datum::Array(elements) => Some(elements),
        _ => None,
    }
}
