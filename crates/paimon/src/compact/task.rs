//! Compactions as data: planned by one process, run by others, committed by a third.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use paimon_format::env::StopSignal;
use paimon_format::meta::{CommitIncrement, CommitMessage, DataFileMeta};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_lsm::compact::{CompactResult, CompactTask, RunningCompaction};
use paimon_lsm::pick::PickReason;
use paimon_manifest::snapshot::TimeTravel;
use serde::{Deserialize, Serialize};

use super::job::message;
use super::report::{BucketReport, CompactReport};
use crate::bucket::BucketStores;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::levels::BucketLevels;
use crate::partition::Selection;
use crate::table::Table;
use crate::write::TableCommit;

/// The form of [`CompactionTask`] and [`CompactionResult`] as serde data.
const VERSION: u32 = 1;

/// Which compaction a task or result is, and of what. The same in a task and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionId {
    version: u32,
    /// The table's location.
    pub table: String,
    /// The commit user of the plan, new with each plan: what makes its commit idempotent.
    pub commit_user: String,
    /// Which of the plan's tasks, from 1.
    pub number: usize,
    /// How many tasks the plan has.
    pub tasks: usize,
    /// The snapshot that was looked at.
    pub snapshot: i64,
    /// The schema that it is run with.
    pub schema_id: i64,
    /// The options of this use of the table, without those of storages: who runs it brings these.
    pub options: Options,
    /// The partition.
    pub partition: BinaryRow,
    /// The bucket.
    pub bucket: i32,
    /// The bucket's directory, relative to the table.
    pub bucket_name: String,
    /// Which part of the bucket's compaction, from 1, and of how many.
    pub part: (usize, usize),
    /// The index files that held the bucket's deletion vectors.
    pub deletion_index_files: Vec<String>,
    /// The files that the bucket had above level 0.
    pub upper_files: Vec<String>,
    /// The rule that picked the files.
    pub reason: PickReason,
    /// Where they go.
    pub output_level: i32,
}

/// The compaction of one bucket, or of a range of its keys, as data: runs in any process that reaches the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionTask {
    /// Which.
    #[serde(flatten)]
    pub id: CompactionId,
    /// What is done.
    pub task: CompactTask,
}

/// What a task did, as data: its files are there, and in no snapshot yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// Which.
    #[serde(flatten)]
    pub id: CompactionId,
    /// What was done. Rows of older files that it replaces are told by position: who commits writes the bucket's one index file.
    pub result: CompactResult,
}

/// The identifier of a plan's only commit.
const IDENTIFIER: i64 = 1;

impl std::fmt::Display for CompactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "task {} of {} ({}", self.number, self.tasks, self.bucket_name)?;
        match self.part {
            (_, 1) => f.write_str(")"),
            (part, of) => write!(f, ", part {part} of {of})"),
        }
    }
}

impl CompactionId {
    /// The table as the task is run in it. Errors: as [`Table::open`].
    async fn open(&self, context: &Context) -> Result<Table> {
        let table = Table::open(&self.table, self.options.clone(), context).await?;
        table.at_schema(self.schema_id).await?.for_compaction()
    }

    /// Errors: `Unsupported` for data of another version.
    fn check(&self) -> Result<()> {
        match self.version {
            VERSION => Ok(()),
            other => Err(Error::unsupported(format!(
                "a compaction task of version {other}: this engine knows version {VERSION}"
            ))),
        }
    }
}

/// Names come from outside: none may lead out of the bucket's folder.
///
/// Errors: `Invalid`, naming the file.
fn check_names<'a>(id: &CompactionId, files: impl IntoIterator<Item = &'a Arc<DataFileMeta>>) -> Result<()> {
    let names = files
        .into_iter()
        .flat_map(|file| std::iter::once(&file.file_name).chain(&file.extra_files));
    for name in names {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
            return Err(Error::invalid(format!("{id}: {name:?} is no name of a data file")));
        }
    }
    Ok(())
}

impl CompactionResult {
    /// Removes the files of a result that nobody else knows of, so that it cannot be committed. Another result of the same task may be: that is
    /// not asked. A file that cannot be removed stays.
    ///
    /// Errors: as [`Table::open`], no file being removed; `Unsupported` for a result of another version, `Invalid` for names that are none.
    pub async fn discard(&self, context: &Context) -> Result<()> {
        self.check()?;
        let table = self.id.open(context).await?;
        let rewriter = BucketStores::new(&table)?.rewriter(&self.id.partition, self.id.bucket)?;
        rewriter.discard(&self.result).await;
        Ok(())
    }

