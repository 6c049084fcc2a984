//! The writer of one bucket.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::env::Env;
use paimon_format::kv::{KvFiles, KvSchemaRef};
use paimon_format::meta::{CommitIncrement, DataFileMeta};
use paimon_format::types::RowKind;
use paimon_merge::engine::MergeEngine;
use tracing::Instrument;

use super::buffer::WriteBuffer;
use super::builder::MergeTreeWriterBuilder;
use super::flush::flush;
use super::pending::{PendingIncrement, Superseded};
use super::removals::Rows;
use super::{WriteSettings, WriteWatch, WriterState};
use crate::LsmError;
use crate::compact::{CompactStep, CompactTask, MergeTreeCompactManager, delete_quietly, discard};
use crate::levels::{Levels, LevelsView};
use crate::metrics::CompactionReporter;

/// Whether a commit waits for the running compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCompaction {
    /// Data and what its compaction makes come in one commit.
    Yes,
    /// Only compactions that have ended are in it; the running one comes with a later commit.
    No,
}

/// Writes records to one bucket and keeps its tree in shape. Owned by one task; its compactions run in the background.
///
/// Records go to a bounded buffer; a full buffer, or a commit, makes a level-0 file of it. What was flushed and compacted is
/// handed out by [`prepare_commit`](Self::prepare_commit); until then no reader sees it. A writer that ends without a commit is
/// [closed](Self::close), which deletes its files; one that is only dropped leaves them behind as orphans.
///
/// Source: `org.apache.paimon.mergetree.MergeTreeWriter`.
#[derive(Debug)]
pub struct MergeTreeWriter {
    pub(super) schema: KvSchemaRef,
    pub(super) files: Arc<dyn KvFiles>,
    pub(super) engine: Arc<dyn MergeEngine>,
    pub(super) env: Env,
    pub(super) settings: WriteSettings,
    pub(super) buffer: WriteBuffer,
    pub(super) next_sequence: i64,
    /// `None`: write-only.
    pub(super) compaction: Option<MergeTreeCompactManager>,
    pub(super) pending: PendingIncrement,
    /// A flush failed or was dropped half-way, or a batch was taken in part: records are lost, nothing may be committed any more.
    pub(super) broken: bool,
    pub(super) reporter: CompactionReporter,
    pub(super) watch: WriteWatch,
}

impl MergeTreeWriter {
    /// A writer for files of this schema.
    pub fn builder(schema: KvSchemaRef, files: Arc<dyn KvFiles>) -> MergeTreeWriterBuilder {
        MergeTreeWriterBuilder::new(schema, files)
    }

