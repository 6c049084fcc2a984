//! Carrying a compaction out.

use std::collections::HashMap;
use std::sync::Arc;

use futures::channel::oneshot;
use paimon_format::dv::DeletionVector;
use paimon_format::env::Env;
use paimon_format::kv::{KvFiles, KvSchemaRef};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_merge::changelog::LookupNeed;
use paimon_merge::engine::MergeEngine;
use tracing::Instrument;

use super::changelog::ChangelogRules;
use super::pipeline::{JobLookup, MergeJob, MergePipeline, MergeSinks, Merged, PipelineSettings, StageKind};
use super::sidecars::{NewSidecars, delete_quietly, discard};
use super::split::split;
use super::upgrade::StepRules;
use super::{ChangelogProducer, CompactResult, CompactSettings, CompactStep, CompactTask, RecordLevelExpire};
use crate::LsmError;
use crate::levels::{KeyOrder, Section, SortedRun, total_bytes};
use crate::lookup::{LookupSource, LookupView};
use crate::metrics::CompactionReporter;

/// Runs the compactions of a bucket: merges sections, changes levels, writes changelogs, finds the rows that are replaced. Holds no
/// state between tasks.
///
/// Source: `org.apache.paimon.mergetree.compact.{MergeTreeCompactTask, MergeTreeCompactRewriter, ChangelogMergeTreeRewriter,
/// LookupMergeTreeCompactRewriter, FullChangelogMergeTreeCompactRewriter}`.
#[derive(Debug)]
pub struct MergeTreeCompactRewriter {
    env: Env,
    files: Arc<dyn KvFiles>,
    keys: KeyOrder,
    pipeline: MergePipeline,
    settings: CompactSettings,
    rules: ChangelogRules,
    expire: Option<RecordLevelExpire>,
    lookup: Option<Arc<dyn LookupSource>>,
    deletes_need_older: bool,
    reporter: CompactionReporter,
}

