//! Commits that replace what is there: overwritten, dropped and truncated partitions.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use paimon_format::meta::{CommitIncrement, CommitMessage, DataFileMeta, POSTPONE_BUCKET};
use paimon_format::predicate::Predicate;
use paimon_format::row::BinaryRow;

use super::committable::{ChangeSet, CommitChanges, ManifestCommittable, without_value_stats};
use super::file_store_commit::{FileStoreCommit, SnapshotRequest};
use super::metrics::CommitMeter;
use crate::error::{ManifestError, Result};
use crate::manifest::{FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta};
use crate::scan::{ScanFilter, live_entries};
use crate::snapshot::{CommitKind, Snapshot};

/// What an overwrite replaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overwrite {
    /// Only partitions that pass, which tests partition columns alone; `None`: all.
    pub partitions: Option<Predicate>,
    /// Fails when another user has appended to these partitions, or overwritten them, after this snapshot: for rows that were read from
    /// it and are written back.
    pub read_from: Option<i64>,
    /// What was compacted comes in the same snapshot, and what it was made from never does: for tables whose reads do not see level 0. Without
    /// it their rows would be gone until the second snapshot is there.
    pub with_compaction: bool,
}

/// The files that a snapshot takes away.
pub(super) struct Replaced {
    filter: ScanFilter,
    read_from: Option<i64>,
}

impl FileStoreCommit {
    /// Commits files in place of those that are there: one OVERWRITE snapshot, then one COMPACT snapshot for what was compacted, if
    /// anything was, unless [`Overwrite::with_compaction`] makes one of them. Returns their ids.
    ///
    /// With `dynamic-partition-overwrite` (the default) the partitions of the new files are replaced, and nothing happens without new
    /// files; otherwise, and in tables without partitions, those that `overwrite` names. New files of a bucket that do not overlap
    /// go to the highest level at once (`overwrite-upgrade`). Changelog files are not committed, and removed, as are files that
    /// were compacted already when they come with their compaction.
    ///
    /// Errors: `Invalid` naming the partition of a new file outside of `overwrite`; else as [`commit`](Self::commit).
    ///
    /// Source: `org.apache.paimon.operation.FileStoreCommitImpl#overwritePartition`.
    pub async fn overwrite(&self, committable: &ManifestCommittable, overwrite: &Overwrite) -> Result<Vec<i64>> {
        let drop_stats = self.manifests.settings().delete_file_drop_stats;
        let mut changes = CommitChanges::collect(&committable.messages, self.settings.buckets, drop_stats);
        changes.append.changelog.clear();
        changes.compact.changelog.clear();
        let partitioned = !self.manifests.partition_fields().is_empty();
        let filter = if partitioned && self.settings.dynamic_partition_overwrite {
            let partitions: HashSet<BinaryRow> = changes
                .append
                .table
                .iter()
                .map(|entry| entry.partition.clone())
                .collect();
            (!partitions.is_empty()).then(|| ScanFilter::all().with_partitions(partitions))
        } else {
            self.check_inside(&changes.append, overwrite)?;
            Some(scope(overwrite))
        };
        if overwrite.with_compaction {
            changes.join();
        }
        if changes.compact.is_empty() {
            self.upgrade(&mut changes.append.table)?;
        }
        let meter = self.meter();
        let overwritten = async {
            let mut ids = Vec::new();
            if let Some(filter) = filter {
                let replaced = Replaced {
                    filter,
                    read_from: overwrite.read_from,
                };
                ids.push(
                    self.replace_with(&changes.append, committable, &replaced, &meter)
                        .await?,
                );
            }
            ids.extend(self.commit_compact(&changes, committable, &meter).await?);
            Ok(ids)
        };
        let overwritten: Result<Vec<i64>> = overwritten.await;
        self.report(&meter, &changes);
        let ids = overwritten?;
        let messages = committable.messages.iter();
        let left_out: Vec<CommitMessage> = messages.map(|message| left_out(message, &changes)).collect();
        self.abort(&left_out).await?;
        Ok(ids)
    }

    /// Takes all rows of the partitions away that `partitions` passes, of the table without one: an OVERWRITE snapshot without new
    /// files. Returns its id. Errors: as [`commit`](Self::commit).
    ///
    /// Source: `org.apache.paimon.operation.FileStoreCommitImpl#{dropPartitions, truncateTable}`.
    pub async fn truncate(&self, identifier: i64, partitions: Option<Predicate>) -> Result<i64> {
        let overwrite = Overwrite {
            partitions,
            ..Overwrite::default()
        };
        let committable = ManifestCommittable::new(identifier, Vec::new());
        let replaced = Replaced {
            filter: scope(&overwrite),
            read_from: None,
        };
        let nothing = CommitChanges::default();
        let meter = self.meter();
        let truncated = self
            .replace_with(&nothing.append, &committable, &replaced, &meter)
            .await;
        self.report(&meter, &nothing);
        truncated
    }

    async fn replace_with(
        &self,
        changes: &ChangeSet,
        committable: &ManifestCommittable,
        replaced: &Replaced,
        meter: &CommitMeter,
    ) -> Result<i64> {
        let request = SnapshotRequest {
            changes,
            kind: CommitKind::Overwrite,
            check: true,
            committable,
            replaces: Some(replaced),
            meter,
        };
        self.make_snapshot(&request).await
    }