    /// Takes records: the schema's columns, and a kind a row. They are numbered in order of arrival.
    ///
    /// May flush, and then wait for the running compaction when the tree has too many runs: that is the back pressure. Where a delete removes
    /// what is older ([`deletes_need_older`](paimon_merge::engine::Promises::deletes_need_older)), it flushes before a row whose key has a -D in
    /// the buffer: no file can hold both. Rows of other keys in the batch are numbered before those that wait for such a flush.
    ///
    /// A call that is dropped while it flushes has broken the writer.
    ///
    /// Errors: `Invalid`, naming the column, when columns are not the schema's; nothing is taken then. Others are those of
    /// flushing: the writer is then broken, and every further call but [`close`](Self::close) fails.
    pub async fn write(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<(), LsmError> {
        self.check()?;
        if self.next_sequence.checked_add(row_count(values)).is_none() {
            return Err(LsmError::Invalid("the bucket's sequence numbers are used up".into()));
        }
        let has_room = match self.buffer.admit(values, kinds)? {
            None => self.push(values, kinds)?,
            Some((now, later)) => {
                self.broken = true;
                let has_room = self.push_apart(now, later).await?;
                self.broken = false;
                has_room
            }
        };
        self.show();
        if !has_room {
            self.flush_memory().await?;
        }
        Ok(())
    }

    /// Takes what may be taken now, flushes, and goes on with what had to wait for that. As [`push`](Self::push).
    async fn push_apart(&mut self, mut now: Rows, mut later: Rows) -> Result<bool, LsmError> {
        loop {
            self.push(&now.0, &now.1)?;
            self.flush_and_compact(false, false).await?;
            match self.buffer.admit(&later.0, &later.1)? {
                None => return self.push(&later.0, &later.1),
                Some(split) => (now, later) = split,
            }
        }
    }

    /// Numbers rows and puts them into the buffer. `false`: it is full.
    fn push(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<bool, LsmError> {
        let has_room = self.buffer.push(values, kinds, self.next_sequence)?;
        self.next_sequence = self.next_sequence.saturating_add(row_count(values));
        Ok(has_room)
    }

    /// Gives the buffer's memory back: its records go to local disk if they may, else to level 0. For whoever shares a memory
    /// budget among writers.
    ///
    /// Errors as [`write`](Self::write).
    pub async fn flush_memory(&mut self) -> Result<(), LsmError> {
        self.check()?;
        self.broken = true;
        let spilled = self.buffer.spill().await?;
        self.broken = false;
        self.show();
        if !spilled {
            self.flush_write_buffer(false, false).await?;
        }
        Ok(())
    }

    /// Bytes of memory that buffered records take.
    pub fn memory_bytes(&self) -> u64 {
        self.buffer.memory_bytes()
    }

    /// Flushes, waits for the running compaction, then starts a compaction: with `full` one of all files, else what the
    /// strategy picks. Its result comes with a later [`prepare_commit`](Self::prepare_commit).
    ///
    /// Errors: `Invalid` when `full` and the writer is write-only; else as [`write`](Self::write).
    pub async fn compact(&mut self, full: bool) -> Result<(), LsmError> {
        self.flush_write_buffer(true, full).await
    }

    /// Flushes and hands out all that has been done since the last call: [`flush`](Self::flush), [`settle`](Self::settle),
    /// [`drain_increment`](Self::drain_increment). Who owns many writers calls each of these for all of them, so that their compactions run
    /// side by side.
    ///
    /// Errors: theirs.
    pub async fn prepare_commit(&mut self, wait: WaitCompaction) -> Result<CommitIncrement, LsmError> {
        self.flush(wait).await?;
        self.settle(wait).await?;
        self.drain_increment()
    }

    /// Flushes, takes the result of the running compaction, waiting for it with [`WaitCompaction::Yes`], and starts the next one, which
    /// sees the new files. It also waits when the tree has too many runs.
    ///
    /// A call that is dropped while it waits for a compaction has lost nothing; one that is dropped while it flushes has broken the writer.
    ///
    /// Errors as [`write`](Self::write), and those of a compaction: it has changed nothing then, and the writer may go on.
    pub async fn flush(&mut self, wait: WaitCompaction) -> Result<(), LsmError> {
        self.flush_write_buffer(wait == WaitCompaction::Yes, false).await
    }

    /// Takes the result of the running compaction; waits for it with [`WaitCompaction::Yes`], with `commit.force-compact`, or when the tree has
    /// far too many runs. One round, not until nothing is left to compact. A dropped call has lost nothing.
    ///
    /// Errors: those of the compaction, which has changed nothing then, and of writing deletion vectors. The writer may go on.
    pub async fn settle(&mut self, wait: WaitCompaction) -> Result<(), LsmError> {
        let crowded = self
            .compaction
            .as_ref()
            .is_some_and(MergeTreeCompactManager::should_wait_for_preparing_checkpoint);
        let asked = wait == WaitCompaction::Yes || self.settings.force_compact;
        self.fetch_compaction(asked, crowded).await?;
        if let Some(compaction) = &mut self.compaction
            && let Some(written) = compaction.write_deletion_vectors().await?
        {
            for superseded in self.pending.set_deletion_vectors(written) {
                compaction.delete_index_file(&superseded).await;
            }
        }
        Ok(())
    }

    /// Hands out what flushes and compactions have made since the last call; buffered records, and compactions whose results have not been
    /// taken, are not in it.
    ///
    /// Errors: `Invalid` for a broken writer.
    pub fn drain_increment(&mut self) -> Result<CommitIncrement, LsmError> {
        self.check()?;
        let mut increment = self.pending.drain();
        if let Some(compaction) = &self.compaction
            && !increment.compact.is_empty()
        {
            increment.compact.upper_files = Some(compaction.levels().upper_files());
        }
        Ok(increment)
    }

    /// Takes files into the tree that another job has committed.
    ///
    /// Errors: `Corrupt` when they do not fit in; the tree is then unchanged.
    pub fn notify_new_files(&mut self, files: &[Arc<DataFileMeta>]) -> Result<(), LsmError> {
        match &mut self.compaction {
            Some(compaction) => files
                .iter()
                .try_for_each(|file| compaction.add_new_file(Arc::clone(file))),
            None => Ok(()),
        }
    }

    /// Waits for the running compaction and takes its result.
    ///
    /// Errors: those of the compaction.
    pub async fn sync(&mut self) -> Result<(), LsmError> {
        self.fetch_compaction(true, false).await
    }

    /// Whether compaction has work left: one runs, or its result has not been fetched, or there is something to pick, or, in a table that
    /// looks old rows up, files wait on level 0. Starts what it finds, so that it will end.
    ///
    /// Errors: `Internal` for a strategy that breaks its contract.
    pub fn compact_not_completed(&mut self) -> Result<bool, LsmError> {
        match &mut self.compaction {
            Some(compaction) => {
                compaction.trigger_compaction(false)?;
                Ok(compaction.compact_not_completed())
            }
            None => Ok(false),
        }
    }

    /// What a compaction would do now, for dry runs; buffered records are not in it, and nothing is started. `None`: nothing, or
    /// the writer is write-only.
    ///
    /// Errors as [`MergeTreeCompactManager::plan`] and [`steps`](MergeTreeCompactManager::steps).
    pub fn plan_compaction(&mut self, full: bool) -> Result<Option<(CompactTask, Vec<CompactStep>)>, LsmError> {
        let Some(compaction) = &mut self.compaction else {
            return Ok(None);
        };
        match compaction.plan(full)? {
            Some(task) => {
                let steps = compaction.steps(&task)?;
                Ok(Some((task, steps)))
            }
            None => Ok(None),
        }
    }

    /// The tree as the writer knows it, uncommitted files included; `None`: write-only.
    pub fn levels(&self) -> Option<LevelsView> {
        self.compaction.as_ref().map(|compaction| compaction.levels().view())
    }

    /// Shows to other tasks what this writer is doing, while it is doing it.
    pub fn watch(&self) -> WriteWatch {
        self.watch.clone()
    }

    /// The number that the next record gets.
    pub fn next_sequence(&self) -> i64 {
        self.next_sequence
    }

    /// What a new writer needs to go on here: a commit without waiting, and the files after it. A write-only writer knows no
    /// files. [`close`](Self::close) this one before the other begins.
    ///
    /// Errors as [`prepare_commit`](Self::prepare_commit).
    pub async fn checkpoint(&mut self) -> Result<WriterState, LsmError> {
        let increment = self.prepare_commit(WaitCompaction::No).await?;
        // After the commit: it may have taken a compaction's result.
        let files = self.compaction.as_ref().map(|compaction| compaction.levels());
        Ok(WriterState {
            files: files.map_or_else(Vec::new, Levels::all_files),
            next_sequence: self.next_sequence,
            increment,
        })
    }

    /// Ends the writer: cancels the running compaction and deletes every file that no commit has got. What
    /// [`prepare_commit`](Self::prepare_commit) handed out is not touched.
    pub async fn close(mut self) {
        if let Some(compaction) = &mut self.compaction {
            compaction.cancel_compaction();
        }
        if let Err(error) = self.fetch_compaction(true, false).await {
            tracing::warn!(%error, "the compaction of a writer that is being closed had failed");
        }
        let CommitIncrement { data, compact } = self.pending.drain();
        if let Some(compaction) = &mut self.compaction {
            for file in &compact.new_index_files {
                compaction.delete_index_file(file).await;
            }
        }
        discard(&*self.files, &compact.compact_before, &compact.compact_after).await;
        let files = data.new_files.iter().chain(&data.changelog_files);
        for file in files.chain(&compact.changelog_files) {
            delete_quietly(&*self.files, file).await;
        }
    }

    fn check(&self) -> Result<(), LsmError> {
        match self.broken {
            false => Ok(()),
            true => Err(LsmError::Invalid(
                "the writer lost records when a flush failed: close it, open a new one and write again from the last commit"
                    .into(),
            )),
        }
    }

    async fn flush_write_buffer(&mut self, wait: bool, full: bool) -> Result<(), LsmError> {
        self.check()?;
        if full && self.compaction.is_none() {
            return Err(LsmError::Invalid(
                "a write-only writer does not compact: set write-only to false".into(),
            ));
        }
        self.flush_and_compact(wait, full).await
    }

    async fn flush_and_compact(&mut self, wait: bool, full: bool) -> Result<(), LsmError> {
        let mut crowded = false;
        if !self.buffer.is_empty() {
            // Decided before the flush adds a run.
            crowded = self
                .compaction
                .as_ref()
                .is_some_and(MergeTreeCompactManager::should_wait_for_latest_compaction);
            let was_broken = std::mem::replace(&mut self.broken, true);
            self.flush_to_level0().await?;
            self.broken = was_broken;
        }
        self.fetch_compaction(wait, crowded).await?;
        match &mut self.compaction {
            Some(compaction) => compaction.trigger_compaction(full),
            None => Ok(()),
        }
    }

    async fn flush_to_level0(&mut self) -> Result<(), LsmError> {
        let bytes = self.memory_bytes();
        self.reporter.sort_buffer(bytes, self.settings.write_buffer_bytes);
        let span = tracing::debug_span!(
            "flush",
            table = self.reporter.table(),
            bucket = self.reporter.bucket(),
            bytes,
            files = tracing::field::Empty,
        );
        let runs = self.buffer.drain().await?;
        let producer = self.settings.compact.producer;
        let flushed = flush(&self.env, &*self.files, &self.schema, &*self.engine, producer, runs)
            .instrument(span.clone())
            .await?;
        let files: Vec<Arc<DataFileMeta>> = flushed.data.into_iter().map(Arc::new).collect();
        span.record("files", files.len());
        tracing::debug!(
            files = files.len(),
            changelog_files = flushed.changelog.len(),
            "write buffer flushed"
        );
        self.pending.add_flushed(&files, flushed.changelog);
        self.notify_new_files(&files)
    }

    /// Takes the result of the running compaction; waits for its end when that was asked for, or when the tree has too many runs.
    async fn fetch_compaction(&mut self, asked: bool, crowded: bool) -> Result<(), LsmError> {
        let mut superseded = Superseded::default();
        if let Some(compaction) = &mut self.compaction {
            let mut result = compaction.result(false).await?;
            if result.is_none() && compaction.is_busy() && (asked || crowded) {
                let _stall = (!asked).then(|| self.watch.stall(&self.env.clock));
                result = compaction.result(true).await?;
            }
            if let Some(result) = result {
                superseded = self.pending.add_compacted(result);
            }
        }
        self.show();
        for moved in superseded.sidecars {
            moved.delete_quietly(&*self.files).await;
        }
        for file in superseded.files {
            delete_quietly(&*self.files, &file).await;
        }
        Ok(())
    }

    /// Lets watchers know.
    pub(super) fn show(&self) {
        let runs = self.compaction.as_ref();
        let runs = runs.map_or(0, |compaction| compaction.levels().number_of_sorted_runs());
        self.watch.update(runs, self.buffer.memory_bytes());
    }
}

fn row_count(values: &RecordBatch) -> i64 {
    i64::try_from(values.num_rows()).unwrap_or(i64::MAX)
}
