//! Sorted runs that leave the write buffer: no more of them than memory has room to merge at once.

use std::sync::Arc;

use futures::StreamExt;
use paimon_format::env::{Budget, Env, Reservation};
use paimon_format::kv::{KeyCodec, KvSchemaRef, KvStream};

use super::sort::{BATCH_BYTES, BATCH_LIMIT};
use crate::LsmError;
use crate::compact::pipeline::{STREAMS_OUTPUT_BYTES, spill_streams};
use crate::spill::SpillFile;

/// Memory for an open temporary file: a batch that is being decoded, one that waits, and two that a block points into.
const RUN_BYTES: u64 = 4 * BATCH_BYTES as u64;

/// Memory to merge runs with, taken from the budget of the write buffers. Nobody waits for it: who merges holds buffers of the same
/// budget, and others may wait for these.
#[derive(Debug)]
pub(super) struct MergeMemory {
    /// Runs that may be open at once, at least 2.
    pub(super) fan_in: usize,
    /// `None`: nothing was free, two runs are merged nevertheless.
    reservation: Option<Reservation>,
}

impl MergeMemory {
    /// Enough for all of `runs`, if that is free.
    pub(super) fn for_all(budget: &Budget, runs: usize) -> Option<Self> {
        let reservation = budget.try_reserve(STREAMS_OUTPUT_BYTES + runs as u64 * RUN_BYTES)?;
        Some(Self {
            fan_in: runs.max(2),
            reservation: Some(reservation),
        })
    }

    /// What is free, up to what `runs` need.
    pub(super) fn of_free(budget: &Budget, runs: usize) -> Self {
        let wanted = STREAMS_OUTPUT_BYTES + runs as u64 * RUN_BYTES;
        let reservation = budget.try_reserve(budget.free().min(wanted));
        let granted = reservation.as_ref().map_or(0, Reservation::bytes);
        let fan_in = granted.saturating_sub(STREAMS_OUTPUT_BYTES) / RUN_BYTES;
        Self {
            fan_in: usize::try_from(fan_in).unwrap_or(runs).clamp(2, runs.max(2)),
            reservation,
        }
    }

    /// For what is made of rows that are merged with no others, if it is free.
    pub(super) fn for_output(budget: &Budget) -> Option<Reservation> {
        Self::of_free(budget, 0).reservation
    }

    /// The streams, which give the memory back when the last one is dropped.
    pub(super) fn held_by(self, runs: Vec<KvStream>) -> Vec<KvStream> {
        let reservation = Arc::new(self.reservation);
        let held = runs.into_iter().map(|run| {
            let reservation = Arc::clone(&reservation);
            let run = run.map(move |batch| {
                let _held = &reservation;
                batch
            });
            run.boxed()
        });
        held.collect()
    }
}

/// Merges the smallest files into one, all versions kept, until there are no more than `most`, at least one. Where the disk has no
/// room for that they stay as they are.
///
/// Errors: `Unavailable` or `Corrupt`, naming the file.
pub(super) async fn merge_spills(
    env: &Env,
    schema: &KvSchemaRef,
    codec: &KeyCodec,
    mut spills: Vec<Arc<SpillFile>>,
    most: usize,
    fan_in: usize,
) -> Result<Vec<Arc<SpillFile>>, LsmError> {
    while spills.len() > most.max(1) {
        spills.sort_by_key(|spill| spill.bytes());
        let merged = fan_in.max(2).min(spills.len() - most.max(1) + 1);
        let rest = spills.split_off(merged);
        let bytes: u64 = spills.iter().map(|spill| spill.bytes()).sum();
        if env.disk.free() < bytes {
            spills.extend(rest);
            break;
        }
        let runs = spills.drain(..).map(|spill| spill.open(env, schema, codec)).collect();
        spills.push(Arc::new(spill_streams(env, schema, runs, BATCH_LIMIT).await?));
        spills.extend(rest);
    }
    Ok(spills)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
    use futures::TryStreamExt;
    use paimon_format::kv::{KvBatch, KvSchema, RowLevels};
    use paimon_format::types::{DataField, DataType, TypeKind};

    use super::*;
    use crate::spill::SpillWriter;

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_bounds_how_many_runs_are_open() {
        let budget = Budget::new(32 * MIB);
        let all = MergeMemory::for_all(&budget, 5).unwrap();
        assert_eq!((all.fan_in, budget.free()), (5, 6 * MIB));
        // The rest is too little for anything: two runs can always be merged.
        assert!(MergeMemory::for_all(&budget, 5).is_none());
        assert_eq!(MergeMemory::of_free(&budget, 5).fan_in, 2);
        drop(all);
        let some = MergeMemory::of_free(&budget, 100);
        assert_eq!((some.fan_in, budget.free()), (8, 0));
        let streams = some.held_by(vec![futures::stream::empty().boxed(), futures::stream::empty().boxed()]);
        assert_eq!(budget.free(), 0);
        drop(streams);
        assert_eq!(budget.free(), 32 * MIB);
    }

    fn schema() -> KvSchemaRef {
        let key = DataField::new(0, "k", DataType::not_null(TypeKind::BigInt));
        Arc::new(KvSchema::new(0, vec![key], vec![0], None).unwrap())
    }

    fn batch(schema: &KvSchemaRef, codec: &KeyCodec, rows: &[(i64, i64)]) -> KvBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(Int8Array::from(vec![0; rows.len()])),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
        ];
        let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
        KvBatch::new(schema, columns, codec, RowLevels::All(-1)).unwrap()
    }

    #[tokio::test]
    async fn passes_keep_every_version_in_order() {
        let temp = tempfile::tempdir().unwrap();
        let env = Env::fixed(temp.path());
        let schema = schema();
        let codec = KeyCodec::new(&schema).unwrap();
        for (most, fan_in) in [(1, 2), (2, 2), (3, 4), (9, 3), (20, 2)] {
            let mut spills = Vec::new();
            let mut all = Vec::new();
            for spill in 0..10 {
                // Keys of their own, and key 7 in each.
                let mut rows: Vec<(i64, i64)> = (0..=spill).map(|key| (key * 10 + spill, spill * 100 + key)).collect();
                rows.push((7, spill * 100 + 50));
                rows.sort_unstable();
                let mut writer = SpillWriter::create(&env, &schema).await.unwrap();
                writer.write(&batch(&schema, &codec, &rows)).await.unwrap();
                spills.push(Arc::new(writer.finish().await.unwrap()));
                all.extend(rows);
            }
            let spills = merge_spills(&env, &schema, &codec, spills, most, fan_in).await.unwrap();
            assert_eq!(spills.len(), most.min(10));
            assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), spills.len());
            let mut found = Vec::new();
            for spill in spills {
                let batches: Vec<KvBatch> = spill.open(&env, &schema, &codec).try_collect().await.unwrap();
                let rows = batches.iter().flat_map(|batch| {
                    let keys =
                        arrow_array::cast::as_primitive_array::<arrow_array::types::Int64Type>(&batch.values()[0]);
                    let rows = keys
                        .values()
                        .iter()
                        .copied()
                        .zip(batch.sequence_numbers().iter().copied());
                    rows.collect::<Vec<_>>()
                });
                let rows: Vec<(i64, i64)> = rows.collect();
                assert!(rows.is_sorted(), "{rows:?}");
                found.extend(rows);
            }
            all.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, all);
        }
    }
}
