//! Functions that take a value as it is.

use super::{AggregatedColumn, Aggregation, AggregatorFactory, Step};
use crate::MergeError;

/// Which of a column's values is taken. Source: `org.apache.paimon.mergetree.compact.aggregate.FieldLastValueAgg` and its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The newest, null or not; null once it is taken back.
    Last,
    /// The newest that is not null; null once a value is taken back.
    LastNonNull,
    /// The oldest, null or not.
    First,
    /// The oldest that is not null.
    FirstNonNull,
}

/// What a selection knows of a group: the position taken, and whether the first value has been.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selected {
    pub(crate) at: Option<u32>,
    pub(crate) seen: bool,
}

impl Selection {
    /// Whether it takes values of -U and -D rows back.
    pub fn accepts_retract(self) -> bool {
        matches!(self, Self::Last | Self::LastNonNull)
    }

    /// One more value: its position and whether it is null. `None`: it cannot be taken back.
    #[inline]
    pub(crate) fn step(self, selected: Selected, at: u32, is_null: bool, step: Step) -> Option<Selected> {
        let value = (!is_null).then_some(at);
        let Selected { at: held, seen } = selected;
        let (at, seen) = match (step, self) {
            (Step::Start, _) => (value, seen),
            (Step::Add, Self::Last) => (value, seen),
            (Step::Late, Self::Last) => (held, seen),
            (Step::Retract, Self::Last) => (None, seen),
            (Step::Add, Self::LastNonNull) => (value.or(held), seen),
            (Step::Late, Self::LastNonNull) => (held.or(value), seen),
            (Step::Retract, Self::LastNonNull) => (held.filter(|_| is_null), seen),
            (Step::Add, Self::First) => (if seen { held } else { value }, true),
            // An older value goes before the first one.
            (Step::Late, Self::First) => (if seen { value } else { held }, true),
            (Step::Add, Self::FirstNonNull) => (if seen { held } else { value.or(held) }, seen || !is_null),
            (Step::Late, Self::FirstNonNull) => match seen {
                true => (value, true),
                false => (held.or(value), held.is_some()),
            },
            (Step::Retract, Self::First | Self::FirstNonNull) => return None,
        };
        Some(Selected { at, seen })
    }
}

/// A selection under its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct SelectFactory {
    name: &'static str,
    selection: Selection,
}

impl SelectFactory {
    /// All names; `first_not_null_value` is an older one.
    pub(super) const ALL: [Self; 5] = [
        Self::new("last_value", Selection::Last),
        Self::new("last_non_null_value", Selection::LastNonNull),
        Self::new("first_value", Selection::First),
        Self::new("first_non_null_value", Selection::FirstNonNull),
        Self::new("first_not_null_value", Selection::FirstNonNull),
    ];

    const fn new(name: &'static str, selection: Selection) -> Self {
        Self { name, selection }
    }
}

impl AggregatorFactory for SelectFactory {
    fn name(&self) -> &str {
        self.name
    }

    fn create(&self, _column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        Ok(Aggregation::Select(self.selection))
    }
}
