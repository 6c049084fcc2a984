//! Turns committables into snapshots.

use std::sync::Arc;

use paimon_format::env::Env;
use paimon_format::meta::{PathSettings, TablePaths};
use paimon_format::row::KeyComparator;
use paimon_format::storage::{FileRoots, Storage, StorageFactory};

use super::backend::{CommitBackend, PutIfAbsentCommit};
use super::committable::{ChangeSet, CommitChanges, ManifestCommittable};
use super::metrics::CommitMeter;
use super::overwrite::Replaced;
use super::settings::CommitSettings;
use crate::error::Result;
use crate::manifest::{ManifestFiles, ManifestSettings};
use crate::schema::{SchemaStore, TableSchema};
use crate::snapshot::{CommitKind, SnapshotStore};

/// Whether a plain append is checked against the files that are there. It cannot conflict unless it is a replay, or of a writer that was opened before
/// its partition got another number of buckets, which is looked at in any case.
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
    pub(super) env: Env,
    pub(super) user: String,
    /// Of the writer's schema.
    pub(super) schema_id: i64,
    /// Its name in metrics and spans.
    pub(super) table: Arc<str>,
    pub(super) settings: CommitSettings,
    pub(super) keys: KeyComparator,
    pub(super) paths: TablePaths,
    pub(super) roots: FileRoots,
    pub(super) schemas: SchemaStore,
    pub(super) snapshots: SnapshotStore,
    pub(super) manifests: ManifestFiles,
    pub(super) backend: Arc<dyn CommitBackend>,
    /// In recovery: snapshots after this one may be of the same commit, made by another process of the user meanwhile.
    pub(super) uncommitted_at: Option<i64>,
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
            schema_id: schema.id,
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
            uncommitted_at: None,
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
    /// Errors: `Conflict`: plan again, or, where the partition of an append has another number of buckets now, write again; `Unavailable`: given up ([`ManifestError::Unclear`](crate::ManifestError::Unclear) when a
    /// snapshot may be there all the same); when the second snapshot fails, the first stays. Files of the messages are never deleted
    /// here.
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
}
