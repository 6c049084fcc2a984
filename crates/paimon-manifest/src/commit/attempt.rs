//! One snapshot: attempted until it is there.

use paimon_format::ErrorKind;
use tracing::Instrument;

use super::backend::Published;
use super::committable::ChangeSet;
use super::conflict::{
    check_conflicts, check_deletion_vectors, check_hash_indexes, check_hidden_rows, check_upper_files,
};
use super::file_store_commit::{FileStoreCommit, SnapshotRequest};
use super::retry::Retry;
use crate::error::{ManifestError, Result};
use crate::manifest::{
    CreatedFiles, IndexManifestEntry, ManifestEntry, ManifestFileMeta, WrittenList, merge_manifests,
};
use crate::scan::{ScanFilter, live_entries};
use crate::snapshot::{CommitKind, Snapshot};

/// What a snapshot changes, as manifest lists.
pub(super) struct DeltaLists {
    pub(super) list: WrittenList,
    pub(super) changelog: Option<WrittenList>,
}

/// The manifest lists of a snapshot, and the name of its index manifest.
pub(super) struct SnapshotLists<'a> {
    pub(super) base: WrittenList,
    pub(super) delta: &'a DeltaLists,
    pub(super) index: Option<String>,
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
    /// The delta manifest lists of the attempts whose outcome is unclear: names that no other snapshot has.
    unclear_lists: Vec<String>,
    /// The latest snapshot that was searched for the same commit of another process.
    searched: Option<i64>,
}

/// Why an attempt made no snapshot.
enum Failure {
    /// Another snapshot took the id: certain.
    Lost,
    /// Nothing was published: certain.
    Before(ManifestError),
    /// It may have been published, with this delta manifest list.
    Unclear(ManifestError, String),
}

impl From<ManifestError> for Failure {
    fn from(error: ManifestError) -> Self {
        Self::Before(error)
    }
}

impl FileStoreCommit {
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
        Err(match error.kind() {
            // Every attempt failed before it published anything.
            ErrorKind::Unavailable if !matches!(error, ManifestError::GaveUp { .. }) => ManifestError::GaveUp {
                attempts: retry.attempts(),
                message: error.to_string(),
            },
            _ => error,
        })
    }

    /// One attempt. `None`: another snapshot took the id.
    async fn try_once(&self, progress: &mut Progress, request: &SnapshotRequest<'_>) -> Result<Option<i64>> {
        let latest = self.snapshots.latest().await?;
        let latest_id = latest.as_ref().map_or(0, |latest| latest.id);
        if let Some(after) = progress.unclear_after {
            if let Some(id) = self.find_own(after, latest_id, &progress.unclear_lists).await? {
                return Ok(Some(id));
            }
            if latest_id > after {
                // Another snapshot has the id that was tried: now it is clear.
                progress.unclear_after = None;
            }
        }
        self.check_not_committed(progress, latest_id, request).await?;
        match self.attempt(latest.as_ref(), &mut progress.delta, request).await {
            Ok(id) => Ok(Some(id)),
            Err(Failure::Lost) => Ok(None),
            Err(Failure::Before(error)) => Err(error),
            Err(Failure::Unclear(error, delta_list)) => {
                progress.unclear_after.get_or_insert(latest_id);
                progress.unclear_lists.push(delta_list);
                Err(error)
            }
        }
    }

    /// The snapshot with one of these delta manifest lists among those after `after`, up to `latest`.
    async fn find_own(&self, after: i64, latest: i64, lists: &[String]) -> Result<Option<i64>> {
        for id in after + 1..=latest {
            if let Some(snapshot) = self.snapshots.find(id).await?
                && lists.contains(&snapshot.delta_manifest_list)
            {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Errors: `AlreadyCommitted` when a snapshot after `progress.searched` is of the same commit, made by another process of this user.
    async fn check_not_committed(
        &self,
        progress: &mut Progress,
        latest: i64,
        request: &SnapshotRequest<'_>,
    ) -> Result<()> {
        let Some(since) = self.uncommitted_at else {
            return Ok(());
        };
        for id in progress.searched.unwrap_or(since) + 1..=latest {
            if let Some(snapshot) = self.snapshots.find(id).await?
                && snapshot.is_of(&self.user, request.committable.identifier, request.kind)
            {
                return Err(ManifestError::AlreadyCommitted(id));
            }
        }
        progress.searched = Some(latest);
        Ok(())
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
        let compacts = request.kind == CommitKind::Compact;
        let index = match compacts || request.replaces.is_some() || !request.changes.index.is_empty() {
            true => self.index_of(latest).await?,
            false => Vec::new(),
        };
        // Changes that depend on the snapshot before: their lists are of this attempt alone.
        let mut own = None;
        if let Some(replaced) = request.replaces {
            let all = self.replace(latest, &all_manifests, &index, replaced, request.changes);
            own = Some(all.await?);
        }
        if self.settings.snapshot_ordering && request.kind != CommitKind::Compact {
            // What is noted of the files is the id that this attempt tries.
            own = Some(own.as_ref().unwrap_or(request.changes).with_sequence(next_id(latest)));
        }
        let request = SnapshotRequest {
            changes: own.as_ref().unwrap_or(request.changes),
            ..*request
        };
        if request.check {
            let base = self.check(&all_manifests, &request).await?;
            if compacts {
                let ChangeSet {
                    table,
                    index: index_changes,
                    upper_files,
                    ..
                } = request.changes;
                check_upper_files(&base, table, upper_files)?;
                check_hidden_rows(&index, table, index_changes)?;
                check_deletion_vectors(&base, &index, index_changes)?;
            }
        }
        // Plain appends too: of two writers that bring new keys, the second would not know where the first put them.
        check_hash_indexes(&index, &request.changes.index)?;
        let own_lists;
        let lists = match delta {
            _ if own.is_some() => {
                own_lists = self.write_delta_lists(request.changes, created).await?;
                &own_lists
            }
            Some(delta) => &delta.lists,
            None => &delta.insert(self.write_delta(request.changes).await?).lists,
        };
        self.publish(latest, all_manifests, index, lists, &request, created)
            .await
    }

    /// Writes what depends on the snapshot before, and publishes. `index`: the index files that live there, if the changes touch some.
    async fn publish(
        &self,
        latest: Option<&Snapshot>,
        all_manifests: Vec<ManifestFileMeta>,
        index: Vec<IndexManifestEntry>,
        delta: &DeltaLists,
        request: &SnapshotRequest<'_>,
        created: &mut CreatedFiles,
    ) -> Result<i64, Failure> {
        let properties = self.properties(latest, &all_manifests, request).await?;
        let merged = merge_manifests(&self.manifests, all_manifests, created).await?;
        let base = self.manifests.write_list(&merged, created).await?;
        let index = self.write_index(latest, index, request.changes, created).await?;
        let lists = SnapshotLists { base, delta, index };
        let snapshot = self.describe(latest, lists, properties, request).await?;
        self.check_rescaled(latest, &snapshot, &merged, request).await?;
        match self.backend.publish(latest, &snapshot).await {
            Ok(Published::Won) => Ok(snapshot.id),
            Ok(Published::Lost) => Err(Failure::Lost),
            Err(error) => Err(Failure::Unclear(error, snapshot.delta_manifest_list)),
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
}

/// The id of the snapshot after this one.
pub(super) fn next_id(latest: Option<&Snapshot>) -> i64 {
    latest.map_or(0, |latest| latest.id) + 1
}
