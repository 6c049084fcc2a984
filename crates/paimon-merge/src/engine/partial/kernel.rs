//! The merge of a block.

use std::sync::Arc;

use arrow_array::ArrayRef;
use paimon_format::kv::{KvSchema, VALUE_OFFSET};
use paimon_format::types::RowKind;

use super::groups::{GroupOrder, GroupPicks};
use super::removals::{Earlier, Kept};
use super::settings::{Column, DeleteRule, ReadGroup, Settings};
use crate::MergeError;
use crate::engine::columns::{Flat, MadeRows, Merged};
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::KeyGroups;

pub(super) struct Kernel {
    schema: Arc<KvSchema>,
    deletes: DeleteRule,
    groups: Vec<ReadGroup>,
    columns: Vec<Column>,
    carried: Option<Carried>,
}

/// What an open group has become so far.
struct Carried {
    columns: Vec<ArrayRef>,
    earlier: Earlier,
}

impl Kernel {
    pub(super) fn new(settings: &Settings, schema: Arc<KvSchema>) -> Result<Self, MergeError> {
        let mut columns = settings.columns(&schema)?;
        if settings.removes_by_group() {
            // A -D that would have removed the record, but is late, passes the check of written rows.
            for column in &mut columns {
                if let Column::Aggregated(_, merge) = column {
                    merge.keep_what_has_no_way_back();
                }
            }
        }
        Ok(Self {
            deletes: settings.deletes,
            groups: settings.read_groups(&schema),
            columns,
            schema,
            carried: None,
        })
    }
}

/// Each key's newest value of a column that is in no group.
fn free(flat: &Flat<'_>, column: usize, keys: &[Kept]) -> Merged {
    let nulls = flat.nulls(column);
    let pick = |key: &Kept| {
        let counts = |version: u32| match flat.is_carried(version) {
            true => key.carried_live,
            false => flat.kind(version).is_add(),
        };
        let newest = (key.start..key.end)
            .rev()
            .find(|&version| counts(version) && !nulls.is_null(version));
        // Only retracts: a delete keeps a delete's values.
        let is_deleted = key.kind() == RowKind::Delete && key.start < key.end && !key.live;
        newest.or(is_deleted.then_some(key.start))
    };
    Merged::Picked(keys.iter().map(pick).collect())
}

impl MergeKernel for Kernel {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        let carried = self.carried.take();
        let flat = Flat::new(groups, carried.as_ref().map(|carried| carried.columns.as_slice()));
        let earlier = carried.as_ref().map(|carried| carried.earlier).unwrap_or_default();
        let orders = self
            .groups
            .iter()
            .map(|group| GroupOrder::new(&flat, group))
            .collect::<Result<Vec<_>, _>>()?;
        let removing: Vec<&GroupOrder> = orders
            .iter()
            .zip(&self.groups)
            .filter_map(|(order, group)| group.removes.then_some(order))
            .collect();
        let keys = flat
            .ranges()
            .map(|range| Kept::new(&flat, range, self.deletes, &removing, earlier))
            .collect::<Result<Vec<_>, _>>()?;
        let picks: Vec<GroupPicks> = orders
            .iter()
            .map(|order| GroupPicks::new(&flat, order, &keys))
            .collect();

        let newest = keys.iter().map(|key| key.newest).collect();
        let tombstones = keys.iter().map(|key| key.tombstone).collect();
        let mut made = MadeRows::new(&flat, &self.schema, newest, tombstones)?;
        for (position, column) in self.columns.iter_mut().enumerate() {
            let merged = match column {
                Column::Key => {
                    made.add_newest()?;
                    continue;
                }
                Column::Free => free(&flat, position + VALUE_OFFSET, &keys),
                Column::Sequence(group) => Merged::Picked(picks[*group].sequence.clone()),
                Column::Protected(group) => Merged::Picked(picks[*group].protected.clone()),
                Column::Aggregated(group, merge) => {
                    merge.merge(&flat, position + VALUE_OFFSET, &picks[*group].steps)?
                }
            };
            made.add_column(merged)?;
        }
        let kinds: Vec<RowKind> = keys.iter().take(flat.closed()).map(Kept::kind).collect();
        let open = keys.last().map(|key| Earlier {
            removed: key.tombstone.is_some(),
            inserted: key.inserted,
            live: key.live,
        });
        self.carried = made.finish(&kinds, out)?.map(|columns| Carried {
            columns,
            earlier: open.unwrap_or_default(),
        });
        Ok(())
    }
}
