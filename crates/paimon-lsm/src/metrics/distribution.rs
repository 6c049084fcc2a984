//! The sum and the largest of many numbers that change one at a time.

use std::collections::BTreeMap;

/// Numbers of which the sum and the largest are known. A change costs the logarithm of how many different ones there are.
#[derive(Debug, Default)]
pub(super) struct Distribution {
    /// How often each number is there.
    counts: BTreeMap<u64, usize>,
    len: usize,
    sum: u128,
}

impl Distribution {
    pub(super) fn add(&mut self, number: u64) {
        *self.counts.entry(number).or_default() += 1;
        self.len += 1;
        self.sum += u128::from(number);
    }

    /// Takes a number away that was added; another one changes nothing.
    pub(super) fn remove(&mut self, number: u64) {
        let Some(count) = self.counts.get_mut(&number) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&number);
        }
        self.len -= 1;
        self.sum -= u128::from(number);
    }

    /// `None`: there are no numbers.
    pub(super) fn max(&self) -> Option<u64> {
        self.counts.last_key_value().map(|(number, _)| *number)
    }

    /// `None`: there are no numbers.
    pub(super) fn average(&self) -> Option<f64> {
        (self.len > 0).then(|| self.sum as f64 / self.len as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_and_go() {
        let mut numbers = Distribution::default();
        assert_eq!((numbers.max(), numbers.average()), (None, None));
        for number in [7, u64::MAX, 1, 7] {
            numbers.add(number);
        }
        assert_eq!(numbers.max(), Some(u64::MAX));
        numbers.remove(u64::MAX);
        assert_eq!((numbers.max(), numbers.average()), (Some(7), Some(5.0)));
        numbers.remove(7);
        assert_eq!((numbers.max(), numbers.average()), (Some(7), Some(4.0)));
        numbers.remove(7);
        numbers.remove(7);
        assert_eq!((numbers.max(), numbers.average()), (Some(1), Some(1.0)));
        numbers.remove(1);
        assert_eq!((numbers.max(), numbers.average()), (None, None));
    }
}
