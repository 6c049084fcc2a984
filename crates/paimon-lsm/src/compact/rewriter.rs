//! Carrying a compaction out.

use std::sync::Arc;

use futures::channel::oneshot;
use paimon_format::env::Env;
use paimon_format::kv::{KvFiles, KvSchemaRef};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_merge::engine::MergeEngine;

use super::pipeline::{MergeJob, MergePipeline, PipelineSettings};
use super::{CompactResult, CompactSettings, CompactStep, CompactTask, RecordLevelExpire};
use crate::LsmError;
use crate::levels::{KeyOrder, Section, file_bytes};

/// Runs the compactions of a bucket without changelog: merges sections, changes levels. Holds no state between tasks.
///
/// Source: `org.apache.paimon.mergetree.compact.{MergeTreeCompactRewriter, MergeTreeCompactTask}`.
#[derive(Debug)]
pub struct MergeTreeCompactRewriter {
    env: Env,
    files: Arc<dyn KvFiles>,
    keys: KeyOrder,
    pipeline: MergePipeline,
    small_file_bytes: u64,
    force_rewrite_all_files: bool,
    expire: Option<RecordLevelExpire>,
}

impl MergeTreeCompactRewriter {
    /// A rewriter for files of this schema.
    ///
    /// Errors: `Unsupported` for a key column without an order.
    pub fn new(
        env: Env,
        files: Arc<dyn KvFiles>,
        schema: KvSchemaRef,
        engine: Arc<dyn MergeEngine>,
        settings: &CompactSettings,
        expire: Option<RecordLevelExpire>,
    ) -> Result<Self, LsmError> {
        let keys = KeyOrder::new(&schema)?;
        let pipeline =
            MergePipeline::new(env.clone(), Arc::clone(&files), schema, engine).with_settings(PipelineSettings {
                sort_spill_threshold: settings.sort_spill_threshold,
                ..PipelineSettings::default()
            });
        Ok(Self {
            env,
            files,
            keys,
            pipeline,
            small_file_bytes: settings.small_file_bytes,
            force_rewrite_all_files: settings.force_rewrite_all_files,
            expire,
        })
    }

    /// Whether a full compaction rewrites a file whatever its level: all are, or a row of it has expired at `now_ms`.
    pub fn must_rewrite(&self, file: &DataFileMeta, now_ms: i64) -> bool {
        let expired = || {
            let expire = self.expire.as_ref();
            expire.is_some_and(|expire| expire.is_expire_file(file, now_ms))
        };
        self.force_rewrite_all_files || expired()
    }

    /// What a task will do.
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read.
    pub fn steps(&self, task: &CompactTask) -> Result<Vec<CompactStep>, LsmError> {
        let now_ms = self.env.clock.now_ms();
        task.steps(&self.keys, self.small_file_bytes, &|file| {
            self.must_rewrite(file, now_ms)
        })
    }

    /// Runs a task to its end. `None`: `cancelled` was sent to or dropped before that. Then, and after an error, none of the task's
    /// files is left.
    ///
    /// Errors: those of merging and of the files.
    pub async fn run(
        &self,
        task: &CompactTask,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Result<Option<CompactResult>, LsmError> {
        let begin_ms = self.env.clock.now_ms();
        let mut written = Vec::new();
        let outcome = self.run_steps(task, cancelled, &mut written).await;
        match &outcome {
            Ok(Some(result)) => tracing::info!(
                reason = ?task.reason,
                output_level = task.output_level,
                files_in = result.before.len(),
                bytes_in = total_bytes(&result.before),
                files_out = result.after.len(),
                bytes_out = total_bytes(&result.after),
                rewritten = written.len(),
                milliseconds = self.env.clock.now_ms() - begin_ms,
                "compaction done"
            ),
            Ok(None) => tracing::info!("compaction cancelled"),
            Err(error) => tracing::error!(%error, "compaction failed"),
        }
        if !matches!(outcome, Ok(Some(_))) {
            for file in written {
                delete_quietly(&*self.files, &file).await;
            }
        }
        outcome
    }

    async fn run_steps(
        &self,
        task: &CompactTask,
        cancelled: &mut oneshot::Receiver<()>,
        written: &mut Vec<Arc<DataFileMeta>>,
    ) -> Result<Option<CompactResult>, LsmError> {
        let mut result = CompactResult::default();
        for step in self.steps(task)? {
            match step {
                CompactStep::Upgrade(file) => {
                    result.after.push(Arc::new(file.upgrade(task.output_level)));
                    result.before.push(file);
                }
                CompactStep::Rewrite(sections) => {
                    let consumed = files_of(&sections);
                    let Some(files) = self.rewrite(task, sections, cancelled).await? else {
                        return Ok(None);
                    };
                    written.extend(files.iter().map(Arc::clone));
                    result.before.extend(consumed);
                    result.after.extend(files);
                }
            }
        }
        Ok(Some(result))
    }

    /// Merges sections into one row of files.
    async fn rewrite(
        &self,
        task: &CompactTask,
        sections: Vec<Section>,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Result<Option<Vec<Arc<DataFileMeta>>>, LsmError> {
        let now_ms = self.env.clock.now_ms();
        let job = MergeJob {
            sections,
            drop_delete: task.drop_delete,
            expired_before: self.expire.as_ref().map(|expire| expire.expired_before(now_ms)),
            ..MergeJob::default()
        };
        let sink = self.files.data_sink(task.output_level, FileSource::Compact);
        let mut keep_on = || matches!(cancelled.try_recv(), Ok(None));
        let files = self.pipeline.rewrite_while(job, sink, &mut keep_on).await?;
        Ok(files.map(|files| files.into_iter().map(Arc::new).collect()))
    }
}

/// Deletes a file that nobody will ever name. One that stays is an orphan, which is no reason to fail.
pub(crate) async fn delete_quietly(files: &dyn KvFiles, file: &DataFileMeta) {
    if let Err(error) = files.delete(file).await {
        tracing::warn!(file = file.file_name, %error, "an unused file could not be deleted");
    }
}

fn files_of(sections: &[Section]) -> Vec<Arc<DataFileMeta>> {
    let runs = sections.iter().flatten();
    runs.flat_map(|run| run.files()).map(Arc::clone).collect()
}

fn total_bytes(files: &[Arc<DataFileMeta>]) -> u64 {
    files.iter().map(|file| file_bytes(file)).fold(0, u64::saturating_add)
}
