//! How far a run goes before another run's key.

use std::cmp::Ordering;

use super::lane::KeyLane;

/// The first row in `from..to` of `lane` whose key is not below key `row` of `other`; `to` if there is none.
///
/// Doubles its step, then bisects: the cost is logarithmic in the distance found, not in the length of the batch.
pub(crate) fn gallop<L: KeyLane>(lane: &L, from: usize, to: usize, other: &L, row: usize) -> usize {
    let below = |at: usize| lane.compare(at, other, row) == Ordering::Less;
    let (mut low, mut step) = (from, 1);
    // Invariant: all rows before `low` are below the key.
    let mut high = loop {
        let probe = low.saturating_add(step - 1);
        if probe >= to {
            break to;
        }
        if !below(probe) {
            break probe;
        }
        low = probe + 1;
        step *= 2;
    };
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::lane::IntLane;
    use paimon_format::kv::Keys;
    use proptest::prelude::*;

    fn lane(values: Vec<i64>) -> IntLane<i64> {
        IntLane::from_keys(&Keys::Int64(values.into())).unwrap()
    }

    proptest! {
        #[test]
        fn finds_what_a_linear_search_finds(mut values in prop::collection::vec(-50i64..50, 0..200), key in -60i64..60, from in 0usize..200) {
            values.sort_unstable();
            let from = from.min(values.len());
            let expected = (from..values.len()).find(|&at| values[at] >= key).unwrap_or(values.len());
            let length = values.len();
            prop_assert_eq!(gallop(&lane(values), from, length, &lane(vec![key]), 0), expected);
        }
    }
}
