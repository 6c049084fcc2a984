//! Deletes in a buffer that later rows of their keys must not join.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use paimon_format::env::{Budget, Reservation};
use paimon_format::kv::{KeyCodec, KvSchema};
use paimon_format::types::RowKind;

use super::records::internal;
use crate::LsmError;

/// Bytes that the map takes for a place, its share of free ones not counted: the entry and a byte of state.
const PLACE_BYTES: usize = size_of::<(u64, bool)>() + 1;

/// Rows of a table's columns, with their kinds.
pub(super) type Rows = (RecordBatch, Vec<RowKind>);

/// Which keys have a -D in the buffer. For engines where a delete removes what is older: no file can hold "deleted, then inserted", so the
/// buffer is flushed between the two.
///
/// Where a sequence field orders rows, a -D may turn out to be older than rows that came before it: there the other keys are known, too, and
/// a -D and any other row of its key are kept apart, whichever comes first.
///
/// A digest stands for a key: two keys with one digest cost a flush too many, no more.
#[derive(Debug)]
pub(super) struct Removals {
    /// By digest, whether the key's rows are deletes.
    keys: HashMap<u64, bool>,
    by_sequence: bool,
    reserved: Vec<Reservation>,
}

impl Removals {
    /// None yet.
    pub(super) fn new(schema: &KvSchema) -> Self {
        Self {
            keys: HashMap::new(),
            by_sequence: schema.sequence.is_some(),
            reserved: Vec::new(),
        }
    }

    /// Whether rows of these kinds may join the buffer, and nothing of them must be remembered.
    pub(super) fn ignores(&self, kinds: &[RowKind]) -> bool {
        !self.by_sequence && self.keys.is_empty() && !kinds.contains(&RowKind::Delete)
    }

    /// Remembers the rows that may join the buffer. `None`: all may; else those that may, and those that must wait until it is flushed. Rows of
    /// one key keep their order. The columns must be those of the schema.
    ///
    /// Errors: `Internal`.
    pub(super) fn admit(
        &mut self,
        schema: &KvSchema,
        codec: &KeyCodec,
        values: &RecordBatch,
        kinds: &[RowKind],
    ) -> Result<Option<(Rows, Rows)>, LsmError> {
        let columns = schema.key.iter().filter_map(|&column| values.columns().get(column));
        let keys = codec.keys_of_columns(&columns.cloned().collect::<Vec<ArrayRef>>())?;
        let (mut now, mut later) = (Vec::new(), Vec::new());
        let mut waiting = HashSet::new();
        for ((row, &kind), number) in kinds.iter().enumerate().zip(0_u32..) {
            let mut hasher = DefaultHasher::new();
            keys.hash(row, &mut hasher);
            let key = hasher.finish();
            let deletes = kind == RowKind::Delete;
            if waiting.contains(&key) || self.keys.get(&key).is_some_and(|&deleted| deleted != deletes) {
                waiting.insert(key);
                later.push(number);
                continue;
            }
            if deletes || self.by_sequence {
                self.keys.insert(key, deletes);
            }
            now.push(number);
        }
        if later.is_empty() {
            return Ok(None);
        }
        Ok(Some((pick(values, kinds, now)?, pick(values, kinds, later)?)))
    }

    /// Bytes in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.keys.capacity() * PLACE_BYTES) as u64
    }

    /// Takes budget for what is in memory. `false`: there is not enough.
    pub(super) fn reserve(&mut self, budget: &Budget) -> bool {
        let reserved: u64 = self.reserved.iter().map(Reservation::bytes).sum();
        let missing = self.memory_bytes().saturating_sub(reserved);
        if missing > 0 {
            let Some(reservation) = budget.try_reserve(missing) else {
                return false;
            };
            self.reserved.push(reservation);
        }
        true
    }

    /// Forgets all: the buffer is empty.
    pub(super) fn clear(&mut self) {
        self.keys = HashMap::new();
        self.reserved.clear();
    }
}

fn pick(values: &RecordBatch, kinds: &[RowKind], rows: Vec<u32>) -> Result<Rows, LsmError> {
    let picked = rows.iter().filter_map(|&row| kinds.get(row as usize)).copied();
    let kinds = picked.collect();
    let values = take_record_batch(values, &UInt32Array::from(rows)).map_err(internal)?;
    Ok((values, kinds))
}
