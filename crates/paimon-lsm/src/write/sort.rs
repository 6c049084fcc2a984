//! The order of what is in the write buffer.

use std::cmp::Ordering;

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use futures::{StreamExt, stream};
use paimon_format::FormatError;
use paimon_format::env::{Env, Reservation};
use paimon_format::kv::{BatchLimit, KeyCodec, Keys, KvBatch, KvStream, RowLevels};
use paimon_merge::MergeError;
use paimon_merge::plan::{Block, BlockSources, RowRef, VersionOrder, Versioned};

use super::records::BUFFER_LEVEL;
use crate::compact::pipeline::{BLOCK_BYTES, SortedBlocks};

/// Gathered batches are this large: many sorted runs may be merged at once, each with one or two of them in memory.
const BATCH_ROWS: usize = 8192;
pub(super) const BATCH_BYTES: usize = 512 << 10;
/// Blocks are larger: they are made into rows one at a time.
const BLOCK_ROWS: usize = 64 << 10;
/// A key with so many times the rows of a block is cut, where it may be.
const CUT_BLOCKS: usize = 4;
/// As a limit.
pub(super) const BATCH_LIMIT: BatchLimit = BatchLimit {
    rows: BATCH_ROWS,
    bytes: BATCH_BYTES,
};

/// Positions of all rows by (key, user-defined sequence, arrival). Batches come in order of arrival, their keys in any order.
///
/// Compares eight bytes of each key first; keys of integers are done with that. Cost: O(n log n), 16 bytes a row.
fn sort(batches: &[KvBatch], order: &VersionOrder) -> Result<Vec<RowRef>, MergeError> {
    let has_sequence = batches.first().is_some_and(|batch| batch.schema.sequence.is_some());
    let versions: Vec<Versioned> = match has_sequence {
        true => batches
            .iter()
            .map(|batch| order.prepare(batch))
            .collect::<Result<_, _>>()?,
        false => Vec::new(),
    };
    let mut rows = Vec::with_capacity(batches.iter().map(KvBatch::len).sum());
    for (batch, index) in batches.iter().zip(0_u32..) {
        let row = |(row, prefix)| Entry {
            prefix,
            at: RowRef { batch: index, row },
        };
        rows.extend((0_u32..).zip(Prefixes::new(&batch.keys)).map(row));
    }
    let whole = batches
        .iter()
        .all(|batch| matches!(batch.keys, Keys::Int32(_) | Keys::Int64(_)));
    rows.sort_unstable_by(|a, b| {
        a.prefix
            .cmp(&b.prefix)
            .then_with(|| {
                if whole {
                    Ordering::Equal
                } else {
                    compare_keys(batches, a.at, b.at)
                }
            })
            .then_with(|| compare_versions(&versions, a.at, b.at))
            .then_with(|| (a.at.batch, a.at.row).cmp(&(b.at.batch, b.at.row)))
    });
    Ok(rows.into_iter().map(|entry| entry.at).collect())
}

struct Entry {
    prefix: u64,
    at: RowRef,
}

fn compare_keys(batches: &[KvBatch], a: RowRef, b: RowRef) -> Ordering {
    let (left, right) = (&batches[a.batch as usize], &batches[b.batch as usize]);
    left.keys.compare(a.row as usize, &right.keys, b.row as usize)
}

/// Nothing to compare without a user-defined sequence: sequence numbers follow arrival.
fn compare_versions(versions: &[Versioned], a: RowRef, b: RowRef) -> Ordering {
    match (versions.get(a.batch as usize), versions.get(b.batch as usize)) {
        (Some(left), Some(right)) => left.compare(a.row as usize, right, b.row as usize),
        _ => Ordering::Equal,
    }
}

/// The first eight bytes of each key as a number of the same order.
struct Prefixes<'a> {
    keys: &'a Keys,
    row: usize,
}

impl<'a> Prefixes<'a> {
    fn new(keys: &'a Keys) -> Self {
        Self { keys, row: 0 }
    }
}

impl Iterator for Prefixes<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let row = self.row;
        if row >= self.keys.len() {
            return None;
        }
        self.row += 1;
        Some(match self.keys {
            Keys::Int32(values) => flip(i64::from(values[row])),
            Keys::Int64(values) => flip(values[row]),
            Keys::Rows { rows, start, .. } => {
                let key = rows.row(start + row);
                let mut prefix = [0; 8];
                for (to, from) in prefix.iter_mut().zip(key.data()) {
                    *to = *from;
                }
                u64::from_be_bytes(prefix)
            }
        })
    }
}

/// Signed order as unsigned order.
fn flip(value: i64) -> u64 {
    (value as u64) ^ (1 << 63)
}

/// Records in order, as positions.
#[derive(Debug)]
pub(super) struct SortedRows {
    sources: BlockSources,
    codec: KeyCodec,
    rows: Vec<RowRef>,
    next: usize,
    row_bytes: usize,
}

impl SortedRows {
    /// Sorts the rows of these batches, which came in order of arrival; at least one. CPU-bound.
    pub(super) fn new(batches: Vec<KvBatch>, order: &VersionOrder, codec: KeyCodec) -> Result<Self, MergeError> {
        let rows = sort(&batches, order)?;
        let bytes: usize = batches.iter().map(KvBatch::memory_size).sum();
        Ok(Self {
            sources: BlockSources::new(batches),
            codec,
            row_bytes: bytes.div_ceil(rows.len().max(1)).max(1),
            rows,
            next: 0,
        })
    }

