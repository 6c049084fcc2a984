//! The merge of one section: reading, looking up and merging side by side.

use std::collections::BTreeMap;

use futures::future::try_join_all;
use paimon_format::dv::DeletionVector;
use paimon_format::env::Env;
use paimon_format::kv::{KvBatch, KvSchema};
use paimon_merge::MergeError;
use paimon_merge::changelog::Hits;
use paimon_merge::plan::{MergePlan, PlanOptions};
use tracing::Instrument;

use super::JobLookup;
use super::reader::RunReader;
use super::work::{Blocks, Output, Progress, SortedBlocks, Work};
use crate::LsmError;
use crate::lookup::SortedKeys;

/// A section that is being merged.
pub(super) struct OpenSection {
    readers: Vec<RunReader>,
    ended: Vec<bool>,
    /// One run that cannot change: its batches pass as they are.
    passes: bool,
}

impl OpenSection {
    /// A run in which every key occurs once and no row can change. Opens nothing yet.
    pub(super) fn passing(reader: RunReader) -> Self {
        Self {
            readers: vec![reader],
            ended: vec![false],
            passes: true,
        }
    }

    /// Runs that are merged by `work`, which is done with the section before. Opens nothing yet.
    pub(super) fn merging(
        readers: Vec<RunReader>,
        schema: &KvSchema,
        options: PlanOptions,
        work: &mut Work,
    ) -> Result<Self, LsmError> {
        work.blocks = Blocks::Plan(Box::new(MergePlan::new(readers.len(), schema, options)?));
        Ok(Self {
            ended: vec![false; readers.len()],
            readers,
            passes: false,
        })
    }

    /// One run in memory, which `work` merges, being done with the section before.
    pub(super) fn sorted(rows: Box<dyn SortedBlocks>, cut_keys: bool, work: &mut Work) -> Self {
        work.blocks = Blocks::Sorted(rows, cut_keys);
        Self {
            readers: Vec::new(),
            ended: Vec::new(),
            passes: false,
        }
    }

    /// Goes on with the section until a batch may be ready. `false`: the section is at its end.
    pub(super) async fn advance(
        &mut self,
        env: &Env,
        work: &mut Option<Work>,
        lookups: Option<&mut Lookups>,
    ) -> Result<bool, LsmError> {
        match self.passes {
            true => self.pass(env, work).await,
            false => self.merge(env, work, lookups).await,
        }
    }

    async fn pass(&mut self, env: &Env, work: &mut Option<Work>) -> Result<bool, LsmError> {
        let Some(reader) = self.readers.first_mut() else {
            return Ok(false);
        };
        let Some(batch) = reader.next_batch().await? else {
            return Ok(false);
        };
        on_cpu(env, work, move |work| work.pass(&batch)).await?;
        Ok(true)
    }

    async fn merge(
        &mut self,
        env: &Env,
        work: &mut Option<Work>,
        lookups: Option<&mut Lookups>,
    ) -> Result<bool, LsmError> {
        let hungry = self.hungry(work.as_ref());
        let reads = self
            .readers
            .iter_mut()
            .enumerate()
            .filter(|(run, _)| hungry.contains(run))
            .map(|(run, reader)| async move { Ok::<_, LsmError>((run, reader.next_batch().await?)) });
        let (done, batches) = futures::join!(merge_block(env, work, lookups), try_join_all(reads));
        let batches: Vec<(usize, Option<KvBatch>)> = batches?;
        let done = match done {
            Err(LsmError::Merge(MergeError::Unsorted { run })) => return Err(self.unsorted(run)),
            done => done?,
        };
        // Checking the order of a batch's keys is work, too.
        let ended: Vec<usize> = batches
            .iter()
            .filter(|(_, batch)| batch.is_none())
            .map(|&(run, _)| run)
            .collect();
        if !batches.is_empty() {
            let pushed = on_cpu(env, work, move |work| match &mut work.blocks {
                Blocks::Plan(plan) => batches.into_iter().try_for_each(|(run, batch)| match batch {
                    Some(batch) => plan.push(run, batch),
                    None => plan.end(run),
                }),
                Blocks::None | Blocks::Sorted(..) => Ok(()),
            });
            match pushed.await {
                Err(LsmError::Merge(MergeError::Unsorted { run })) => return Err(self.unsorted(run)),
                pushed => pushed?,
            }
        }
        for run in ended {
            self.ended[run] = true;
        }
        Ok(!done)
    }

    /// Runs that have not ended and have no batch waiting.
    fn hungry(&self, work: Option<&Work>) -> Vec<usize> {
        let waiting = |run| match work.map(|work| &work.blocks) {
            Some(Blocks::Plan(plan)) => plan.waiting(run),
            _ => 0,
        };
        let runs = self.ended.iter().enumerate();
        runs.filter(|&(run, &ended)| !ended && waiting(run) == 0)
            .map(|(run, _)| run)
            .collect()
    }

    fn unsorted(&self, run: usize) -> LsmError {
        match self.readers.get(run) {
            Some(reader) => reader.unsorted(),
            None => LsmError::Internal(format!("run {run} of {}", self.readers.len())),
        }
    }
}

