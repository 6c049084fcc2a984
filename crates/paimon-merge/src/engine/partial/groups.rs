//! Which version a sequence group takes.

use std::cmp::Ordering;

use arrow_array::Array;
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::SortOptions;
use paimon_format::kv::VALUE_OFFSET;
use paimon_format::types::canonical_nan;

use super::removals::Kept;
use super::settings::ReadGroup;
use crate::MergeError;
use crate::aggregate::Step;
use crate::engine::columns::{Flat, Steps};

/// The order of a block's versions by a group's sequence fields, ascending, nulls lowest.
pub(super) struct GroupOrder {
    fields: Vec<DynComparator>,
    /// Versions that say nothing about the group: all sequence fields are null. `None`: there is no such version.
    empty: Option<Vec<bool>>,
}

impl GroupOrder {
    pub(super) fn new(flat: &Flat<'_>, group: &ReadGroup) -> Result<Self, MergeError> {
        let mut fields = Vec::with_capacity(group.sequence.len());
        let mut empty: Option<Vec<bool>> = Some(vec![true; flat.len()]);
        for &field in &group.sequence {
            let values = flat.gather(field + VALUE_OFFSET, (0..flat.len() as u32).map(Some))?;
            match (&mut empty, values.null_count()) {
                (none, 0) => *none = None,
                (None, _) => {}
                (Some(empty), _) => {
                    for (version, empty) in empty.iter_mut().enumerate() {
                        *empty &= values.is_null(version);
                    }
                }
            }
            let values = canonical_nan(&values);
            fields.push(make_comparator(&values, &values, SortOptions::default()).map_err(MergeError::internal)?);
        }
        Ok(Self { fields, empty })
    }

    #[inline]
    pub(super) fn is_empty(&self, version: u32) -> bool {
        self.empty
            .as_ref()
            .is_some_and(|empty| empty.get(version as usize).copied().unwrap_or(false))
    }

    /// Whether a version is at least as new as the one held.
    #[inline]
    pub(super) fn is_newer(&self, version: u32, held: Option<u32>) -> bool {
        let Some(held) = held else { return true };
        let orders = self
            .fields
            .iter()
            .map(|compare| compare(version as usize, held as usize));
        orders.into_iter().find(|order| order.is_ne()) != Some(Ordering::Less)
    }
}

/// What a group takes for each key of a block, the open one included.
#[derive(Default)]
pub(super) struct GroupPicks {
    /// The version that the sequence fields are from.
    pub(super) sequence: Vec<Option<u32>>,
    /// The version that the other columns are from; null once they are taken back.
    pub(super) protected: Vec<Option<u32>>,
    /// How the versions join a column with a function.
    pub(super) steps: Steps,
}

impl GroupPicks {
    pub(super) fn new(flat: &Flat<'_>, order: &GroupOrder, keys: &[Kept]) -> Self {
        let mut picks = Self::default();
        for key in keys {
            let (mut sequence, mut protected) = (None, None);
            for version in key.start..key.end {
                if flat.is_carried(version) {
                    sequence = (!order.is_empty(version)).then_some(version);
                    protected = Some(version);
                    picks.steps.continued = true;
                    continue;
                }
                if order.is_empty(version) || key.skips(flat, version) {
                    continue;
                }
                let is_newer = order.is_newer(version, sequence);
                if is_newer {
                    sequence = Some(version);
                }
                if flat.kind(version).is_add() {
                    picks.steps.push(version, if is_newer { Step::Add } else { Step::Late });
                    if is_newer {
                        protected = Some(version);
                    }
                } else {
                    if key.begins_with(version) {
                        picks.steps.push(version, Step::Start);
                    }
                    picks.steps.push(version, Step::Retract);
                    if is_newer {
                        protected = None;
                    }
                }
            }
            picks.sequence.push(sequence);
            picks.protected.push(protected);
            picks.steps.end_group();
        }
        picks
    }
}
