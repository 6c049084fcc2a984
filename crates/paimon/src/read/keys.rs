//! The range of keys that a filter lets through, for files to skip what lies outside.

use std::cmp::Ordering;

use paimon_format::kv::{KeyRange, KvSchema};
use paimon_format::predicate::{Predicate, Test};
use paimon_format::types::Datum;

/// What the filter demands of the key, if it has one column; all keys otherwise. Rows outside may still come.
pub(super) fn key_range(filter: &Predicate, schema: &KvSchema) -> KeyRange {
    let mut fields = schema.key_fields();
    let (Some(key), None) = (fields.next(), fields.next()) else {
        return KeyRange::default();
    };
    let (mut min, mut max): (Option<Datum>, Option<Datum>) = (None, None);
    for part in filter.conjuncts() {
        let Predicate::Column { name, test } = part else {
            continue;
        };
        if name != key.name {
            continue;
        }
        let (low, high) = match test {
            Test::Equal(value) => (Some(value.clone()), Some(value)),
            Test::Between(low, high) => (Some(low), Some(high)),
            Test::Greater(low) | Test::GreaterOrEqual(low) => (Some(low), None),
            Test::Less(high) | Test::LessOrEqual(high) => (None, Some(high)),
            Test::In(values) => (extreme(&values, Ordering::Less), extreme(&values, Ordering::Greater)),
            _ => (None, None),
        };
        // A null lets nothing through; saying so is the filter's work.
        let low = low.filter(|low| !low.is_null());
        let high = high.filter(|high| !high.is_null());
        if let Some(low) = low
            && min.as_ref().is_none_or(|min| low.compare(min) == Ordering::Greater)
        {
            min = Some(low);
        }
        if let Some(high) = high
            && max.as_ref().is_none_or(|max| high.compare(max) == Ordering::Less)
        {
            max = Some(high);
        }
    }
    KeyRange {
        min: min.map(|min| vec![min]),
        max: max.map(|max| vec![max]),
    }
}

/// The smallest or the largest of the values that are not null.
fn extreme(values: &[Datum], wanted: Ordering) -> Option<Datum> {
    let values = values.iter().filter(|value| !value.is_null());
    let better = |best: &&Datum, value: &Datum| value.compare(best) == wanted;
    values
        .fold(None, |best: Option<&Datum>, value| match &best {
            Some(known) if !better(known, value) => best,
            _ => Some(value),
        })
        .cloned()
}

#[cfg(test)]
mod tests {
    use paimon_format::types::DataField;

    use super::*;

    fn range(text: &str) -> String {
        let fields = vec![
            DataField::new(0, "k", "INT NOT NULL".parse().unwrap()),
            DataField::new(1, "v", "INT".parse().unwrap()),
        ];
        let filter = Predicate::parse(text, &fields).unwrap();
        let schema = KvSchema::new(0, fields, vec![0], None).unwrap();
        let KeyRange { min, max } = key_range(&filter, &schema);
        let show = |bound: Option<Vec<Datum>>| match bound.as_deref() {
            Some([Datum::Int32(value)]) => value.to_string(),
            _ => String::new(),
        };
        format!("{}..{}", show(min), show(max))
    }

    #[test]
    fn conditions_on_the_key_make_a_range() {
        assert_eq!(range("k = 3"), "3..3");
        assert_eq!(range("k > 3 AND k >= 5 AND k < 9 AND v = 7"), "5..9");
        assert_eq!(range("k IN (4, 2, 8)"), "2..8");
        assert_eq!(range("k BETWEEN 1 AND 6 AND k <= 5"), "1..5");
    }

    #[test]
    fn what_says_nothing_of_the_key_alone_is_all_keys() {
        for text in ["v = 3", "k = 3 OR v = 1", "k <> 3", "NOT (k = 3)", "k = 1 OR k = 5"] {
            assert_eq!(range(text), "..", "{text}");
        }
    }
}
