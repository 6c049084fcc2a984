//! The merge of one section: reading and merging side by side.

use futures::future::try_join_all;
use paimon_format::env::Env;
use paimon_format::kv::{KvBatch, KvSchema};
use paimon_merge::MergeError;
use paimon_merge::kernel::{Assembler, MergeKernel, MergedRows};
use paimon_merge::plan::{MergePlan, PlanOptions, Step};

use super::reader::RunReader;
use crate::LsmError;

/// The synchronous half of a merge: it travels to the CPU pool and back, once a block.
pub(super) struct Work {
    /// `None` before the first section that is merged.
    plan: Option<MergePlan>,
    /// `None`: all versions are kept.
    kernel: Option<Box<dyn MergeKernel>>,
    merged: MergedRows,
    pub(super) assembler: Assembler,
}

impl Work {
    /// Work that merges versions with a kernel, or without one keeps them all.
    pub(super) fn new(kernel: Option<Box<dyn MergeKernel>>, assembler: Assembler) -> Self {
        Self {
            plan: None,
            kernel,
            merged: MergedRows::default(),
            assembler,
        }
    }

    /// Merges one block. `false`: input is needed, or the section is at its end.
    fn block(&mut self) -> Result<Progress, MergeError> {
        let Some(plan) = &mut self.plan else {
            return Ok(Progress::Done);
        };
        match plan.step()? {
            Step::NeedInput(_) => Ok(Progress::Starving),
            Step::Done => Ok(Progress::Done),
            Step::Block(block) => {
                match &mut self.kernel {
                    Some(kernel) => {
                        self.merged.clear();
                        let groups = block.groups();
                        if !groups.is_empty() {
                            kernel.merge(&groups, &mut self.merged)?;
                        }
                        self.assembler.add_merged(&block, &self.merged)?;
                    }
                    None => self.assembler.add_unmerged(&block)?,
                }
                Ok(Progress::Block)
            }
        }
    }
}

/// What one call on the CPU pool came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Block,
    Starving,
    Done,
}

/// A section that is being merged.
pub(super) struct OpenSection {
    readers: Vec<RunReader>,
    ended: Vec<bool>,
    /// One run: nothing can meet, its batches pass as they are.
    single: bool,
}

impl OpenSection {
    /// A section of one run in which every key occurs once. Opens nothing yet.
    pub(super) fn of_one(reader: RunReader) -> Self {
        Self {
            readers: vec![reader],
            ended: vec![false],
            single: true,
        }
    }

    /// Runs that are merged by `work`, which is done with the section before. Opens nothing yet.
    pub(super) fn of_many(
        readers: Vec<RunReader>,
        schema: &KvSchema,
        options: PlanOptions,
        work: &mut Work,
    ) -> Result<Self, LsmError> {
        work.plan = Some(MergePlan::new(readers.len(), schema, options)?);
        Ok(Self {
            ended: vec![false; readers.len()],
            readers,
            single: false,
        })
    }

    /// Goes on with the section until a batch may be ready in the assembler. `false`: the section is at its end.
    pub(super) async fn advance(&mut self, env: &Env, work: &mut Option<Work>) -> Result<bool, LsmError> {
        match self.single {
            true => self.pass(env, work).await,
            false => self.merge(env, work).await,
        }
    }

    async fn pass(&mut self, env: &Env, work: &mut Option<Work>) -> Result<bool, LsmError> {
        let Some(reader) = self.readers.first_mut() else {
            return Ok(false);
        };
        let Some(batch) = reader.next_batch().await? else {
            return Ok(false);
        };
        on_cpu(env, work, move |work| work.assembler.add_batch(&batch)).await?;
        Ok(true)
    }

    async fn merge(&mut self, env: &Env, work: &mut Option<Work>) -> Result<bool, LsmError> {
        let hungry = self.hungry(work.as_ref());
        let reads = self
            .readers
            .iter_mut()
            .enumerate()
            .filter(|(run, _)| hungry.contains(run))
            .map(|(run, reader)| async move { Ok::<_, LsmError>((run, reader.next_batch().await?)) });
        let (progress, batches) = futures::join!(on_cpu(env, work, Work::block), try_join_all(reads));
        let batches: Vec<(usize, Option<KvBatch>)> = batches?;
        let progress = match progress {
            Err(LsmError::Merge(MergeError::Unsorted { run })) => return Err(self.unsorted(run)),
            progress => progress?,
        };
        // Checking the order of a batch's keys is work, too.
        let ended: Vec<usize> = batches
            .iter()
            .filter(|(_, batch)| batch.is_none())
            .map(|&(run, _)| run)
            .collect();
        if !batches.is_empty() {
            let pushed = on_cpu(env, work, move |work| match &mut work.plan {
                Some(plan) => batches.into_iter().try_for_each(|(run, batch)| match batch {
                    Some(batch) => plan.push(run, batch),
                    None => plan.end(run),
                }),
                None => Ok(()),
            });
            match pushed.await {
                Err(LsmError::Merge(MergeError::Unsorted { run })) => return Err(self.unsorted(run)),
                pushed => pushed?,
            }
        }
        for run in ended {
            self.ended[run] = true;
        }
        Ok(progress != Progress::Done)
    }

    /// Runs that have not ended and have no batch waiting.
    fn hungry(&self, work: Option<&Work>) -> Vec<usize> {
        let plan = work.and_then(|work| work.plan.as_ref());
        let waiting = |run| plan.map_or(0, |plan| plan.waiting(run));
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
        let section = OpenSection::of_many(readers, schema, options, &mut work)?;
        Ok(Self {
            env: env.clone(),
            section: Some(section),
            work: Some(work),
        })
    }

    /// The next batch; `None` at the end.
    pub(super) async fn next_batch(&mut self) -> Result<Option<KvBatch>, LsmError> {
        loop {
            if let Some(batch) = self.work.as_mut().and_then(|work| work.assembler.next_batch()) {
                return Ok(Some(batch));
            }
            let Some(section) = &mut self.section else {
                return Ok(None);
            };
            if !section.advance(&self.env, &mut self.work).await? {
                self.section = None;
                on_cpu(&self.env, &mut self.work, |work| work.assembler.finish()).await?;
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
