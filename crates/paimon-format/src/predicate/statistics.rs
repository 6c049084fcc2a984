//! Filters against what is known of a set of rows: statistics of a file, a row group, a page.

use crate::predicate::{Predicate, Test};
use crate::types::Datum;

/// What is known of a column of some rows.
#[derive(Clone, Debug, Default)]
pub struct ColumnStatistics {
    /// No value that is not null is less; a string may be cut. `None` or null: not known.
    pub min: Option<Datum>,
    /// No value that is not null is greater, NaN excepted. `None` or null: not known.
    pub max: Option<Datum>,
    /// Nulls, if counted.
    pub null_count: Option<u64>,
}

/// Which outcomes a test can have on some row.
#[derive(Clone, Copy, Debug)]
struct Possible {
    /// Some row may pass.
    yes: bool,
    /// Some row may fail.
    no: bool,
}

const ANY: Possible = Possible { yes: true, no: true };

impl Predicate {
    /// Whether one of `row_count` rows may pass. `statistics` gives what is known of a column; `None` is nothing. Only when this is
    /// `false` may the rows be left out: `true` promises nothing.
    pub fn may_match<'a>(&self, row_count: u64, statistics: &dyn Fn(&str) -> Option<&'a ColumnStatistics>) -> bool {
        row_count > 0 && self.possible(row_count, statistics).yes
    }

    fn possible<'a>(&self, row_count: u64, statistics: &dyn Fn(&str) -> Option<&'a ColumnStatistics>) -> Possible {
        let parts = |all: &[Self]| {
            all.iter()
                .map(|part| part.possible(row_count, statistics))
                .collect::<Vec<_>>()
        };
        match self {
            Self::And(all) => {
                let parts = parts(all);
                Possible {
                    yes: parts.iter().all(|part| part.yes),
                    no: parts.iter().any(|part| part.no),
                }
            }
            Self::Or(all) => {
                let parts = parts(all);
                Possible {
                    yes: parts.iter().any(|part| part.yes),
                    no: parts.iter().all(|part| part.no),
                }
            }
            Self::Not(inner) => {
                let Possible { yes, no } = inner.possible(row_count, statistics);
                Possible { yes: no, no: yes }
            }
            Self::Column { name, test } => match statistics(name) {
                Some(statistics) => possible(test, row_count, statistics),
                None => ANY,
            },
        }
    }
}

fn possible(test: &Test, row_count: u64, statistics: &ColumnStatistics) -> Possible {
    let only_nulls = statistics.null_count == Some(row_count);
    match test {
        Test::IsNull => Possible {
            yes: statistics.null_count != Some(0),
            no: !only_nulls,
        },
        Test::IsNotNull => Possible {
            yes: !only_nulls,
            no: statistics.null_count != Some(0),
        },
        // Neither true nor false.
        _ if only_nulls => Possible { yes: false, no: false },
        test => match (&statistics.min, &statistics.max) {
            (Some(min), Some(max)) if !min.is_null() && !max.is_null() => between(test, min, &highest(max)),
            _ => ANY,
        },
    }
}

/// Writers of files leave NaN out of their statistics, but in Java's order it is the greatest value.
fn highest(max: &Datum) -> Datum {
    match max {
        Datum::Float32(_) => Datum::Float32(f32::NAN),
        Datum::Float64(_) => Datum::Float64(f64::NAN),
        max => max.clone(),
    }
}

/// The outcomes for values from `min` to `max`, of which no one is null.
fn between(test: &Test, min: &Datum, max: &Datum) -> Possible {
    const NEITHER: Possible = Possible { yes: false, no: false };
    let equal = |literal: &Datum| match literal {
        Datum::Null => NEITHER,
        literal => Possible {
            yes: min <= literal && literal <= max,
            no: min != literal || max != literal,
        },
    };
    let less = |literal: &Datum, or_equal: bool| match literal {
        Datum::Null => NEITHER,
        literal if or_equal => Possible {
            yes: min <= literal,
            no: max > literal,
        },
        literal => Possible {
            yes: min < literal,
            no: max >= literal,
        },
    };
    let not = |Possible { yes, no }: Possible| Possible { yes: no, no: yes };
    match test {
        Test::Equal(literal) => equal(literal),
        Test::NotEqual(literal) => not(equal(literal)),
        Test::Less(literal) => less(literal, false),
        Test::LessOrEqual(literal) => less(literal, true),
        Test::Greater(literal) => not(less(literal, true)),
        Test::GreaterOrEqual(literal) => not(less(literal, false)),
        Test::In(literals) => one_of(literals, equal),
        Test::NotIn(literals) => not(one_of(literals, equal)),
        Test::Between(low, high) => {
            let (above, below) = (not(less(low, false)), less(high, true));
            Possible {
                yes: above.yes && below.yes,
                no: above.no || below.no,
            }
        }
        Test::StartsWith(start) => starts_with(start, min, max),
        Test::Like(pattern) => Possible {
            yes: starts_with(&pattern.prefix(), min, max).yes,
            no: true,
        },
        Test::IsNull | Test::IsNotNull | Test::EndsWith(_) | Test::Contains(_) => ANY,
    }
}

fn one_of(literals: &[Datum], equal: impl Fn(&Datum) -> Possible) -> Possible {
    let parts: Vec<_> = literals.iter().map(equal).collect();
    Possible {
        yes: parts.iter().any(|part| part.yes),
        no: parts.iter().all(|part| part.no),
    }
}

fn starts_with(start: &str, min: &Datum, max: &Datum) -> Possible {
    let (Datum::String(min), Datum::String(max)) = (min, max) else {
        return ANY;
    };
    let (min, max, start) = (min.as_bytes(), max.as_bytes(), start.as_bytes());
    let min_start = min.get(..start.len()).unwrap_or(min);
    Possible {
        yes: min_start <= start && start <= max,
        no: !(min.starts_with(start) && max.starts_with(start)),
    }
}