    /// The rows as blocks; `memory` is given back with them.
    pub(super) fn into_blocks(self, memory: Vec<Reservation>) -> BufferBlocks {
        BufferBlocks {
            rows: self,
            is_cut: false,
            _memory: memory,
        }
    }

    /// The next rows, gathered, and what is left behind them. CPU-bound.
    pub(super) fn next_batch(mut self) -> Result<(KvBatch, Option<Self>), FormatError> {
        let rows_per_batch = (BATCH_BYTES / self.row_bytes).clamp(1, BATCH_ROWS);
        let end = self.rows.len().min(self.next + rows_per_batch);
        let rows = self.rows.get(self.next..end).unwrap_or_default();
        let batches = self.sources.batches();
        let columns: Vec<&RecordBatch> = batches.iter().map(|batch| &batch.columns).collect();
        let keys: Vec<&Keys> = batches.iter().map(|batch| &batch.keys).collect();
        let at: Vec<(usize, usize)> = rows.iter().map(|at| (at.batch as usize, at.row as usize)).collect();
        let gathered = interleave_record_batch(&columns, &at)
            .map_err(|error| FormatError::internal(format!("write buffer: {error}")))?;
        let keys = self.codec.gather(&keys, at.iter().copied())?;
        let schema = &batches.first().ok_or_else(no_rows)?.schema;
        let batch = KvBatch::with_keys(schema, gathered, keys, RowLevels::All(BUFFER_LEVEL))?;
        self.next = end;
        let rest = (end < self.rows.len()).then_some(self);
        Ok((batch, rest))
    }

    /// All rows in order; `memory` is given back when the last one is out.
    pub(super) fn into_stream(self, env: Env, memory: Vec<Reservation>) -> KvStream {
        stream::try_unfold((Some(self), memory), move |(rows, memory)| {
            let env = env.clone();
            async move {
                let Some(rows) = rows else { return Ok(None) };
                let (batch, rest) = env.cpu(move || rows.next_batch()).await??;
                Ok(Some((batch, (rest, memory))))
            }
        })
        .boxed()
    }
}

/// Records of a buffer that was never spilled.
#[derive(Debug)]
pub(super) struct BufferBlocks {
    rows: SortedRows,
    /// The last block ended in the middle of a key.
    is_cut: bool,
    _memory: Vec<Reservation>,
}

impl SortedBlocks for BufferBlocks {
    fn next_block(&mut self, cut_keys: bool) -> Result<Option<Block>, MergeError> {
        let SortedRows {
            sources,
            rows,
            next,
            row_bytes,
            ..
        } = &mut self.rows;
        let left = rows.get(*next..).unwrap_or_default();
        let wanted = (BLOCK_BYTES / *row_bytes).clamp(1, BLOCK_ROWS);
        let most = if cut_keys { CUT_BLOCKS * wanted } else { usize::MAX };
        let batches = sources.batches();
        let goes_on = std::mem::take(&mut self.is_cut);
        let (mut taken, mut ends) = (0, Vec::new());
        for versions in left.chunk_by(|&a, &b| compare_keys(batches, a, b).is_eq()) {
            if taken >= wanted {
                break;
            }
            taken += versions.len().min(most);
            ends.push(taken as u32);
            if versions.len() > most {
                self.is_cut = true;
                break;
            }
        }
        let rows = left.get(..taken).unwrap_or_default().to_vec();
        *next += taken;
        Ok((taken > 0).then(|| Block::of_keys(sources, rows, &ends, goes_on, self.is_cut)))
    }
}

fn no_rows() -> FormatError {
    FormatError::internal("a sorted buffer without rows")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int8Array, Int64Array};
    use paimon_format::kv::KvSchema;
    use paimon_format::types::{DataField, DataType, TypeKind};

    use super::*;

    /// Sizes of the groups of each block, and whether its last one goes on.
    fn blocks(keys: &[i64], cut_keys: bool) -> Vec<(Vec<usize>, bool)> {
        let key = DataField::new(0, "k", DataType::not_null(TypeKind::BigInt));
        let schema = Arc::new(KvSchema::new(0, vec![key], vec![0], None).unwrap());
        let codec = KeyCodec::new(&schema).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(0..keys.len() as i64)),
            Arc::new(Int8Array::from(vec![0; keys.len()])),
            Arc::new(Int64Array::from(keys.to_vec())),
        ];
        let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
        let batch = KvBatch::new(&schema, columns, &codec, RowLevels::All(BUFFER_LEVEL)).unwrap();
        let order = VersionOrder::new(&schema).unwrap();
        let mut rows = SortedRows::new(vec![batch], &order, codec)
            .unwrap()
            .into_blocks(Vec::new());
        let mut blocks = Vec::new();
        while let Some(block) = rows.next_block(cut_keys).unwrap() {
            let groups = block.groups();
            blocks.push((groups.iter().map(<[RowRef]>::len).collect(), groups.open));
        }
        blocks
    }

    #[test]
    fn a_key_with_very_many_versions_is_cut_where_it_may_be() {
        let hot = 2 * CUT_BLOCKS * BLOCK_ROWS + 1;
        let mut keys = vec![7; hot];
        keys.extend([3, 3, 9, 9]);
        assert_eq!(blocks(&keys, false), [(vec![2, hot], false), (vec![2], false)]);
        let part = CUT_BLOCKS * BLOCK_ROWS;
        // The last part has one version, and is a group for all that.
        assert_eq!(
            blocks(&keys, true),
            [(vec![2, part], true), (vec![part], true), (vec![1, 2], false)]
        );
        assert_eq!(blocks(&[5, 4], true), [(vec![], false)], "single versions pass");
    }
}