impl MergeTreeCompactRewriter {
    /// A rewriter for files of this schema. `lookup` must be given when the settings look old rows up.
    ///
    /// Errors: `Unsupported` for a key column without an order; `Invalid` when `lookup` is missing, or for settings that exclude
    /// each other.
    pub fn new(
        env: Env,
        files: Arc<dyn KvFiles>,
        schema: KvSchemaRef,
        engine: Arc<dyn MergeEngine>,
        settings: CompactSettings,
        expire: Option<RecordLevelExpire>,
        lookup: Option<Arc<dyn LookupSource>>,
    ) -> Result<Self, LsmError> {
        let needs_lookup = settings.lookup.need_lookup();
        if needs_lookup && lookup.is_none() {
            return Err(LsmError::Invalid(
                "compactions of this table look old rows up: they need a LookupSource".into(),
            ));
        }
        if needs_lookup && settings.producer == ChangelogProducer::FullCompaction {
            return Err(LsmError::Invalid(
                "option 'changelog-producer' = 'full-compaction': not in a table whose compactions look old rows up"
                    .into(),
            ));
        }
        let keys = KeyOrder::new(&schema)?;
        let rules = ChangelogRules {
            producer: settings.producer,
            lookup: settings.lookup,
            newest_alone: engine.promises().newest_wins && schema.sequence.is_none(),
            top_level: settings.num_levels.saturating_sub(1),
        };
        let deletes_need_older = engine.promises().deletes_need_older && !needs_lookup;
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
            settings,
            rules,
            expire,
            lookup: lookup.filter(|_| needs_lookup),
            deletes_need_older,
            reporter: CompactionReporter::default(),
        })
    }

    /// Tells what it does.
    #[must_use]
    pub fn with_reporter(self, reporter: CompactionReporter) -> Self {
        Self { reporter, ..self }
    }

    /// Where what it does is told.
    pub(crate) fn reporter(&self) -> &CompactionReporter {
        &self.reporter
    }

    /// Where old rows are looked up, if they are.
    pub fn lookup(&self) -> Option<&Arc<dyn LookupSource>> {
        self.lookup.as_ref()
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// Tells who looks old rows up which of the files that a compaction consumed are not in the tree any more.
    pub fn dropped(&self, result: &CompactResult, is_gone: impl Fn(&DataFileMeta) -> bool) {
        if let Some(lookup) = &self.lookup {
            let gone = result.before.iter().filter(|file| is_gone(file));
            lookup.dropped(&gone.map(Arc::clone).collect::<Vec<_>>());
        }
    }

    /// Deletes the files that a compaction wrote and that nobody will ever name, and the new sidecars of files that it only moved.
    pub async fn discard(&self, result: &CompactResult) {
        discard(&*self.files, &result.before, &result.after).await;
        for file in &result.changelog {
            delete_quietly(&*self.files, file).await;
        }
    }

    /// Whether a compaction that merges a delete with a later row of its key must take all older runs along.
    pub(crate) fn deletes_need_older(&self) -> bool {
        self.deletes_need_older
    }

    /// Whether a full compaction rewrites a file whatever its level: all are, or a row of it has expired at `now_ms`.
    pub fn must_rewrite(&self, file: &DataFileMeta, now_ms: i64) -> bool {
        let expired = || {
            let expire = self.expire.as_ref();
            expire.is_some_and(|expire| expire.is_expire_file(file, now_ms))
        };
        self.settings.force_rewrite_all_files || expired()
    }

    /// What a task will do.
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read.
    pub fn steps(&self, task: &CompactTask) -> Result<Vec<CompactStep>, LsmError> {
        let now_ms = self.env.clock.now_ms();
        let rules = StepRules {
            output_level: task.output_level,
            max_level: task.max_level,
            drop_delete: task.drop_delete,
            small_file_bytes: self.settings.small_file_bytes,
            must_rewrite: &|file| self.must_rewrite(file, now_ms),
            changelog: &self.rules,
            formats: &|level| self.files.format(level),
        };
        task.steps(&self.keys, &rules)
    }

    /// Cuts a task into parts of about so many bytes, so that several processes can share it: whole files where it can, ranges of keys where it
    /// must. [`CompactResult::join`] puts their results together, of which none may be left out.
    ///
    /// Errors: `Corrupt` when a file's key bounds cannot be read.
    pub fn split(&self, task: &CompactTask, part_bytes: u64) -> Result<Vec<CompactTask>, LsmError> {
        split(task, self.steps(task)?, &self.keys, part_bytes)
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
        let mut moved = Vec::new();
        let span = tracing::info_span!(
            "compact",
            table = self.reporter.table(),
            bucket = self.reporter.bucket(),
            files = task.files.len(),
            bytes = total_bytes(&task.files),
            output_level = task.output_level,
        );
        let outcome = self.run_steps(task, cancelled, &mut written, &mut moved);
        let outcome = outcome.instrument(span).await;
        match &outcome {
            Ok(Some(result)) => tracing::info!(
                reason = ?task.reason,
                output_level = task.output_level,
                files_in = result.before.len(),
                bytes_in = total_bytes(&result.before),
                files_out = result.after.len(),
                bytes_out = total_bytes(&result.after),
                files_written = written.len(),
                changelog_files = result.changelog.len(),
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
            for moved in moved {
                moved.delete_quietly(&*self.files).await;
            }
        }
        outcome
    }

    async fn run_steps(
        &self,
        task: &CompactTask,
        cancelled: &mut oneshot::Receiver<()>,
        written: &mut Vec<Arc<DataFileMeta>>,
        moved: &mut Vec<NewSidecars>,
    ) -> Result<Option<CompactResult>, LsmError> {
        let mut result = CompactResult::default();
        for step in self.steps(task)? {
            match step {
                CompactStep::Upgrade { file, changelog } => {
                    let mut upgraded = file.upgrade(task.output_level);
                    if changelog {
                        let section = vec![vec![SortedRun::from_single(Arc::clone(&file))]];
                        if self.tells() {
                            let job = self.job(task, section, true, false);
                            let sinks = self.sinks(task, false, true);
                            let Some(merged) = self.merge(job, sinks, cancelled).await? else {
                                return Ok(None);
                            };
                            add_told(&mut result, merged, written);
                        }
                        if let Some(lookup) = &self.lookup {
                            upgraded = only(lookup.written(vec![upgraded]).await?)?;
                            moved.extend(NewSidecars::of(&file, &upgraded));
                        }
                    }
                    result.before.push(file);
                    result.after.push(Arc::new(upgraded));
                }
                CompactStep::Rewrite {
                    sections,
                    drop_delete,
                    changelog,
                } => {
                    let consumed = files_of(&sections);
                    let job = self.job(task, sections, changelog, drop_delete);
                    let sinks = self.sinks(task, true, changelog);
                    let Some(mut merged) = self.merge(job, sinks, cancelled).await? else {
                        return Ok(None);
                    };
                    let mut files = std::mem::take(&mut merged.data);
                    add_told(&mut result, merged, written);
                    let first = written.len();
                    written.extend(files.iter().cloned().map(Arc::new));
                    if let Some(lookup) = &self.lookup {
                        files = lookup.written(files).await?;
                        written.truncate(first);
                        written.extend(files.iter().cloned().map(Arc::new));
                    }
                    let names = consumed.iter().map(|file| file.file_name.clone());
                    result.rewritten.extend(names);
                    result.before.extend(consumed);
                    result.after.extend(files.into_iter().map(Arc::new));
                }
            }
        }
        Ok(Some(result))
    }

    /// Whether looking at keys one by one comes to anything: changelog rows, or rows that are replaced.
    fn tells(&self) -> bool {
        self.settings.makes_changelog() || self.settings.lookup.deletion_vector
    }

    fn job(&self, task: &CompactTask, sections: Vec<Section>, changelog: bool, drop_delete: bool) -> MergeJob {
        let now_ms = self.env.clock.now_ms();
        let lookup = self.lookup.as_ref().filter(|_| changelog);
        let stage = self.stage(changelog);
        MergeJob {
            stage,
            lookup: lookup.map(|source| JobLookup {
                source: Arc::clone(source),
                view: LookupView {
                    levels: task.older.clone(),
                    deleted: Arc::clone(&task.deleted),
                },
                start_level: task.output_level.saturating_add(1),
                need: self.need(),
            }),
            drop_delete,
            expired_before: self.expire.as_ref().map(|expire| expire.expired_before(now_ms)),
            deleted: vectors_of(&sections, &task.deleted),
            sections,
            bounds: task.keys.clone(),
            ..MergeJob::default()
        }
    }

    fn need(&self) -> LookupNeed {
        self.settings.lookup.need(self.rules.newest_alone)
    }

    fn stage(&self, changelog: bool) -> StageKind {
        let CompactSettings {
            producer,
            lookup,
            changelog: settings,
            ..
        } = &self.settings;
        let told = self.settings.makes_changelog().then(|| settings.clone());
        match (changelog, producer) {
            (true, ChangelogProducer::FullCompaction) => StageKind::FullChangelog {
                top_level: self.rules.top_level,
                settings: settings.clone(),
            },
            (true, _) if lookup.is_first_row => StageKind::FirstRow(told),
            (true, _) => StageKind::LookupChangelog(told),
            (false, _) if lookup.need_lookup() => StageKind::Lookup,
            (false, _) => StageKind::Plain,
        }
    }

    fn sinks(&self, task: &CompactTask, data: bool, changelog: bool) -> MergeSinks {
        let level = task.output_level;
        let changelog = changelog && self.settings.makes_changelog();
        MergeSinks {
            data: data.then(|| self.files.data_sink(level, FileSource::Compact)),
            changelog: changelog.then(|| self.files.changelog_sink(level)),
        }
    }

    async fn merge(
        &self,
        job: MergeJob,
        sinks: MergeSinks,
        cancelled: &mut oneshot::Receiver<()>,
    ) -> Result<Option<Merged>, LsmError> {
        let mut keep_on = || matches!(cancelled.try_recv(), Ok(None));
        self.pipeline.rewrite_while(job, sinks, &mut keep_on).await
    }
}

/// Takes over what a merge told besides its rows.
fn add_told(result: &mut CompactResult, merged: Merged, written: &mut Vec<Arc<DataFileMeta>>) {
    let changelog = merged.changelog.into_iter().map(Arc::new);
    let first = result.changelog.len();
    result.changelog.extend(changelog);
    written.extend(result.changelog.iter().skip(first).map(Arc::clone));
    // Steps have no key in common, so that no row is found twice.
    for (file, rows) in merged.deletions {
        result.deletions.entry(file).or_default().merge(&rows);
    }
}

fn only(mut files: Vec<DataFileMeta>) -> Result<DataFileMeta, LsmError> {
    match (files.pop(), files.is_empty()) {
        (Some(file), true) => Ok(file),
        _ => Err(LsmError::Internal(
            "a LookupSource gave other files back than were written".into(),
        )),
    }
}

/// The deletion vectors of the files to be read.
fn vectors_of(
    sections: &[Section],
    all: &HashMap<String, Arc<DeletionVector>>,
) -> HashMap<String, Arc<DeletionVector>> {
    let files = sections.iter().flatten().flat_map(SortedRun::files);
    files
        .filter_map(|file| Some((file.file_name.clone(), Arc::clone(all.get(&file.file_name)?))))
        .collect()
}

fn files_of(sections: &[Section]) -> Vec<Arc<DataFileMeta>> {
    let runs = sections.iter().flatten();
    runs.flat_map(|run| run.files()).map(Arc::clone).collect()
}
