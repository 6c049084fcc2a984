//! All sections of a job, one after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use paimon_format::dv::DeletionVector;
use paimon_format::kv::{KeyCodec, ReadSpec};
use paimon_format::meta::DataFileMeta;
use paimon_format::predicate::Predicate;
use paimon_merge::kernel::{AssembleOptions, Assembler};
use paimon_merge::plan::PlanOptions;

use super::block::{Lookups, OpenSection, on_cpu};
use super::reader::{RunReader, RunSource};
use super::shares::Shares;
use super::stage::{self, Passing};
use super::streams::spill_merged;
use super::work::{Merging, Output, Work};
use super::{MergeJob, MergePipeline, StageKind};
use crate::LsmError;
use crate::compact::KeyCut;
use crate::levels::Section;

/// A job in progress.
pub(super) struct MergeStream {
    pipeline: MergePipeline,
    job: MergeJob,
    /// Whether merged rows are wanted, and whether changes are.
    wanted: (bool, bool),
    sections: std::vec::IntoIter<Section>,
    /// `None`: all keys are wanted.
    cut: Option<Arc<KeyCut>>,
    /// Reserved with the first batch.
    shares: Option<Shares>,
    /// Levels whose rows cannot change alone.
    passing: Passing,
    whole_keys: bool,
    lookups: Option<Lookups>,
    /// Away while it is on the CPU pool; lost with an error.
    work: Option<Work>,
    section: Option<OpenSection>,
    done: bool,
}

impl MergeStream {
    pub(super) fn new(pipeline: MergePipeline, mut job: MergeJob, wanted: (bool, bool)) -> Self {
        Self {
            sections: std::mem::take(&mut job.sections).into_iter(),
            lookups: None,
            pipeline,
            job,
            wanted,
            cut: None,
            shares: None,
            passing: Passing::all(),
            whole_keys: false,
            work: None,
            section: None,
            done: false,
        }
    }

    /// Looked-up rows that merged ones replace, by file name.
    pub(super) fn into_deletions(self) -> BTreeMap<String, DeletionVector> {
        self.lookups.map(|lookups| lookups.deletions).unwrap_or_default()
    }

    /// The next batch; `None` at the end of the last section.
    pub(super) async fn next_output(&mut self) -> Result<Option<Output>, LsmError> {
        self.start().await?;
        loop {
            if let Some(output) = self.work.as_mut().and_then(Work::next_output) {
                return Ok(Some(output));
            }
            if self.done {
                return Ok(None);
            }
            match &mut self.section {
                Some(section) => {
                    let env = &self.pipeline.env;
                    if !section.advance(env, &mut self.work, self.lookups.as_mut()).await? {
                        self.section = None;
                    }
                }
                None => match self.sections.next() {
                    Some(section) => self.open(section).await?,
                    None => {
                        on_cpu(&self.pipeline.env, &mut self.work, Work::finish).await?;
                        self.done = true;
                    }
                },
            }
        }
    }

    async fn start(&mut self) -> Result<(), LsmError> {
        if self.shares.is_some() {
            return Ok(());
        }
        let MergePipeline {
            env,
            schema,
            engine,
            settings,
            ..
        } = &self.pipeline;
        let runs = self.sections.as_slice().iter().map(Vec::len).max().unwrap_or(0);
        let shares = Shares::reserve(&env.memory, runs, settings).await?;
        let (data, changelog) = self.wanted;
        let assembler = |drop_retracts| {
            let options = AssembleOptions {
                rows: settings.output_rows,
                bytes: shares.assemble_bytes / (1 + usize::from(data && changelog)),
                drop_retracts,
                ..AssembleOptions::default()
            };
            Assembler::new(Arc::clone(schema), options)
        };
        let data = data.then(|| assembler(self.job.drop_delete)).transpose()?;
        let changelog = changelog.then(|| assembler(false)).transpose()?;
        // Where every section is one run nothing is merged, and what merging needs need not have been read.
        let merging = if runs > 1 || self.job.stage != StageKind::Plain {
            let stage = stage::of_kind(&self.job.stage, engine, schema)?;
            self.passing = Passing::of(&*stage, self.sections.as_slice());
            self.whole_keys = stage.whole_keys();
            Merging::Stage(stage)
        } else {
            Merging::Nothing
        };
        self.work = Some(Work::new(schema, merging, data, changelog)?);
        if !self.job.bounds.is_all() {
            self.cut = Some(Arc::new(KeyCut::new(&self.job.bounds, schema)?));
            self.job.keys = self.job.bounds.range(schema)?;
        }
        let lookup = self.job.lookup.take();
        self.lookups = lookup.map(|job| Lookups::new(job, shares.found_bytes));
        self.shares = Some(shares);
        Ok(())
    }

