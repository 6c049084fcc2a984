//! One bucket's compactions.

use std::collections::BTreeSet;
use std::sync::Arc;

use paimon_format::dv::{BucketDvMaintainer, WrittenDeletionVectors};
use paimon_format::env::{Env, StopSignal};
use paimon_format::meta::{DataFileMeta, IndexFileMeta};

use super::{
    CompactResult, CompactSettings, CompactStep, CompactTask, MergeTreeCompactRewriter, RunningCompaction, drop_delete,
};
use crate::LsmError;
use crate::levels::{Levels, LevelsView, SortedRun};
use crate::pick::{CompactStrategy, CompactUnit, PickContext, pick_full_compaction};

/// Picks, runs and applies the compactions of one bucket, one at a time.
///
/// A task runs in the background on a copy of its file list. Its result changes the levels when the owner fetches it with
/// [`result`](Self::result), never by itself: all changes of the tree happen in the owner's calls.
///
/// Source: `org.apache.paimon.mergetree.compact.MergeTreeCompactManager`.
#[derive(Debug)]
pub struct MergeTreeCompactManager {
    levels: Levels,
    strategy: Box<dyn CompactStrategy>,
    settings: CompactSettings,
    rewriter: Arc<MergeTreeCompactRewriter>,
    /// `None`: a table without deletion vectors.
    vectors: Option<BucketDvMaintainer>,
    env: Env,
    stop: StopSignal,
    /// A task whose result has not been fetched.
    running: Option<RunningCompaction>,
}

impl MergeTreeCompactManager {
    /// A manager of this tree.
    pub fn new(
        levels: Levels,
        strategy: Box<dyn CompactStrategy>,
        settings: CompactSettings,
        rewriter: Arc<MergeTreeCompactRewriter>,
        env: Env,
    ) -> Self {
        rewriter.reporter().levels(&levels);
        Self {
            levels,
            strategy,
            settings,
            rewriter,
            vectors: None,
            env,
            stop: StopSignal::never(),
            running: None,
        }
    }

    /// With the bucket's deletion vectors: compactions add to them, and [`write_deletion_vectors`](Self::write_deletion_vectors) writes
    /// them down. Needed when the settings say that the table has them.
    pub fn with_deletion_vectors(mut self, vectors: BucketDvMaintainer) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// Nobody waits long for a task once it is time to stop: it is cancelled then.
    pub fn stop_on(mut self, stop: StopSignal) -> Self {
        self.stop = stop;
        self
    }

    /// The tree, without what a running task will change.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// Takes a file into the tree: a flushed one, or one that another job committed (which may lie on any level).
    ///
    /// Errors as [`Levels::update`].
    pub fn add_new_file(&mut self, file: Arc<DataFileMeta>) -> Result<(), LsmError> {
        self.levels.update(&[], &[file])?;
        self.rewriter.reporter().levels(&self.levels);
        Ok(())
    }

    /// More runs than `num-sorted-run.stop-trigger`: a flush should wait for the running compaction.
    pub fn should_wait_for_latest_compaction(&self) -> bool {
        self.levels.number_of_sorted_runs() > self.settings.stop_trigger
    }

    /// So many runs that a commit should wait for the running compaction.
    pub fn should_wait_for_preparing_checkpoint(&self) -> bool {
        self.levels.number_of_sorted_runs() > self.settings.stop_trigger.saturating_add(1)
    }

    /// Whether a task runs, or its result has not been fetched.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// Whether there is work left: a task runs, its result has not been fetched, or files on level 0 wait for what is looked up.
    pub fn compact_not_completed(&self) -> bool {
        let waits = self.settings.lookup.need_lookup() && !self.levels.level0().is_empty();
        self.is_busy() || waits
    }

    /// What the strategy picks now, or a full compaction; `None`: nothing that changes anything. Nothing is started, but a strategy
    /// that counts its picks has counted this one.
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read; `Internal` when the strategy breaks its contract.
    pub fn pick(&mut self, full: bool) -> Result<Option<CompactUnit>, LsmError> {
        let runs = self.levels.level_sorted_runs();
        let reporter = self.rewriter.reporter();
        let span = tracing::debug_span!(
            "pick",
            table = reporter.table(),
            bucket = reporter.bucket(),
            files = runs.iter().map(|run| run.run.files().len()).sum::<usize>(),
            bytes = self.levels.total_file_size(),
            runs = runs.len(),
            full,
        );
        let _picking = span.entered();
        let context = PickContext::now(&*self.env.clock, self.levels.number_of_levels());
        let unit = if full {
            let vectors = self.vectors.as_ref();
            pick_full_compaction(context.num_levels, &runs, |file| {
                let vector = vectors.and_then(|vectors| vectors.deletion_vector_of(&file.file_name));
                vector.is_some() || self.rewriter.must_rewrite(file, context.now_ms)
            })
        } else {
            self.strategy.pick(&runs, &context).filter(|unit| !unit.is_no_op())
        };
        let Some(unit) = unit else {
            return Ok(None);
        };
        let max_level = self.levels.max_level();
        if !(1..=max_level).contains(&unit.output_level) {
            return Err(LsmError::Internal(format!(
                "the compaction strategy picked output level {}, which is not among 1 to {max_level}",
                unit.output_level
            )));
        }
        self.with_older_runs(unit).map(Some)
    }

    /// The next compaction with all that is decided before it starts. As [`pick`](Self::pick).
    ///
    /// Errors: also those of [`task`](Self::task).
    pub fn plan(&mut self, full: bool) -> Result<Option<CompactTask>, LsmError> {
        match self.pick(full)? {
            Some(unit) => self.task(unit).map(Some),
            None => Ok(None),
        }
    }

