//! Making a writer.

use std::sync::Arc;

use paimon_format::dv::BucketDvMaintainer;
use paimon_format::env::{Budget, Env, StopSignal};
use paimon_format::kv::{KvFiles, KvSchemaRef};
use paimon_format::meta::DataFileMeta;
use paimon_merge::engine::MergeEngine;

use super::buffer::WriteBuffer;
use super::pending::PendingIncrement;
use super::{MergeTreeWriter, WriteSettings, WriteWatch, WriterState};
use crate::LsmError;
use crate::compact::{MergeTreeCompactManager, MergeTreeCompactRewriter, RecordLevelExpire};
use crate::levels::{KeyOrder, Levels};
use crate::lookup::LookupSource;
use crate::metrics::CompactionReporter;
use crate::pick::CompactStrategy;

/// Collects what a [`MergeTreeWriter`] needs. Engine and environment must be given.
#[derive(Debug)]
pub struct MergeTreeWriterBuilder {
    schema: KvSchemaRef,
    files: Arc<dyn KvFiles>,
    engine: Option<Arc<dyn MergeEngine>>,
    env: Option<Env>,
    strategy: Option<Box<dyn CompactStrategy>>,
    settings: WriteSettings,
    buffer_budget: Option<Budget>,
    expire: Option<RecordLevelExpire>,
    lookup: Option<Arc<dyn LookupSource>>,
    vectors: Option<BucketDvMaintainer>,
    reporter: CompactionReporter,
    stop: StopSignal,
    state: WriterState,
}

impl MergeTreeWriterBuilder {
    pub(super) fn new(schema: KvSchemaRef, files: Arc<dyn KvFiles>) -> Self {
        Self {
            schema,
            files,
            engine: None,
            env: None,
            strategy: None,
            settings: WriteSettings::default(),
            buffer_budget: None,
            expire: None,
            lookup: None,
            vectors: None,
            reporter: CompactionReporter::default(),
            stop: StopSignal::never(),
            state: WriterState::default(),
        }
    }

    /// What many versions of a key become.
    pub fn engine(mut self, engine: Arc<dyn MergeEngine>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// Time, threads, memory, disk.
    pub fn env(mut self, env: Env) -> Self {
        self.env = Some(env);
        self
    }

    /// All settings.
    pub fn settings(mut self, settings: WriteSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Another strategy than the settings name.
    pub fn strategy(mut self, strategy: impl CompactStrategy + 'static) -> Self {
        self.strategy = Some(Box::new(strategy));
        self
    }

    /// The memory for buffered records, shared with other writers; default: one of `write-buffer-size` bytes for this writer alone.
    pub fn buffer_budget(mut self, budget: Budget) -> Self {
        self.buffer_budget = Some(budget);
        self
    }

    /// Compactions drop expired rows.
    pub fn expire(mut self, expire: Option<RecordLevelExpire>) -> Self {
        self.expire = expire;
        self
    }

    /// Where compactions look old rows up; must be given when the settings say that they do.
    pub fn lookup(mut self, lookup: Option<Arc<dyn LookupSource>>) -> Self {
        self.lookup = lookup;
        self
    }

    /// The bucket's deletion vectors, as the last snapshot shows them; must be given when the settings say that the table has them.
    pub fn deletion_vectors(mut self, vectors: Option<BucketDvMaintainer>) -> Self {
        self.vectors = vectors;
        self
    }

    /// Tells what the writer and its compactions do.
    pub fn reporter(mut self, reporter: CompactionReporter) -> Self {
        self.reporter = reporter;
        self
    }

    /// No call waits long for a compaction once it is time to stop: it is cancelled, and what comes of the call is without it.
    pub fn stop_on(mut self, stop: StopSignal) -> Self {
        self.stop = stop;
        self
    }

    /// The writer overwrites what was there: what its compactions find is not told in a changelog.
    pub fn ignore_previous_files(mut self) -> Self {
        self.settings.compact.ignore_previous_files = true;
        self
    }

    /// The bucket's files, all levels, as the last snapshot shows them. Records are numbered from above their largest number.
    pub fn restore(self, files: Vec<Arc<DataFileMeta>>) -> Self {
        self.state(WriterState::restored(files))
    }

    /// Goes on where another writer stopped.
    pub fn state(mut self, state: WriterState) -> Self {
        self.state = state;
        self
    }

    /// Makes the writer. Nothing is read or written.
    ///
    /// Errors: `Invalid` when engine, environment or a look-up that is needed are missing or there are fewer than 2 levels; `Unsupported` for a key or
    /// sequence column without an order; `Corrupt`, naming files, when the restored files are no tree.
    pub fn build(self) -> Result<MergeTreeWriter, LsmError> {
        let missing = |what: &str| LsmError::Invalid(format!("a writer needs {what}"));
        let engine = self.engine.ok_or_else(|| missing("a merge engine"))?;
        let env = self.env.ok_or_else(|| missing("an environment"))?;
        let budget = self
            .buffer_budget
            .unwrap_or_else(|| Budget::new(self.settings.write_buffer_bytes));
        let max_spill_bytes = self.settings.max_spill_bytes;
        let buffer = WriteBuffer::new(Arc::clone(&self.schema), env.clone(), budget, max_spill_bytes)?;
        let buffer = match engine.promises().deletes_need_older {
            true => buffer.with_removals(),
            false => buffer,
        };
        let compaction = if self.settings.write_only {
            None
        } else {
            let settings = self.settings.compact.clone();
            let strategy = self.strategy.unwrap_or_else(|| {
                let last_full_ms = last_full_ms(&self.state.files, settings.num_levels - 1, &env);
                settings.strategy.strategy(last_full_ms)
            });
            let rewriter = MergeTreeCompactRewriter::new(
                env.clone(),
                Arc::clone(&self.files),
                Arc::clone(&self.schema),
                Arc::clone(&engine),
                settings.clone(),
                self.expire,
                self.lookup,
            )?
            .with_reporter(self.reporter.clone());
            let levels = Levels::restore(KeyOrder::new(&self.schema)?, self.state.files, settings.num_levels)?;
            let manager = MergeTreeCompactManager::new(levels, strategy, settings, Arc::new(rewriter), env.clone())
                .stop_on(self.stop);
            Some(match self.vectors {
                Some(vectors) => manager.with_deletion_vectors(vectors),
                None => manager,
            })
        };
        let writer = MergeTreeWriter {
            schema: self.schema,
            files: self.files,
            engine,
            env,
            settings: self.settings,
            buffer,
            next_sequence: self.state.next_sequence,
            compaction,
            pending: PendingIncrement::new(self.state.increment),
            reporter: self.reporter,
            broken: false,
            watch: WriteWatch::default(),
        };
        writer.show();
        Ok(writer)
    }
}

/// When the newest file of the configured highest level was made, milliseconds since the epoch. Files bear local time.
pub fn last_full_ms(files: &[Arc<DataFileMeta>], max_level: i32, env: &Env) -> Option<i64> {
    let highest = files.iter().filter(|file| file.level == max_level);
    let local_ms = highest.filter_map(|file| file.creation_time_ms).max()?;
    Some(local_ms.saturating_sub(env.clock.local_offset_ms(local_ms)))
}