    /// Errors: `Unsupported` for data of another version, `Invalid` for a name that is none.
    fn check(&self) -> Result<()> {
        self.id.check()?;
        let CompactResult {
            before,
            after,
            changelog,
            ..
        } = &self.result;
        check_names(&self.id, before.iter().chain(after).chain(changelog))
    }
}

/// What of a plan becomes tasks of a bucket.
pub(super) struct BucketPlan {
    pub(super) bucket: BucketLevels,
    pub(super) parts: Vec<CompactTask>,
}

/// The tasks of a plan.
pub(super) fn tasks_of(table: &Table, buckets: Vec<BucketPlan>) -> Vec<CompactionTask> {
    let commit_user = table.write_builder().user().to_owned();
    let tasks = buckets.iter().map(|bucket| bucket.parts.len()).sum();
    let mut all = Vec::with_capacity(tasks);
    for BucketPlan { bucket, parts } in buckets {
        let of = parts.len();
        for (part, task) in (1..).zip(parts) {
            let index_files = bucket.deletion_index_files().iter();
            all.push(CompactionTask {
                id: CompactionId {
                    version: VERSION,
                    table: table.location().to_owned(),
                    commit_user: commit_user.clone(),
                    number: all.len() + 1,
                    tasks,
                    snapshot: bucket.snapshot,
                    schema_id: table.schema().id,
                    options: table.dynamic_options().clone(),
                    partition: bucket.partition.row().clone(),
                    bucket: bucket.bucket,
                    bucket_name: bucket.name().to_owned(),
                    part: (part, of),
                    deletion_index_files: index_files.map(|file| file.file_name.clone()).collect(),
                    upper_files: bucket.levels().upper_files(),
                    reason: task.reason,
                    output_level: task.output_level,
                },
                task,
            });
        }
    }
    all
}

impl CompactionTask {
    /// Opens the table and runs the task. `None`: it was stopped; then, and after an error, no file of it is left. Nothing is committed: the
    /// table is as it was.
    ///
    /// Errors: those of [`Table::open`], of merging and of files; `NotFound` when a file of the task is gone, as when another compaction was
    /// first; `Invalid` when the plan is committed; `Unsupported` for a task of another version.
    pub async fn run(&self, context: &Context, stop: &StopSignal) -> Result<Option<CompactionResult>> {
        self.id.check()?;
        let older = self.task.older.runs().iter().flat_map(|run| run.run.files());
        check_names(&self.id, self.task.files.iter().chain(older))?;
        let table = self.id.open(context).await?;
        table.check_uncommitted(&self.id).await?;
        let result = self.run_in(&table, stop).await;
        let result = result.map_err(|error| error.in_bucket(&self.id.bucket_name))?;
        Ok(result.map(|result| CompactionResult {
            id: self.id.clone(),
            result,
        }))
    }

    async fn run_in(&self, table: &Table, stop: &StopSignal) -> Result<Option<CompactResult>> {
        let rewriter = BucketStores::new(table)?.rewriter(&self.id.partition, self.id.bucket)?;
        let mut running = RunningCompaction::start(&rewriter, self.task.clone());
        Ok(running.finished_or_stopped(stop).await?)
    }
}