    /// What was picked, with all that is decided before it starts.
    ///
    /// Errors: `Invalid` when deletion vectors are missing.
    pub fn task(&self, unit: CompactUnit) -> Result<CompactTask, LsmError> {
        if self.settings.lookup.deletion_vector && self.vectors.is_none() {
            return Err(LsmError::Invalid(
                "compactions of a table with deletion vectors need those of the bucket".into(),
            ));
        }
        let drops = drop_delete(
            unit.output_level,
            self.levels.non_empty_highest_level(),
            self.vectors.is_some(),
            self.settings.force_keep_delete,
        );
        let runs = unit.runs;
        let num_levels = self.levels.number_of_levels();
        let mut task = CompactTask::new(unit, num_levels, drops);
        if let Some(vectors) = &self.vectors {
            task.deleted = vectors.snapshot();
        }
        if self.settings.lookup.need_lookup() {
            let older = self.levels.level_sorted_runs().into_iter().skip(runs);
            task.older = LevelsView::new(num_levels, older.collect());
        }
        Ok(task)
    }

    /// The unit, or all runs in its place: where a delete removes the row that older runs hold, and a later row of its key would begin
    /// anew, no output can say both. (Where old rows are looked up, it can.)
    fn with_older_runs(&self, unit: CompactUnit) -> Result<CompactUnit, LsmError> {
        let runs = self.levels.level_sorted_runs();
        if !self.rewriter.deletes_need_older() || unit.runs >= runs.len() {
            return Ok(unit);
        }
        let sections = self.levels.keys().sections(&unit.files)?;
        let meets_delete = sections.iter().filter(|section| section.len() > 1).any(|section| {
            section
                .iter()
                .flat_map(SortedRun::files)
                .any(|file| file.may_have_deletes())
        });
        Ok(match meets_delete {
            true => CompactUnit::of_runs(self.levels.max_level(), &runs, unit.reason),
            false => unit,
        })
    }

    /// What a task will do, step by step.
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read.
    pub fn steps(&self, task: &CompactTask) -> Result<Vec<CompactStep>, LsmError> {
        self.rewriter.steps(task)
    }

    /// Starts a compaction if there is something to do. Without `full` it does nothing while a result is outstanding, even one
    /// that is ready. Must be called where [`Runtime::spawn`](paimon_format::env::Runtime::spawn) works.
    ///
    /// Errors: `Invalid` when `full` and a task is outstanding; those of [`plan`](Self::plan).
    pub fn trigger_compaction(&mut self, full: bool) -> Result<(), LsmError> {
        if self.running.is_some() {
            return match full {
                false => Ok(()),
                true => Err(LsmError::Invalid(
                    "a compaction is still running while a full one is asked for: wait for its result first".into(),
                )),
            };
        }
        if let Some(task) = self.plan(full)? {
            tracing::debug!(
                reason = ?task.reason,
                files = task.files.len(),
                output_level = task.output_level,
                drop_delete = task.drop_delete,
                "compaction picked"
            );
            self.running = Some(RunningCompaction::start(&self.rewriter, task));
        }
        Ok(())
    }

    /// Fetches the result of the task and applies it to the levels; with `wait`, once it has ended. `None`: no task, a task that still
    /// runs, or a cancelled one. After an error the task and its files are gone, and the tree is as it was.
    ///
    /// Errors: those of the task; `Corrupt` when what it made does not fit in with files that came meanwhile; `Invalid` for a row that no
    /// deletion vector can hold.
    pub async fn result(&mut self, wait: bool) -> Result<Option<CompactResult>, LsmError> {
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        let outcome = if wait {
            running.finished_or_stopped(&self.stop).await
        } else {
            match running.try_finished() {
                None => return Ok(None),
                Some(outcome) => outcome,
            }
        };
        self.running = None;
        let Some(result) = outcome? else {
            return Ok(None);
        };
        let gone = match self.apply(&result) {
            Ok(gone) => gone,
            Err(error) => {
                self.rewriter.discard(&result).await;
                return Err(error);
            }
        };
        self.rewriter.dropped(&result, |file| gone.contains(&file.file_name));
        self.rewriter.reporter().levels(&self.levels);
        Ok(Some(result))
    }

    /// Changes levels and deletion vectors, or neither. Gives the names that have left the tree.
    fn apply(&mut self, result: &CompactResult) -> Result<BTreeSet<String>, LsmError> {
        // They count once the levels have changed too.
        let mut vectors = self.vectors.clone();
        if let Some(vectors) = &mut vectors {
            result.apply_deletions(vectors)?;
        }
        let gone = self.levels.update(&result.before, &result.after)?;
        self.vectors = vectors;
        Ok(gone)
    }

    /// Writes the bucket's deletion vectors to a new index file, if compactions have changed them since the last one.
    ///
    /// Errors: `Unavailable`; it can be tried again.
    pub async fn write_deletion_vectors(&mut self) -> Result<Option<WrittenDeletionVectors>, LsmError> {
        match &mut self.vectors {
            Some(vectors) => Ok(vectors.write_deletion_vectors_index().await?),
            None => Ok(None),
        }
    }

    /// Deletes an index file that no commit will ever name.
    pub(crate) async fn delete_index_file(&mut self, file: &IndexFileMeta) {
        if let Some(vectors) = &self.vectors
            && let Err(error) = vectors.index().delete(file).await
        {
            tracing::warn!(file = file.file_name, %error, "an unused index file could not be deleted");
        }
    }

    /// Asks the running task to stop. It deletes what it wrote; [`result`](Self::result) with `wait` returns when it has ended.
    pub fn cancel_compaction(&mut self) {
        if let Some(running) = &mut self.running {
            running.cancel();
        }
    }
}
