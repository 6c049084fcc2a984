//! Turns committables into snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use paimon_format::ErrorKind;
use paimon_format::env::Env;
use paimon_format::meta::{PathSettings, TablePaths};
use paimon_format::row::KeyComparator;
use paimon_format::storage::{FileRoots, Storage, StorageFactory};
use serde::Deserialize;
use tracing::Instrument;

use super::backend::{CommitBackend, Published, PutIfAbsentCommit};
use super::committable::{ChangeSet, CommitChanges, ManifestCommittable};
use super::conflict::{check_conflicts, check_deletion_vectors, check_hash_indexes};
use super::metrics::CommitMeter;
use super::overwrite::Replaced;
use super::retry::Retry;
use super::settings::CommitSettings;
use crate::error::{ManifestError, Result};
use crate::manifest::{
    CreatedFiles, FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta, ManifestFiles, ManifestSettings,
    WrittenList, combine_index_entries, merge_manifests,
};
use crate::scan::{ScanFilter, live_entries};
use crate::schema::{SchemaStore, TableSchema};
use crate::snapshot::{CommitKind, MAX_SEQUENCE_NUMBER, Snapshot, SnapshotStore};

/// Whether a plain append is checked against the files that are there. It cannot conflict unless it is a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendCheck {
    /// The usual case: new level-0 files never conflict.
    Skip,
    /// Recovery: the same files may have been committed.
    Check,
}

/// Commits for one user of one table. Any number of them may work at once, in any number of processes: who loses the race for a
/// snapshot id builds on the winner and tries again.
///
/// Source: `org.apache.paimon.operation.FileStoreCommitImpl`.
#[derive(Clone, Debug)]
pub struct FileStoreCommit {
    pub(super) storage: Arc<dyn Storage>,
    env: Env,
    pub(super) user: String,
    /// Its name in metrics and spans.
    table: Arc<str>,
    pub(super) settings: CommitSettings,
    pub(super) keys: KeyComparator,
    pub(super) paths: TablePaths,
    pub(super) roots: FileRoots,
    schemas: SchemaStore,
    pub(super) snapshots: SnapshotStore,
    pub(super) manifests: ManifestFiles,
    backend: Arc<dyn CommitBackend>,
}

/// What a snapshot changes, as manifest lists.
struct DeltaLists {
    list: WrittenList,
    changelog: Option<WrittenList>,
}

/// Lists that do not depend on the snapshot before: written once, named by whatever attempt wins.
struct Delta {
    lists: DeltaLists,
    created: CreatedFiles,
}

/// What the attempts of one snapshot have led to.
#[derive(Default)]
struct Progress {
    delta: Option<Delta>,
    /// The latest snapshot before the first attempt whose outcome is unclear: ours may be any after it.
    unclear_after: Option<i64>,
}

/// One snapshot to be made.
#[derive(Clone, Copy)]
pub(super) struct SnapshotRequest<'a> {
    pub(super) changes: &'a ChangeSet,
    pub(super) kind: CommitKind,
    pub(super) check: bool,
    pub(super) committable: &'a ManifestCommittable,
    /// What goes away for it, as far as it lives when the snapshot is made.
    pub(super) replaces: Option<&'a Replaced>,
    /// Counts attempts.
    pub(super) meter: &'a CommitMeter,
}

/// Why an attempt made no snapshot.
enum Failure {
    /// Another snapshot took the id: certain.
    Lost,
    /// Nothing was published: certain.
    Before(ManifestError),
    /// It may have been published.
    Unclear(ManifestError),
}

impl From<ManifestError> for Failure {
    fn from(error: ManifestError) -> Self {
        Self::Before(error)
    }
}

impl FileStoreCommit {
    /// Commits to the table at this root, published by [`PutIfAbsentCommit`]. `schema` is the writer's.
    ///
    /// Errors: `Invalid`, `Unsupported` for options and schemas that cannot be committed to.
    pub fn new(storage: Arc<dyn Storage>, env: Env, schema: &TableSchema, user: impl Into<String>) -> Result<Self> {
        let manifests = ManifestFiles::new(
            Arc::clone(&storage),
            env.clone(),
            schema.partition_fields(),
            ManifestSettings::from_options(&schema.options)?,
        );
        Ok(Self {
            user: user.into(),
            table: "".into(),
            settings: CommitSettings::from_options(&schema.options)?,
            keys: schema.key_comparator()?,
            paths: TablePaths::new(PathSettings::from_options(schema.partition_fields(), &schema.options)?),
            schemas: SchemaStore::new(Arc::clone(&storage)),
            snapshots: SnapshotStore::new(Arc::clone(&storage), env.clone()),
            manifests,
            backend: Arc::new(PutIfAbsentCommit::new(Arc::clone(&storage))),
            roots: FileRoots::new(Arc::clone(&storage)),
            storage,
            env,
        })
    }

