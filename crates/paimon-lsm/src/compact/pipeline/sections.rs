//! All sections of a job, one after another.

use std::sync::Arc;

use paimon_format::kv::{KeyCodec, KvBatch, ReadSpec};
use paimon_format::meta::DataFileMeta;
use paimon_format::predicate::Predicate;
use paimon_merge::kernel::{AssembleOptions, Assembler};
use paimon_merge::plan::PlanOptions;

use super::block::{MergedRuns, OpenSection, Work, on_cpu};
use super::reader::{RunReader, RunSource};
use super::shares::Shares;
use super::{MergeJob, MergePipeline};
use crate::LsmError;
use crate::levels::Section;
use crate::spill::SpillWriter;

/// A job in progress.
pub(super) struct MergeStream {
    pipeline: MergePipeline,
    job: MergeJob,
    sections: std::vec::IntoIter<Section>,
    /// Reserved with the first batch.
    shares: Option<Shares>,
    /// Away while it is on the CPU pool; lost with an error.
    work: Option<Work>,
    section: Option<OpenSection>,
    done: bool,
}

impl MergeStream {
    pub(super) fn new(pipeline: MergePipeline, mut job: MergeJob) -> Self {
        Self {
            sections: std::mem::take(&mut job.sections).into_iter(),
            pipeline,
            job,
            shares: None,
            work: None,
            section: None,
            done: false,
        }
    }

    /// The next merged batch; `None` at the end of the last section.
    pub(super) async fn next_batch(&mut self) -> Result<Option<KvBatch>, LsmError> {
        self.start().await?;
        loop {
            if let Some(batch) = self.work.as_mut().and_then(|work| work.assembler.next_batch()) {
                return Ok(Some(batch));
            }
            if self.done {
                return Ok(None);
            }
            match &mut self.section {
                Some(section) => {
                    if !section.advance(&self.pipeline.env, &mut self.work).await? {
                        self.section = None;
                    }
                }
                None => match self.sections.next() {
                    Some(section) => self.open(section).await?,
                    None => {
                        on_cpu(&self.pipeline.env, &mut self.work, |work| work.assembler.finish()).await?;
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
        let assembler = Assembler::new(
            Arc::clone(schema),
            AssembleOptions {
                rows: settings.output_rows,
                bytes: shares.assemble_bytes,
                drop_retracts: self.job.drop_delete,
                ..AssembleOptions::default()
            },
        )?;
        // Where every section is one run nothing is merged, and what merging needs need not have been read.
        let kernel = (runs > 1).then(|| engine.kernel(schema)).transpose()?;
        self.work = Some(Work::new(kernel, assembler));
        self.shares = Some(shares);
        Ok(())
    }

    async fn open(&mut self, mut section: Section) -> Result<(), LsmError> {
        section.sort_by(|a, b| a.age().cmp(&b.age()));
        let mut runs: Vec<RunSource> = section.into_iter().map(RunSource::Files).collect();
        let fan_in = self.shares()?.fan_in;
        while runs.len() > fan_in {
            runs = self.merge_smallest(runs, fan_in).await?;
        }
        let mut readers = self.readers(runs)?;
        let options = self.plan_options()?;
        let work = self.work.as_mut().ok_or_else(work_is_lost)?;
        self.section = match (readers.len(), readers.pop()) {
            (1, Some(reader)) => Some(OpenSection::of_one(reader)),
            (_, last) => {
                readers.extend(last);
                Some(OpenSection::of_many(readers, &self.pipeline.schema, options, work)?)
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
        let options = AssembleOptions {
            rows: self.pipeline.settings.read_rows,
            bytes: shares.assemble_bytes / 2,
            drop_retracts: false,
            level: None,
        };
        let work = Work::new(None, Assembler::new(Arc::clone(schema), options)?);
        let mut merged = MergedRuns::new(env, self.readers(runs)?, schema, self.plan_options()?, work)?;
        let mut spill = SpillWriter::create(env, schema).await?;
        while let Some(batch) = merged.next_batch().await? {
            spill.write(&batch).await?;
        }
        let mut all = vec![RunSource::Spilled(Arc::new(spill.finish().await?))];
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
                    Ok(RunReader::of_files(Arc::clone(files), specs))
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
        })
    }

    fn plan_options(&self) -> Result<PlanOptions, LsmError> {
        Ok(PlanOptions {
            block_keys: self.pipeline.settings.block_keys.max(1),
            block_bytes: self.shares()?.block_bytes,
            ..PlanOptions::default()
        })
    }

    fn shares(&self) -> Result<&Shares, LsmError> {
        self.shares.as_ref().ok_or_else(work_is_lost)
    }
}

fn work_is_lost() -> LsmError {
    LsmError::Internal("a merge went on after an error".into())
}