impl Table {
    /// Commits the results of all tasks of one plan, in any order, as one snapshot. Done twice it is done once: the second call finds the
    /// first one's snapshot.
    ///
    /// Errors, the table being as it was: `Invalid` when results are missing, doubled, of several plans or of another table, or name a level that
    /// is none; `Conflict` when another
    /// compaction changed one of the buckets after the plan: the results are stale, plan again and remove their files with
    /// [`abort_compaction`](Self::abort_compaction); `NotFound` naming a file of a result that is gone, `Corrupt` one that was cut short. Else as [`TableCommit::commit`].
    pub async fn commit_compaction(&self, results: Vec<CompactionResult>) -> Result<CompactReport> {
        let table = self.for_compaction()?;
        let clock = &table.context().env().clock;
        let start_ms = clock.now_ms();
        let buckets = complete(table.location(), results)?;
        let Some(user) = buckets.first().map(|(id, _)| id.commit_user.clone()) else {
            return Ok(CompactReport::default());
        };
        let described = buckets.iter();
        let mut report = CompactReport {
            buckets_looked_at: buckets.len(),
            buckets: described
                .map(|(id, result)| BucketReport::of(&id.bucket_name, id.reason, id.output_level, result))
                .collect(),
            ..CompactReport::default()
        };
        let planned_at = buckets.iter().map(|(id, _)| id.snapshot).min().unwrap_or(0);
        report.snapshot = table.committed_by(&user, planned_at).await?;
        if report.snapshot.is_some() {
            return Ok(report);
        }
        let commit = TableCommit::new(&table, &user)?;
        let mut messages = Vec::with_capacity(buckets.len());
        let live = table.buckets(&TimeTravel::Latest, &Selection::all()).await?;
        for (id, result) in &buckets {
            let live = find(&live, id)?;
            check_consumed(id, result, live)?;
            check_levels(id, result, live)?;
            check_vectors(id, live)?;
            check_upper_files(id, live)?;
        }
        for (id, result) in &buckets {
            match message(find(&live, id)?, result).await {
                Ok(message) => messages.push(message),
                Err(error) => {
                    commit.abort(&index_files_alone(&messages)).await?;
                    return Err(error);
                }
            }
        }
        let index_files = index_files_alone(&messages);
        let committed = commit.filter_and_commit(vec![(IDENTIFIER, messages)]).await;
        commit.or_abort(committed, IDENTIFIER, &index_files).await?;
        report.snapshot = table.committed_by(&user, planned_at).await?;
        report.milliseconds = clock.now_ms().saturating_sub(start_ms);
        Ok(report)
    }

    /// Removes the files of results that will never be committed: some or all of a plan's.
    ///
    /// Errors: `Invalid` when they are committed, when that cannot be told any more, or when they are of another table.
    pub async fn abort_compaction(&self, results: &[CompactionResult]) -> Result<()> {
        for every in results {
            let CompactionResult { id, result } = every;
            every.check()?;
            check_table(self.location(), id)?;
            self.check_uncommitted(id).await?;
            // After the search: a snapshot that expired before it was looked for shows here.
            let earliest = self.snapshot_store().earliest_id().await?;
            if earliest.is_some_and(|earliest| earliest > id.snapshot.saturating_add(1)) {
                return Err(Error::invalid(format!(
                    "{id}: snapshots made since it was planned have expired, so it may be committed: its files are left to orphan cleaning"
                )));
            }
            let rewriter = BucketStores::new(&self.for_compaction()?)?.rewriter(&id.partition, id.bucket)?;
            rewriter.discard(result).await;
        }
        Ok(())
    }
}

impl Table {
    /// Errors: `Invalid` when the plan is committed, in a snapshot that is still there.
    async fn check_uncommitted(&self, id: &CompactionId) -> Result<()> {
        match self.committed_by(&id.commit_user, id.snapshot).await? {
            None => Ok(()),
            Some(snapshot) => Err(Error::invalid(format!("{id}: it is committed, in snapshot {snapshot}"))),
        }
    }

    /// The newest snapshot after another that a user committed.
    async fn committed_by(&self, user: &str, after: i64) -> Result<Option<i64>> {
        let latest = self.snapshot_store().latest_id().await?.unwrap_or(0);
        for id in (after.saturating_add(1)..=latest).rev() {
            if let Some(snapshot) = self.snapshot_store().find(id).await?
                && snapshot.commit_user == user
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

/// Messages of the index files in messages: what a commit adds to results, whose own files may be committed another time.
fn index_files_alone(messages: &[CommitMessage]) -> Vec<CommitMessage> {
    let alone = |increment: &CommitIncrement| {
        let mut alone = CommitIncrement::default();
        alone.compact.new_index_files = increment.compact.new_index_files.clone();
        alone
    };
    messages.iter().map(|message| message.part(alone)).collect()
}

fn check_table(location: &str, id: &CompactionId) -> Result<()> {
    match id.table == location {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "{id} is of the table {}, not {location}",
            id.table
        ))),
    }
}