    /// Tells its metrics under this name of the table.
    #[must_use]
    pub fn with_table_name(mut self, name: &str) -> Self {
        self.table = name.into();
        self
    }

    /// Publishes by another backend.
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn CommitBackend>) -> Self {
        self.backend = backend;
        self
    }

    /// Opens files outside of the table's root, so that recovery and [`abort`](Self::abort) find them. Without it they are left alone.
    #[must_use]
    pub fn with_external_files(mut self, factory: Arc<dyn StorageFactory>) -> Self {
        self.roots = self.roots.with_external(factory);
        self
    }

    /// Whether a commit without any file makes no snapshot. Streaming jobs that note watermarks want one.
    #[must_use]
    pub fn ignore_empty_commit(mut self, ignore: bool) -> Self {
        self.settings.ignore_empty_commit = ignore;
        self
    }

    /// The commit user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Commits: one APPEND snapshot for what was flushed (OVERWRITE when rows are taken away), then one COMPACT snapshot for what
    /// was compacted. Returns the ids of the snapshots, none when there was nothing to commit.
    ///
    /// Errors: `Conflict`: plan again; `Unavailable`: given up ([`ManifestError::Unclear`] when a snapshot may be there all the
    /// same); when the second snapshot fails, the first stays. Files of the messages are never deleted here.
    pub async fn commit(&self, committable: &ManifestCommittable, check: AppendCheck) -> Result<Vec<i64>> {
        let drop_stats = self.manifests.settings().delete_file_drop_stats;
        let changes = CommitChanges::collect(&committable.messages, self.settings.buckets, drop_stats);
        let meter = self.meter();
        let ids = self.commit_changes(&changes, committable, check, &meter).await;
        self.report(&meter, &changes);
        ids
    }

    /// What a commit that begins now is measured by.
    pub(super) fn meter(&self) -> CommitMeter {
        CommitMeter::new(self.env.clock.now_ms())
    }

    pub(super) fn report(&self, meter: &CommitMeter, changes: &CommitChanges) {
        meter.report(&self.table, changes, self.env.clock.now_ms());
    }

    async fn commit_changes(
        &self,
        changes: &CommitChanges,
        committable: &ManifestCommittable,
        check: AppendCheck,
        meter: &CommitMeter,
    ) -> Result<Vec<i64>> {
        let mut ids = Vec::new();
        if !changes.append.is_empty() || !self.settings.ignore_empty_commit {
            let takes_away = changes.append.takes_away();
            let request = SnapshotRequest {
                changes: &changes.append,
                kind: if takes_away {
                    CommitKind::Overwrite
                } else {
                    CommitKind::Append
                },
                check: takes_away || check == AppendCheck::Check,
                committable,
                replaces: None,
                meter,
            };
            ids.push(self.make_snapshot(&request).await?);
        }
        ids.extend(self.commit_compact(changes, committable, meter).await?);
        Ok(ids)
    }

    /// The COMPACT snapshot of what compactions made, if they made anything.
    pub(super) async fn commit_compact(
        &self,
        changes: &CommitChanges,
        committable: &ManifestCommittable,
        meter: &CommitMeter,
    ) -> Result<Option<i64>> {
        if changes.compact.is_empty() {
            return Ok(None);
        }
        let request = SnapshotRequest {
            changes: &changes.compact,
            kind: CommitKind::Compact,
            check: true,
            committable,
            replaces: None,
            meter,
        };
        self.make_snapshot(&request).await.map(Some)
    }

    /// Tries until a snapshot is there, a conflict shows, or the retries are used up.
    pub(super) async fn make_snapshot(&self, request: &SnapshotRequest<'_>) -> Result<i64> {
        let files = &request.changes.table;
        let span = tracing::info_span!(
            "commit",
            table = &*self.table,
            user = self.user,
            identifier = request.committable.identifier,
            kind = ?request.kind,
            files = files.len(),
            bytes = files.iter().map(|entry| entry.file.file_size).sum::<i64>(),
        );
        let mut retry = Retry::new(&self.settings, &self.env);
        let made = self.try_until_made(request, &mut retry).instrument(span).await;
        request.meter.tried(retry.attempts(), made.as_ref().ok().copied());
        made
    }

    async fn try_until_made(&self, request: &SnapshotRequest<'_>, retry: &mut Retry<'_>) -> Result<i64> {
        let mut progress = Progress::default();
        let error = loop {
            let error = match self.try_once(&mut progress, request).await {
                Ok(Some(id)) => return Ok(id),
                Ok(None) => ManifestError::GaveUp {
                    attempts: retry.attempts(),
                    message: "other commits took every snapshot id that was tried".to_string(),
                },
                Err(error) => error,
            };
            tracing::debug!(%error, attempt = retry.attempts(), "commit attempt failed");
            if error.kind() != ErrorKind::Unavailable || !retry.pause().await {
                break error;
            }
        };
        if progress.unclear_after.is_some() {
            return Err(ManifestError::Unclear {
                attempts: retry.attempts(),
                message: error.to_string(),
            });
        }
        if let Some(delta) = progress.delta {
            self.manifests.discard(delta.created).await;
        }
        Err(error)
    }

    /// One attempt. `None`: another snapshot took the id.
    async fn try_once(&self, progress: &mut Progress, request: &SnapshotRequest<'_>) -> Result<Option<i64>> {
        let latest = self.snapshots.latest().await?;
        let latest_id = latest.as_ref().map_or(0, |latest| latest.id);
        if let Some(after) = progress.unclear_after {
            if let Some(id) = self.find_own(after, latest_id, request).await? {
                return Ok(Some(id));
            }
            if latest_id > after {
                // Another snapshot has the id that was tried: now it is clear.
                progress.unclear_after = None;
            }
        }
        match self.attempt(latest.as_ref(), &mut progress.delta, request).await {
            Ok(id) => Ok(Some(id)),
            Err(Failure::Lost) => Ok(None),
            Err(Failure::Before(error)) => Err(error),
            Err(Failure::Unclear(error)) => {
                progress.unclear_after.get_or_insert(latest_id);
                Err(error)
            }
        }
    }

    /// The snapshot of this request among those after `after`, up to `latest`.
    async fn find_own(&self, after: i64, latest: i64, request: &SnapshotRequest<'_>) -> Result<Option<i64>> {
        for id in after + 1..=latest {
            if let Some(snapshot) = self.snapshots.find(id).await?
                && snapshot.is_of(&self.user, request.committable.identifier, request.kind)
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Builds one snapshot on `latest` and publishes it. What it wrote for this base alone is deleted when it certainly has not
    /// been published.
    async fn attempt(
        &self,
        latest: Option<&Snapshot>,
        delta: &mut Option<Delta>,
        request: &SnapshotRequest<'_>,
    ) -> Result<i64, Failure> {
        let mut created = CreatedFiles::default();
        let outcome = self.build_and_publish(latest, delta, request, &mut created).await;
        if let Err(Failure::Lost | Failure::Before(_)) = outcome {
            self.manifests.discard(created).await;
        }
        let id = outcome?;
        if let Err(error) = self.snapshots.write_latest_hint(id).await {
            // Readers notice a hint that is too low, and list.
            tracing::warn!(%error, snapshot = id, "hint file not written");
        }
        Ok(id)
    }

    async fn build_and_publish(
        &self,
        latest: Option<&Snapshot>,
        delta: &mut Option<Delta>,
        request: &SnapshotRequest<'_>,
        created: &mut CreatedFiles,
    ) -> Result<i64, Failure> {
        let (base_manifests, delta_manifests) = self.manifests_of(latest).await?;
        let all_manifests = [base_manifests, delta_manifests].concat();
        if let Some(replaced) = request.replaces {
            // What goes away depends on the snapshot before: these lists are of this attempt alone.
            let mut changes = self.replace(latest, &all_manifests, replaced, request.changes).await?;
            if self.settings.snapshot_ordering {
                changes = changes.with_sequence(latest.map_or(0, |latest| latest.id) + 1);
            }
            let request = SnapshotRequest {
                changes: &changes,
                replaces: None,
                ..*request
            };
            self.check(&all_manifests, &request).await?;
            let lists = self.write_delta_lists(&changes, created).await?;
            return self.publish(latest, all_manifests, &lists, &request, created).await;
        }
        if request.check {
            let base = self.check(&all_manifests, request).await?;
            if request.kind == CommitKind::Compact && !request.changes.index.is_empty() {
                check_deletion_vectors(&base, &self.index_of(latest).await?, &request.changes.index)?;
            }
        }
        if self.settings.snapshot_ordering && request.kind != CommitKind::Compact {
            // What is noted of the files depends on the id that this attempt tries.
            let id = latest.map_or(0, |latest| latest.id) + 1;
            let changes = request.changes.with_sequence(id);
            let request = SnapshotRequest {
                changes: &changes,
                ..*request
            };
            let lists = self.write_delta_lists(&changes, created).await?;
            return self.publish(latest, all_manifests, &lists, &request, created).await;
        }
        if delta.is_none() {
            *delta = Some(self.write_delta(request.changes).await?);
        }
        let Some(delta) = delta else {
            return Err(ManifestError::invalid("no delta").into());
        };
        self.publish(latest, all_manifests, &delta.lists, request, created)
            .await
    }

    /// Writes what depends on the snapshot before, and publishes.
    async fn publish(
        &self,
        latest: Option<&Snapshot>,
        all_manifests: Vec<ManifestFileMeta>,
        delta: &DeltaLists,
        request: &SnapshotRequest<'_>,
        created: &mut CreatedFiles,
    ) -> Result<i64, Failure> {
        let properties = self.properties(latest, &all_manifests, request).await?;
        let merged = merge_manifests(&self.manifests, all_manifests, created).await?;
        let base = self.manifests.write_list(&merged, created).await?;
        let snapshot = Snapshot {
            properties: (!properties.is_empty()).then_some(properties),
            ..self.describe(latest, delta, base, request, created).await?
        };
        match self.backend.publish(latest, &snapshot).await {
            Ok(Published::Won) => Ok(snapshot.id),
            Ok(Published::Lost) => Err(Failure::Lost),
            Err(error) => Err(Failure::Unclear(error)),
        }
    }

    async fn manifests_of(&self, latest: Option<&Snapshot>) -> Result<(Vec<ManifestFileMeta>, Vec<ManifestFileMeta>)> {
        let Some(latest) = latest else {
            return Ok((Vec::new(), Vec::new()));
        };
        futures::future::try_join(
            self.manifests
                .read_list(&latest.base_manifest_list, latest.base_manifest_list_size),
            self.manifests
                .read_list(&latest.delta_manifest_list, latest.delta_manifest_list_size),
        )
        .await
    }

    /// Returns the files that live in the partitions of the changes.
    async fn check(&self, manifests: &[ManifestFileMeta], request: &SnapshotRequest<'_>) -> Result<Vec<ManifestEntry>> {
        let changes = request.changes;
        let table = changes.table.iter().map(|entry| &entry.partition);
        let index = changes.index.iter().map(|entry| &entry.partition);
        let filter = ScanFilter::all().with_partitions(table.chain(index).cloned());
        let base = live_entries(&self.manifests, manifests, &filter).await?;
        check_conflicts(&base, &changes.table, request.kind, &self.keys)?;
        Ok(base)
    }

    async fn write_delta(&self, changes: &ChangeSet) -> Result<Delta> {
        let mut created = CreatedFiles::default();
        match self.write_delta_lists(changes, &mut created).await {
            Ok(lists) => Ok(Delta { lists, created }),
            Err(error) => {
                self.manifests.discard(created).await;
                Err(error)
            }
        }
    }

    async fn write_delta_lists(&self, changes: &ChangeSet, created: &mut CreatedFiles) -> Result<DeltaLists> {
        let manifests = self.manifests.write_manifests(&changes.table, created).await?;
        let list = self.manifests.write_list(&manifests, created).await?;
        let changelog = match changes.changelog.is_empty() {
            true => None,
            false => {
                let manifests = self.manifests.write_manifests(&changes.changelog, created).await?;
                Some(self.manifests.write_list(&manifests, created).await?)
            }
        };
        Ok(DeltaLists { list, changelog })
    }

    /// The properties of the committable, and the largest sequence number if snapshots note it: that of the snapshot before, or of all
    /// files where that has none, and of the files that come.
    ///
    /// Source: `org.apache.paimon.operation.SequenceSnapshotProperties`.
    async fn properties(
        &self,
        latest: Option<&Snapshot>,
        manifests: &[ManifestFileMeta],
        request: &SnapshotRequest<'_>,
    ) -> Result<BTreeMap<String, String>> {
        let mut properties = request.committable.properties.clone();
        if self.settings.note_max_sequence {
            let noted = latest.map(Snapshot::max_sequence_number).transpose()?.flatten();
            let before = match (noted, latest) {
                (None, Some(_)) => {
                    let live = live_entries(&self.manifests, manifests, &ScanFilter::all()).await?;
                    live.iter().map(|entry| entry.file.max_sequence_number).max()
                }
                (noted, _) => noted,
            };
            let added = request.changes.table.iter().filter(|entry| entry.kind == FileKind::Add);
            let added = added.map(|entry| entry.file.max_sequence_number).max();
            if let Some(max) = before.max(added) {
                properties.insert(MAX_SEQUENCE_NUMBER.to_string(), max.to_string());
            }
        }
        Ok(properties)
    }

    async fn describe(
        &self,
        latest: Option<&Snapshot>,
        delta: &DeltaLists,
        base: WrittenList,
        request: &SnapshotRequest<'_>,
        created: &mut CreatedFiles,
    ) -> Result<Snapshot> {
        let committable = request.committable;
        let schema = self.schemas.latest().await?.ok_or_else(|| {
            ManifestError::NotFound("the table has no schema: it was dropped, or never was".to_string())
        })?;
        let delta_record_count = record_count(&request.changes.table);
        let changelog = delta.changelog.as_ref();
        let watermarks = [latest.and_then(|latest| latest.watermark), committable.watermark];
        let now_ms = self.env.clock.now_ms();
        Ok(Snapshot {
            version: Snapshot::VERSION,
            uuid: Some(self.env.ids.uuid()),
            id: latest.map_or(0, |latest| latest.id) + 1,
            schema_id: schema.id,
            base_manifest_list: base.name,
            base_manifest_list_size: Some(base.size),
            delta_manifest_list: delta.list.name.clone(),
            delta_manifest_list_size: Some(delta.list.size),
            changelog_manifest_list: changelog.map(|list| list.name.clone()),
            changelog_manifest_list_size: changelog.map(|list| list.size),
            index_manifest: self.write_index(latest, request.changes, created).await?,
            commit_user: self.user.clone(),
            commit_identifier: committable.identifier,
            commit_kind: request.kind,
            // Time travel searches by time, so it must not go back when clocks differ.
            time_millis: latest.map_or(now_ms, |latest| now_ms.max(latest.time_millis)),
            total_record_count: latest.map_or(0, |latest| latest.total_record_count) + delta_record_count,
            delta_record_count,
            changelog_record_count: changelog.map(|_| record_count(&request.changes.changelog)),
            watermark: watermarks.into_iter().flatten().max(),
            statistics: self.inherited_statistics(latest, schema.id).await?,
            properties: None,
            next_row_id: Some(latest.and_then(|latest| latest.next_row_id).unwrap_or(0)),
            operation: None,
        })
    }

    /// The index files that live at a snapshot.
    pub(super) async fn index_of(&self, latest: Option<&Snapshot>) -> Result<Vec<IndexManifestEntry>> {
        match latest.and_then(|latest| latest.index_manifest.as_deref()) {
            Some(name) => self.manifests.read_index(name).await,
            None => Ok(Vec::new()),
        }
    }

    /// The index manifest after the changes: the one before when there are none.
    async fn write_index(
        &self,
        latest: Option<&Snapshot>,
        changes: &ChangeSet,
        created: &mut CreatedFiles,
    ) -> Result<Option<String>> {
        if changes.index.is_empty() {
            return Ok(latest.and_then(|latest| latest.index_manifest.clone()));
        }
        let entries = self.index_of(latest).await?;
        check_hash_indexes(&entries, &changes.index)?;
        let entries = combine_index_entries(entries, &changes.index);
        Ok(Some(self.manifests.write_index(&entries, created).await?))
    }

    /// Statistics are good as long as the schema is the one they were made for.
    async fn inherited_statistics(&self, latest: Option<&Snapshot>, schema_id: i64) -> Result<Option<String>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Statistics {
            schema_id: i64,
        }
        let Some(name) = latest.and_then(|latest| latest.statistics.as_deref()) else {
            return Ok(None);
        };
        let path = format!("statistics/{name}");
        let bytes = match self.storage.read_all(&path).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let statistics: Statistics = serde_json::from_slice(&bytes)
            .map_err(|error| ManifestError::corrupt(path, format!("not the JSON of statistics: {error}")))?;
        Ok((statistics.schema_id == schema_id).then(|| name.to_string()))
    }
}

/// Physical rows added minus removed.
fn record_count(entries: &[ManifestEntry]) -> i64 {
    entries
        .iter()
        .map(|entry| match entry.kind {
            FileKind::Add => entry.file.row_count,
            FileKind::Delete => -entry.file.row_count,
        })
        .sum()
}