/// Merges the next block, with its old rows if the stage wants them. `true`: the section is at its end.
async fn merge_block(env: &Env, work: &mut Option<Work>, lookups: Option<&mut Lookups>) -> Result<bool, LsmError> {
    match on_cpu(env, work, Work::block).await? {
        Progress::LookUp(keys) => {
            let lookups = lookups.ok_or_else(|| LsmError::Internal("nothing to look old rows up in".into()))?;
            let hits = lookups.find(&keys).await?;
            // Where only the first keys were answered, the rest comes with the next block, when what was made of these is out of the way.
            on_cpu(env, work, move |work| work.merge_waiting(&hits)).await?;
            Ok(false)
        }
        Progress::Block | Progress::Starving => Ok(false),
        Progress::Done => Ok(true),
    }
}

/// Asks for old rows, and keeps in mind which of them the job replaces.
pub(super) struct Lookups {
    job: JobLookup,
    /// Bytes of records found at once.
    max_bytes: u64,
    /// Rows found by position, by file name.
    pub(super) deletions: BTreeMap<String, DeletionVector>,
}

impl Lookups {
    pub(super) fn new(job: JobLookup, max_bytes: u64) -> Self {
        Self {
            job,
            max_bytes,
            deletions: BTreeMap::new(),
        }
    }

    /// The answers to the keys, or to the first of them.
    async fn find(&mut self, keys: &SortedKeys) -> Result<Hits, LsmError> {
        let JobLookup {
            source,
            view,
            start_level,
            need,
        } = &self.job;
        // Table and bucket are those of the compaction around it.
        let files: usize = view.levels.runs().iter().map(|run| run.run.files().len()).sum();
        let bytes: u64 = view.levels.runs().iter().map(|run| run.run.total_size()).sum();
        let span = tracing::debug_span!("lookup", keys = keys.keys.len(), files, bytes, start_level);
        let looked_up = source.lookup(keys, view, *start_level, *need, self.max_bytes);
        let hits = looked_up.instrument(span).await?;
        if !(1..=keys.keys.len()).contains(&hits.found.len()) {
            return Err(LsmError::Internal(format!(
                "{} answers to {} keys that were looked up",
                hits.found.len(),
                keys.keys.len()
            )));
        }
        if need.position() {
            for hit in hits.found.iter().flatten() {
                let position = hit
                    .position
                    .and_then(|(file, row)| Some((hits.files.get(file as usize)?, row)));
                let Some((file, row)) = position else {
                    return Err(LsmError::Internal("a looked-up row without a position".into()));
                };
                match self.deletions.get_mut(file.as_ref()) {
                    Some(rows) => rows.insert(row),
                    None => self.deletions.entry(file.to_string()).or_default().insert(row),
                };
            }
        }
        Ok(hits)
    }
}

/// Runs that are merged by themselves, whatever they hold: a key may occur often in a run.
pub(super) struct MergedRuns {
    env: Env,
    section: Option<OpenSection>,
    work: Option<Work>,
}

impl MergedRuns {
    /// Opens nothing yet.
    pub(super) fn new(
        env: &Env,
        readers: Vec<RunReader>,
        schema: &KvSchema,
        options: PlanOptions,
        mut work: Work,
    ) -> Result<Self, LsmError> {
        let section = OpenSection::merging(readers, schema, options, &mut work)?;
        Ok(Self {
            env: env.clone(),
            section: Some(section),
            work: Some(work),
        })
    }

    /// The same of one run in memory.
    pub(super) fn of_sorted(env: &Env, rows: Box<dyn SortedBlocks>, cut_keys: bool, mut work: Work) -> Self {
        let section = OpenSection::sorted(rows, cut_keys, &mut work);
        Self {
            env: env.clone(),
            section: Some(section),
            work: Some(work),
        }
    }

    /// The next batch; `None` at the end.
    pub(super) async fn next_output(&mut self) -> Result<Option<Output>, LsmError> {
        loop {
            if let Some(output) = self.work.as_mut().and_then(Work::next_output) {
                return Ok(Some(output));
            }
            let Some(section) = &mut self.section else {
                return Ok(None);
            };
            if !section.advance(&self.env, &mut self.work, None).await? {
                self.section = None;
                on_cpu(&self.env, &mut self.work, Work::finish).await?;
            }
        }
    }
}

/// Runs a part of the work on the CPU pool.
pub(super) async fn on_cpu<T: Send + 'static>(
    env: &Env,
    work: &mut Option<Work>,
    call: impl FnOnce(&mut Work) -> Result<T, MergeError> + Send + 'static,
) -> Result<T, LsmError> {
    let Some(mut taken) = work.take() else {
        return Err(LsmError::Internal("a merge went on after an error".into()));
    };
    let (taken, result) = env
        .cpu(move || {
            let result = call(&mut taken);
            (taken, result)
        })
        .await?;
    *work = Some(taken);
    Ok(result?)
}
