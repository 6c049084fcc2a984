//! What has been written and not yet flushed.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use paimon_format::env::{Budget, Env, Reservation};
use paimon_format::kv::{KvSchemaRef, KvStream};
use paimon_format::types::RowKind;
use paimon_merge::plan::VersionOrder;

use super::records::{RecordBuffer, Records};
use super::removals::{Removals, Rows};
use super::runs::{MergeMemory, merge_spills};
use super::sort::SortedRows;
use crate::LsmError;
use crate::compact::pipeline::BufferedRuns;
use crate::spill::{SpillFile, SpillWriter};

/// Rows that small batches are gathered to.
const BATCH_ROWS: usize = 8192;
/// With more temporary files than this a full buffer is flushed.
const MAX_SPILLS: usize = 128;

/// Records of one bucket, sorted when they leave. Bounded by a budget that the writers of a table may share. When that is used up, the
/// records go to a sorted temporary file, or the buffer asks to be flushed.
///
/// Source: `org.apache.paimon.mergetree.SortBufferWriteBuffer`.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    records: RecordBuffer,
    env: Env,
    /// `None`: not spillable; else the bytes on disk from which on it is flushed instead.
    max_spill_bytes: Option<u64>,
    spills: Vec<Arc<SpillFile>>,
    /// `None`: rows of any kinds may lie in it together.
    removals: Option<Removals>,
}

impl WriteBuffer {
    /// An empty buffer.
    ///
    /// Errors: `Unsupported` when a key or sequence column's type has no order.
    pub(super) fn new(
        schema: KvSchemaRef,
        env: Env,
        budget: Budget,
        max_spill_bytes: Option<u64>,
    ) -> Result<Self, LsmError> {
        Ok(Self {
            records: RecordBuffer::new(schema, budget, BATCH_ROWS)?,
            env,
            max_spill_bytes,
            spills: Vec::new(),
            removals: None,
        })
    }

    /// Keeps deletes apart from later rows of their keys: [`admit`](Self::admit).
    #[must_use]
    pub(super) fn with_removals(self) -> Self {
        let removals = Some(Removals::new(self.records.schema()));
        Self { removals, ..self }
    }

