//! After a failure: what is still to be committed, and what is to be thrown away.

use std::sync::Arc;

use paimon_format::ErrorKind;
use paimon_format::meta::{BucketPaths, CommitMessage, DataFileMeta, FileLocation, MadeFiles};

use super::committable::ManifestCommittable;
use super::file_store_commit::{AppendCheck, FileStoreCommit};
use super::overwrite::Overwrite;
use crate::error::{ManifestError, Result};

/// Whether a recovered commit was made now, or by another process.
fn unless_already(committed: Result<Vec<i64>>) -> Result<bool> {
    match committed {
        Ok(_) => Ok(true),
        Err(ManifestError::AlreadyCommitted(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

impl FileStoreCommit {
    /// Those committables that this user has not committed, ascending by identifier: the ones beyond its newest snapshot.
    ///
    /// Cost: one read a snapshot, from the latest down to the user's newest.
    pub async fn filter_committed(
        &self,
        mut committables: Vec<ManifestCommittable>,
    ) -> Result<Vec<ManifestCommittable>> {
        if committables.is_empty() {
            return Ok(committables);
        }
        committables.sort_by_key(|committable| committable.identifier);
        if let Some(newest) = self.snapshots.latest_of_user(&self.user).await? {
            committables.retain(|committable| committable.identifier > newest.commit_identifier);
        }
        Ok(committables)
    }

    /// Recovery: commits those of the committables that were not committed before the process died, with checks. Returns how
    /// many committables were committed.
    ///
    /// What another process of this user commits meanwhile is not committed again.
    ///
    /// Errors: `NotFound` when a file of them is gone (cleaned up as an orphan meanwhile), `Corrupt` when one has another size than it was
    /// written with, before anything is committed; else as [`commit`](Self::commit), and committables before the failing one are committed.
    /// Source: `org.apache.paimon.table.sink.TableCommitImpl#filterAndCommitMultiple`.
    pub async fn filter_and_commit(&self, committables: Vec<ManifestCommittable>) -> Result<usize> {
        let (commit, rest) = self.uncommitted(committables).await?;
        let mut committed = 0;
        for committable in &rest {
            let ids = commit.commit(committable, AppendCheck::Check).await;
            committed += usize::from(unless_already(ids)?);
        }
        Ok(committed)
    }

    /// As [`filter_and_commit`](Self::filter_and_commit), of a job that replaces what is there: each committable in its turn.
    pub async fn filter_and_overwrite(
        &self,
        committables: Vec<ManifestCommittable>,
        overwrite: &Overwrite,
    ) -> Result<usize> {
        let (commit, rest) = self.uncommitted(committables).await?;
        let mut committed = 0;
        for committable in &rest {
            let ids = commit.overwrite(committable, overwrite).await;
            committed += usize::from(unless_already(ids)?);
        }
        Ok(committed)
    }

    /// Those that are not committed, and what commits them unless another process of this user does first. Errors: `NotFound` when a file of them
    /// is gone, `Corrupt` when one has another size.
    async fn uncommitted(&self, committables: Vec<ManifestCommittable>) -> Result<(Self, Vec<ManifestCommittable>)> {
        let latest = self.snapshots.latest_id().await?.unwrap_or(0);
        let commit = Self {
            uncommitted_at: Some(latest),
            ..self.clone()
        };
        let rest = self.filter_committed(committables).await?;
        for message in rest.iter().flat_map(|committable| &committable.messages) {
            self.check_files(message).await?;
        }
        Ok((commit, rest))
    }

    /// Deletes the files of messages that will never be committed. Call it only when no commit of them was tried, or failed with
    /// a conflict: after an unclear answer they may be part of a snapshot.
    ///
    /// Files that a compaction only moved to another level belong to a snapshot and stay; sidecars that they got when they were moved go.
    /// What cannot be deleted is left for the orphan check. Errors: `Invalid`, `Corrupt` when a partition is none of the table.
    pub async fn abort(&self, messages: &[CommitMessage]) -> Result<()> {
        for message in messages {
            let bucket = self.paths.bucket(&message.partition, message.bucket)?;
            let (data, compact) = (&message.increment.data, &message.increment.compact);
            let made = MadeFiles::of(&compact.compact_before, &compact.compact_after);
            for (file, extra) in made.sidecars {
                self.delete(bucket.extra_file(file, extra)).await;
            }
            let files = data
                .new_files
                .iter()
                .chain(&data.changelog_files)
                .chain(&compact.changelog_files);
            for file in files.chain(made.written) {
                self.delete(bucket.data_file(file)).await;
                for extra in &file.extra_files {
                    self.delete(bucket.extra_file(file, extra)).await;
                }
            }
            for index in data.new_index_files.iter().chain(&compact.new_index_files) {
                self.delete(bucket.index_file(index)).await;
            }
        }
        Ok(())
    }

    async fn delete(&self, location: FileLocation) {
        if let Err(error) = self.roots.delete(location.clone()).await {
            tracing::warn!(%error, ?location, "file of an aborted commit not deleted");
        }
    }

    async fn check_files(&self, message: &CommitMessage) -> Result<()> {
        let bucket = self.paths.bucket(&message.partition, message.bucket)?;
        let (data, compact) = (&message.increment.data, &message.increment.compact);
        self.check_data_files(&bucket, &data.new_files).await?;
        self.check_data_files(&bucket, &data.changelog_files).await?;
        self.check_data_files(&bucket, &compact.compact_after).await?;
        self.check_data_files(&bucket, &compact.changelog_files).await?;
        for index in data.new_index_files.iter().chain(&compact.new_index_files) {
            self.check_file(bucket.index_file(index), index.file_size).await?;
        }
        Ok(())
    }

    async fn check_data_files(&self, bucket: &BucketPaths, files: &[Arc<DataFileMeta>]) -> Result<()> {
        for file in files {
            self.check_file(bucket.data_file(file), file.file_size).await?;
        }
        Ok(())
    }

    async fn check_file(&self, location: FileLocation, expected: i64) -> Result<()> {
        let (FileLocation::Table(name) | FileLocation::External(name)) = &location;
        let name = name.clone();
        let (storage, path) = match self.roots.locate(location).await {
            Ok(found) => found,
            // Nobody said how to look there.
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        match storage.size(&path).await? {
            Some(size) if i64::try_from(size) == Ok(expected) => Ok(()),
            Some(size) => Err(ManifestError::corrupt(
                name,
                format_args!("it was to be committed, but has {size} bytes, not {expected}"),
            )),
            None => Err(ManifestError::NotFound(format!(
                "{name} was to be committed, but it is gone: recover from a later state"
            ))),
        }
    }
}