    /// The changes, with the removal of everything that they replace in a snapshot, of which these manifests and index files are.
    pub(super) async fn replace(
        &self,
        latest: Option<&Snapshot>,
        manifests: &[ManifestFileMeta],
        index: &[IndexManifestEntry],
        replaced: &Replaced,
        changes: &ChangeSet,
    ) -> Result<ChangeSet> {
        let Some(latest) = latest else {
            return Ok(changes.clone());
        };
        if let Some(read_from) = replaced.read_from {
            self.check_unchanged(read_from, latest.id, &replaced.filter).await?;
        }
        let drop_stats = self.manifests.settings().delete_file_drop_stats;
        let mut all = ChangeSet::default();
        for mut entry in live_entries(&self.manifests, manifests, &replaced.filter).await? {
            // Rows that wait for a bucket stay, unless this table's rows all do.
            if self.settings.buckets == POSTPONE_BUCKET || entry.bucket >= 0 {
                entry.kind = FileKind::Delete;
                if drop_stats {
                    entry.file = Arc::new(without_value_stats(&entry.file));
                }
                all.table.push(entry);
            }
        }
        for entry in index {
            if replaced
                .filter
                .keeps_partition(self.manifests.partition_fields(), &entry.partition)?
            {
                all.index.push(IndexManifestEntry {
                    kind: FileKind::Delete,
                    ..entry.clone()
                });
            }
        }
        all.table.extend(changes.table.iter().cloned());
        all.index.extend(changes.index.iter().cloned());
        Ok(all)
    }

    /// Errors: `Conflict` when the rows of the partitions are not those of an older snapshot any more.
    async fn check_unchanged(&self, read_from: i64, latest: i64, filter: &ScanFilter) -> Result<()> {
        for id in read_from + 1..=latest {
            let snapshot = self.snapshots.get(id).await?;
            let changes_rows = matches!(snapshot.commit_kind, CommitKind::Append | CommitKind::Overwrite);
            if !changes_rows || snapshot.commit_user == self.user {
                continue;
            }
            let list = (&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size);
            let manifests = self.manifests.read_list(list.0, list.1).await?;
            if !crate::scan::all_entries(&self.manifests, &manifests, filter)
                .await?
                .is_empty()
            {
                return Err(ManifestError::Conflict(format!(
                    "user {} has changed rows in snapshot {id} that were read from snapshot {read_from} to be written back",
                    snapshot.commit_user
                )));
            }
        }
        Ok(())
    }

    fn check_inside(&self, changes: &ChangeSet, overwrite: &Overwrite) -> Result<()> {
        let filter = scope(overwrite);
        for entry in &changes.table {
            if !filter.keeps_partition(self.manifests.partition_fields(), &entry.partition)? {
                return Err(ManifestError::invalid(format!(
                    "partition {} was written, but it is not one of those to be overwritten",
                    self.paths.partition(&entry.partition)?
                )));
            }
        }
        Ok(())
    }

    /// New files of a bucket that do not overlap go to the highest level: nothing older is below them.
    fn upgrade(&self, entries: &mut [ManifestEntry]) -> Result<()> {
        let Some(level) = self.settings.overwrite_level else {
            return Ok(());
        };
        if entries.iter().any(|entry| entry.file.level > 0 || entry.bucket < 0) {
            return Ok(());
        }
        let mut buckets: BTreeMap<(Vec<u8>, i32), Vec<usize>> = BTreeMap::new();
        for (place, entry) in entries.iter().enumerate() {
            buckets
                .entry((entry.partition.as_bytes().to_vec(), entry.bucket))
                .or_default()
                .push(place);
        }
        for places in buckets.into_values() {
            let mut ranges = Vec::with_capacity(places.len());
            for &place in &places {
                if let Some(entry) = entries.get(place) {
                    ranges.push((self.keys.key(&entry.file.min_key)?, self.keys.key(&entry.file.max_key)?));
                }
            }
            ranges.sort();
            let overlap = |pair: &[_]| matches!(pair, [(_, max), (min, _)] if max >= min);
            if ranges.windows(2).any(overlap) {
                continue;
            }
            for place in places {
                if let Some(entry) = entries.get_mut(place) {
                    entry.file = Arc::new(entry.file.upgrade(level));
                }
            }
        }
        Ok(())
    }
}

fn scope(overwrite: &Overwrite) -> ScanFilter {
    match &overwrite.partitions {
        None => ScanFilter::all(),
        Some(predicate) => ScanFilter::all().with_partition_predicate(predicate.clone()),
    }
}

/// What of a message an overwrite does not commit: changelog files, and data files that its changes do not have, as they were compacted.
fn left_out(message: &CommitMessage, changes: &CommitChanges) -> CommitMessage {
    let all = changes.append.table.iter().chain(&changes.compact.table);
    let of_bucket = all.filter(|entry| (&entry.partition, entry.bucket) == (&message.partition, message.bucket));
    let committed: HashSet<&str> = of_bucket.map(|entry| entry.file.file_name.as_str()).collect();
    message.part(|increment| {
        let (data, compact) = (&increment.data, &increment.compact);
        let mut left_out = CommitIncrement::default();
        left_out.data.changelog_files = data.changelog_files.clone();
        left_out.compact.changelog_files = compact.changelog_files.clone();
        // A file that was moved has more sidecars afterwards.
        let made = data.new_files.iter().chain(&compact.compact_after);
        let gone = made.filter(|file| !committed.contains(file.file_name.as_str()));
        let gone: BTreeMap<&str, &Arc<DataFileMeta>> = gone.map(|file| (file.file_name.as_str(), file)).collect();
        left_out.data.new_files = gone.into_values().cloned().collect();
        left_out
    })
}