    /// Whether no record is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.spills.is_empty()
    }

    /// Bytes in memory; spilled ones do not count.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.records.memory_bytes() + self.removals_bytes()
    }

    fn removals_bytes(&self) -> u64 {
        self.removals.as_ref().map_or(0, Removals::memory_bytes)
    }

    /// Which of these rows may be pushed now, and will be. `None`: all; else those that may, and those that must wait until the buffer is drained.
    ///
    /// Errors: those of [`push`](Self::push) for all of the rows; the buffer is unchanged then.
    pub(super) fn admit(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<Option<(Rows, Rows)>, LsmError> {
        match &mut self.removals {
            Some(removals) if !removals.ignores(kinds) => {
                self.records.check(values, kinds)?;
                removals.admit(self.records.schema(), self.records.codec(), values, kinds)
            }
            _ => Ok(None),
        }
    }

    /// Takes records that were [admitted](Self::admit), numbered from `first_sequence` on. Returns whether there was budget for all of it: if not, the buffer
    /// should be spilled or flushed before more comes.
    ///
    /// Errors as [`RecordBuffer::push`]; the buffer is unchanged then.
    pub(super) fn push(
        &mut self,
        values: &RecordBatch,
        kinds: &[RowKind],
        first_sequence: i64,
    ) -> Result<bool, LsmError> {
        let rows = i64::try_from(values.num_rows()).unwrap_or(i64::MAX);
        let sequence = Int64Array::from_iter_values(first_sequence..first_sequence.saturating_add(rows));
        let has_room = self.records.push(values, kinds, sequence)?;
        let budget = self.records.budget();
        Ok(self.removals.as_mut().is_none_or(|removals| removals.reserve(budget)) && has_room)
    }

    /// Moves what is in memory to a sorted temporary file. `false`: it may not, or too much would stay in memory: flush instead.
    ///
    /// Errors: `Unavailable` when the disk fails; the buffer has lost its records then.
    pub(super) async fn spill(&mut self) -> Result<bool, LsmError> {
        let spilled: u64 = self.spills.iter().map(|spill| spill.bytes()).sum();
        // Compressed records take no more room than in memory.
        let fits = self.max_spill_bytes.is_some_and(|max| spilled < max)
            && self.spills.len() < MAX_SPILLS
            && self.removals_bytes() <= self.records.memory_bytes().min(self.records.budget().total() / 4)
            && self.env.disk.free() >= self.memory_bytes();
        if fits {
            self.spill_memory().await?;
        }
        Ok(fits)
    }

    /// Moves what is in memory to a sorted temporary file.
    async fn spill_memory(&mut self) -> Result<(), LsmError> {
        let Some((sorted, _memory)) = self.take_sorted().await? else {
            return Ok(());
        };
        let mut writer = SpillWriter::create(&self.env, self.records.schema()).await?;
        let mut sorted = Some(sorted);
        while let Some(rows) = sorted.take() {
            let (batch, rest) = self.env.cpu(move || rows.next_batch()).await??;
            writer.write(&batch).await?;
            sorted = rest;
        }
        let spill = writer.finish().await?;
        tracing::debug!(rows = spill.rows(), bytes = spill.bytes(), "write buffer spilled");
        self.spills.push(Arc::new(spill));
        Ok(())
    }

    /// Hands out all records as sorted runs, in which a key may occur often, oldest version first, and begins anew. The
    /// budget is given back when the runs are dropped.
    ///
    /// What was never spilled is not merged with anything. Otherwise there are no more runs than the budget has room to merge at once, and
    /// two: where it is short, what is in memory goes to disk, too, and temporary files are merged into larger ones first.
    ///
    /// Errors as [`spill`](Self::spill).
    pub(super) async fn drain(&mut self) -> Result<BufferedRuns, LsmError> {
        if let Some(removals) = &mut self.removals {
            removals.clear();
        }
        if self.spills.is_empty()
            && let Some((sorted, mut memory)) = self.take_sorted().await?
        {
            memory.extend(MergeMemory::for_output(self.records.budget()));
            return Ok(BufferedRuns::Memory(Box::new(sorted.into_blocks(memory))));
        }
        let memory = match MergeMemory::for_all(self.records.budget(), self.spills.len() + 1) {
            Some(memory) => memory,
            None => {
                if !self.spills.is_empty() && self.env.disk.free() >= self.memory_bytes() {
                    self.spill_memory().await?;
                }
                MergeMemory::of_free(self.records.budget(), self.spills.len() + 1)
            }
        };
        let sorted = self.take_sorted().await?;
        let most = memory.fan_in - usize::from(sorted.is_some());
        let spills = std::mem::take(&mut self.spills);
        let (schema, codec) = (self.records.schema(), self.records.codec());
        let spills = merge_spills(&self.env, schema, codec, spills, most, memory.fan_in).await?;
        let mut runs: Vec<KvStream> = spills
            .into_iter()
            .map(|spill| spill.open(&self.env, schema, codec))
            .collect();
        if let Some((sorted, reserved)) = sorted {
            runs.push(sorted.into_stream(self.env.clone(), reserved));
        }
        Ok(BufferedRuns::Streams(memory.held_by(runs)))
    }

    /// Sorts what is in memory and takes it out, with its memory; `None`: nothing is there.
    async fn take_sorted(&mut self) -> Result<Option<(SortedRows, Vec<Reservation>)>, LsmError> {
        let Records { batches, reserved } = self.records.take()?;
        if batches.is_empty() {
            return Ok(None);
        }
        let order = VersionOrder::new(self.records.schema())?;
        let codec = self.records.codec().clone();
        let sorted = self.env.cpu(move || SortedRows::new(batches, &order, codec)).await??;
        Ok(Some((sorted, reserved)))
    }
}
