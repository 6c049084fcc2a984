//! What a filter says about keys.

use std::cmp::Ordering;

use paimon_format::kv::{KeyRange, KvSchema};
use paimon_format::predicate::{Predicate, Test};
use paimon_format::types::Datum;

/// The range of keys that rows can have which pass a filter: of keys of one column; all keys for others.
///
/// Keys may be skipped before merging, for all versions of a key pass or none does. Values may not: dropping the newest version of a key
/// because it does not match would bring an older one back.
pub(super) fn key_range(filter: &Predicate, table: &KvSchema) -> KeyRange {
    let mut range = KeyRange::default();
    let mut keys = table.key_fields();
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return range;
    };
    for part in filter.conjuncts() {
        let Predicate::Column { name, test } = part else {
            continue;
        };
        if name != key.name {
            continue;
        }
        match test {
            Test::Equal(value) => {
                raise(&mut range.min, &value, Ordering::Greater);
                raise(&mut range.max, &value, Ordering::Less);
            }
            Test::Greater(value) | Test::GreaterOrEqual(value) => raise(&mut range.min, &value, Ordering::Greater),
            Test::Less(value) | Test::LessOrEqual(value) => raise(&mut range.max, &value, Ordering::Less),
            Test::Between(low, high) => {
                raise(&mut range.min, &low, Ordering::Greater);
                raise(&mut range.max, &high, Ordering::Less);
            }
            _ => {}
        }
    }
    range
}

/// Replaces a bound by one that is narrower: `Greater` than a lower bound, `Less` than an upper one.
fn raise(bound: &mut Option<Vec<Datum>>, value: &Datum, narrower: Ordering) {
    let is_narrower = match bound.as_deref() {
        Some([old]) => value.compare(old) == narrower,
        _ => true,
    };
    if is_narrower && !value.is_null() {
        *bound = Some(vec![value.clone()]);
    }
}