/// One result a bucket, of all its parts, in the order of the plan.
///
/// Errors: `Invalid` when results are missing, doubled or do not belong together.
fn complete(location: &str, results: Vec<CompactionResult>) -> Result<Vec<(CompactionId, CompactResult)>> {
    let mut numbered: BTreeMap<usize, CompactionResult> = BTreeMap::new();
    let mut plan: Option<(String, usize)> = None;
    for result in results {
        let id = &result.id;
        result.check()?;
        check_table(location, id)?;
        let (user, tasks) = plan.get_or_insert_with(|| (id.commit_user.clone(), id.tasks));
        if (&id.commit_user, id.tasks) != (&*user, *tasks) {
            return Err(Error::invalid(format!(
                "{id}: results of several plans; commit each plan alone"
            )));
        }
        if let Some(twice) = numbered.insert(id.number, result) {
            return Err(Error::invalid(format!("{}: its result is there twice", twice.id)));
        }
    }
    let Some((_, tasks)) = plan else {
        return Ok(Vec::new());
    };
    if let Some(missing) = (1..=tasks).find(|number| !numbered.contains_key(number)) {
        return Err(Error::invalid(format!(
            "the result of task {missing} of {tasks} is missing: nothing is committed before all are there"
        )));
    }
    if let Some((_, beyond)) = numbered.range(tasks.saturating_add(1)..).next() {
        return Err(Error::invalid(format!("{}: the plan has no such task", beyond.id)));
    }
    let mut buckets: Vec<(CompactionId, Vec<CompactResult>)> = Vec::new();
    for CompactionResult { id, result } in numbered.into_values() {
        match buckets.last_mut() {
            Some((first, parts)) if (&first.partition, first.bucket) == (&id.partition, id.bucket) => {
                parts.push(result);
            }
            _ => buckets.push((id, vec![result])),
        }
    }
    buckets
        .into_iter()
        .map(|(id, parts)| match parts.len() == id.part.1 {
            true => Ok((id, CompactResult::join(parts))),
            false => Err(Error::invalid(format!(
                "{id}: the bucket's compaction has {} parts, of which {} are there",
                id.part.1,
                parts.len()
            ))),
        })
        .collect()
}

fn find<'a>(live: &'a [BucketLevels], id: &CompactionId) -> Result<&'a BucketLevels> {
    let mut live = live.iter();
    let bucket = live.find(|live| live.partition.row() == &id.partition && live.bucket == id.bucket);
    bucket.ok_or_else(|| stale(id, "the bucket has no files any more"))
}

/// Errors: `Conflict` when the bucket's deletion vectors are not those that the compaction began with.
fn check_vectors(id: &CompactionId, live: &BucketLevels) -> Result<()> {
    let index_files = live.deletion_index_files().iter();
    let index_files: Vec<&str> = index_files.map(|file| file.file_name.as_str()).collect();
    if index_files != id.deletion_index_files {
        return Err(stale(
            id,
            "the bucket's deletion vectors have changed since it was planned",
        ));
    }
    Ok(())
}

/// Errors: `Conflict` when the bucket has other files above level 0 than when it was planned: old rows may have been looked up in those.
fn check_upper_files(id: &CompactionId, live: &BucketLevels) -> Result<()> {
    match live.levels().upper_files() == id.upper_files {
        true => Ok(()),
        false => Err(stale(
            id,
            "the bucket's files above level 0 have changed since it was planned",
        )),
    }
}

/// Errors: `Invalid` for a new file on a level that is not the output's, or none of the tree.
fn check_levels(id: &CompactionId, result: &CompactResult, live: &BucketLevels) -> Result<()> {
    let max_level = live.levels().max_level();
    let is_wrong = |level: i32| level != id.output_level || !(1..=max_level).contains(&level);
    match result.after.iter().find(|file| is_wrong(file.level)) {
        None => Ok(()),
        Some(file) => Err(Error::invalid(format!(
            "{id}: {} is on level {}, where {} of 1 to {max_level} was expected",
            file.file_name, file.level, id.output_level
        ))),
    }
}

/// Errors: `Conflict` when a file that was consumed is not in the bucket any more. The commit checks that again, against the snapshot that it builds on.
fn check_consumed(id: &CompactionId, result: &CompactResult, live: &BucketLevels) -> Result<()> {
    let files = live.runs().iter().flat_map(|run| run.run.files());
    let files: HashSet<(&str, i32)> = files.map(|file| (file.file_name.as_str(), file.level)).collect();
    let mut gone = result.before.iter();
    match gone.find(|file| !files.contains(&(file.file_name.as_str(), file.level))) {
        None => Ok(()),
        Some(gone) => Err(stale(
            id,
            &format!("{} is not on level {} any more", gone.file_name, gone.level),
        )),
    }
}

fn stale(id: &CompactionId, why: &str) -> Error {
    paimon_manifest::ManifestError::Conflict(format!("{id}: its result is stale, {why}; plan again")).into()
}