    async fn open(&mut self, mut section: Section) -> Result<(), LsmError> {
        let passes = matches!(section.as_slice(), [run] if self.passing.run(run));
        section.sort_by(|a, b| a.age().cmp(&b.age()));
        let mut runs: Vec<RunSource> = section.into_iter().map(RunSource::Files).collect();
        let fan_in = self.shares()?.fan_in;
        while runs.len() > fan_in {
            runs = self.merge_smallest(runs, fan_in).await?;
        }
        let mut readers = self.readers(runs)?;
        let options = self.plan_options()?;
        let work = self.work.as_mut().ok_or_else(work_is_lost)?;
        self.section = match (passes, readers.pop()) {
            (true, Some(reader)) => Some(OpenSection::passing(reader)),
            (_, last) => {
                readers.extend(last);
                Some(OpenSection::merging(readers, &self.pipeline.schema, options, work)?)
            }
        };
        Ok(())
    }

    /// Merges the smallest runs into one local file, all versions kept with their levels, so that fewer remain.
    async fn merge_smallest(&mut self, mut runs: Vec<RunSource>, fan_in: usize) -> Result<Vec<RunSource>, LsmError> {
        let MergePipeline { env, schema, .. } = &self.pipeline;
        let shares = self.shares()?;
        let merged = fan_in.min(runs.len() - fan_in + 1);
        runs.sort_by_key(RunSource::size);
        let rest = runs.split_off(merged);
        let (limit, bytes) = (shares.batch, shares.assemble_bytes / 2);
        let spill = spill_merged(env, schema, self.readers(runs)?, self.plan_options()?, limit, bytes).await?;
        let mut all = vec![RunSource::Spilled(Arc::new(spill))];
        all.extend(rest);
        Ok(all)
    }

    fn readers(&self, runs: Vec<RunSource>) -> Result<Vec<RunReader>, LsmError> {
        let files = &self.pipeline.files;
        // Where versions meet, the newest must be there to hide the others.
        let filter = self.job.filter.as_ref().filter(|_| runs.len() == 1);
        runs.into_iter()
            .map(|run| match run {
                RunSource::Files(run) => {
                    let specs = run
                        .files()
                        .iter()
                        .map(|file| Ok((Arc::clone(file), self.read_spec(file, filter)?)))
                        .collect::<Result<_, LsmError>>()?;
                    Ok(RunReader::of_files(
                        Arc::clone(files),
                        specs,
                        self.cut.as_ref().map(Arc::clone),
                    ))
                }
                RunSource::Spilled(file) => {
                    let MergePipeline { env, schema, .. } = &self.pipeline;
                    Ok(RunReader::of_stream(
                        "a spilled run",
                        file.open(env, schema, &KeyCodec::new(schema)?),
                    ))
                }
            })
            .collect()
    }

    fn read_spec(&self, file: &DataFileMeta, filter: Option<&Arc<Predicate>>) -> Result<ReadSpec, LsmError> {
        let shares = self.shares()?;
        Ok(ReadSpec {
            schema: Arc::clone(&self.pipeline.schema),
            keys: self.job.keys.clone(),
            filter: filter.map(Arc::clone),
            deleted: self.job.deleted.get(&file.file_name).map(Arc::clone),
            expired_before: self.job.expired_before,
            positions: false,
            batch: shares.batch,
            window_bytes: shares.window_bytes,
            page_cache: None,
        })
    }

    fn plan_options(&self) -> Result<PlanOptions, LsmError> {
        Ok(PlanOptions {
            block_keys: self.pipeline.settings.block_keys.max(1),
            block_bytes: self.shares()?.block_bytes,
            cut_keys: !self.whole_keys,
            passes: self.passing.rule(),
        })
    }

    fn shares(&self) -> Result<&Shares, LsmError> {
        self.shares.as_ref().ok_or_else(work_is_lost)
    }
}

fn work_is_lost() -> LsmError {
    LsmError::Internal("a merge went on after an error".into())
}
