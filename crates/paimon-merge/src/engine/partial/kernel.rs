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
        Ok(Self {
            deletes: settings.deletes,
            groups: settings.read_groups(&schema),
            columns: settings.columns(&schema)?,
            schema,
            carried: None,
        })
    }
}

/// Each key's newest value of a column that is in no group.
fn free(flat: &Flat<'_>, column: usize, is_nullable: bool, keys: &[Kept]) -> Merged {
    let nulls = flat.nulls(column);
    let pick = |key: &Kept| {
        let counts = |version: u32| match flat.is_carried(version) {
            true => key.carried_live,
            false => flat.kind(version).is_add(),
        };
        let newest = (key.start..key.end)
            .rev()
            .find(|&version| counts(version) && !nulls.is_null(version));
        newest.or_else(|| match key.kind() {
            // Only retracts: a delete keeps a delete's values.
            RowKind::Delete if key.start < key.end && !key.live => Some(key.start),
            _ if is_nullable => None,
            _ => Some(key.newest),
        })
    };
    Merged::Picked(keys.iter().map(pick).collect())
}

/// Each key's pick; a delete has a value where there must be one.
fn picked(picks: &[Option<u32>], is_nullable: bool, keys: &[Kept]) -> Merged {
    let pick = |(&pick, key): (&Option<u32>, &Kept)| match (pick, is_nullable, key.kind()) {
        (None, false, RowKind::Delete) => Some(key.newest),
        _ => pick,
    };
    Merged::Picked(picks.iter().zip(keys).map(pick).collect())
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
            let is_nullable = self
                .schema
                .fields
                .get(position)
                .is_some_and(|field| field.data_type.nullable);
            let merged = match column {
                Column::Key => {
                    made.add_newest()?;
                    continue;
                }
                Column::Free => free(&flat, position + VALUE_OFFSET, is_nullable, &keys),
                Column::Sequence(group) => picked(&picks[*group].sequence, is_nullable, &keys),
                Column::Protected(group) => picked(&picks[*group].protected, is_nullable, &keys),
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
