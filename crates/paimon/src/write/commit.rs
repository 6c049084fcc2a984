//! From commit messages to snapshots.

use std::collections::HashSet;

use paimon_format::ErrorKind;
use paimon_format::meta::{CommitMessage, FileLocation};
use paimon_manifest::commit::{AppendCheck, FileStoreCommit, ManifestCommittable};

use crate::error::{Error, Result};
use crate::table::Table;

/// Commits for one user of a table. Any number of committers may work at once, in any number of processes.
///
/// Source: `org.apache.paimon.table.sink.TableCommitImpl`.
#[derive(Clone, Debug)]
pub struct TableCommit {
    table: Table,
    commit: FileStoreCommit,
}

impl TableCommit {
    pub(crate) fn new(table: &Table, user: &str) -> Result<Self> {
        let storage = std::sync::Arc::clone(table.storage());
        let env = table.context().env().clone();
        Ok(Self {
            table: table.clone(),
            commit: FileStoreCommit::new(storage, env, table.schema(), user)?,
        })
    }

    /// A commit without any file makes a snapshot too.
    #[must_use]
    pub fn with_empty_commits(self) -> Self {
        Self {
            commit: self.commit.ignore_empty_commit(false),
            ..self
        }
    }

    /// The commit user.
    pub fn user(&self) -> &str {
        self.commit.user()
    }

    /// Commits messages under an identifier that grows with each commit of this user. Returns the ids of the snapshots: one for
    /// what was written, one for what was compacted, none when there was nothing to commit.
    ///
    /// Errors: `Conflict`: another commit took away or overlapped files of this one, nothing of the failed part is visible;
    /// `Unavailable`: given up, the message says whether a snapshot may be there all the same. No data file is deleted: what
    /// certainly is not committed can be removed with [`abort`](Self::abort).
    pub async fn commit(&self, identifier: i64, messages: Vec<CommitMessage>) -> Result<Vec<i64>> {
        let committable = ManifestCommittable::new(identifier, messages);
        Ok(self.commit.commit(&committable, AppendCheck::Skip).await?)
    }

    /// Recovery: commits those of the committables (identifier and messages) that this user had not committed before it died.
    /// Returns the ids of the snapshots.
    ///
    /// Errors: `NotFound` naming a file that is gone; as [`commit`](Self::commit), earlier committables stay committed.
    pub async fn filter_and_commit(&self, committables: Vec<(i64, Vec<CommitMessage>)>) -> Result<Vec<i64>> {
        let committables = committables.into_iter();
        let committables = committables.map(|(identifier, messages)| ManifestCommittable::new(identifier, messages));
        let rest = self.commit.filter_committed(committables.collect()).await?;
        for committable in &rest {
            self.check_files(&committable.messages).await?;
        }
        let mut snapshots = Vec::new();
        for committable in &rest {
            snapshots.extend(self.commit.commit(committable, AppendCheck::Check).await?);
        }
        Ok(snapshots)
    }

    /// Removes the files of messages that are not committed and never will be. Must not be called after an error of kind
    /// `Unavailable`: the commit may be there. Files that cannot be removed are left to orphan cleaning.
    pub async fn abort(&self, messages: &[CommitMessage]) {
        for message in messages {
            for path in self.new_paths(message).unwrap_or_default() {
                if let Err(error) = self.table.storage().delete(&path).await {
                    tracing::warn!(%error, path, "a file of an aborted commit was not removed");
                }
            }
        }
    }

    /// All files that a recovered message would commit must be there.
    async fn check_files(&self, messages: &[CommitMessage]) -> Result<()> {
        for message in messages {
            for path in self.new_paths(message)? {
                if self.table.storage().size(&path).await?.is_none() {
                    return Err(Error::not_found(format!(
                        "{path}: a file of a commit to be recovered is gone"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Files that a message brings, with their sidecars, as far as they lie in the table.
    fn new_paths(&self, message: &CommitMessage) -> Result<Vec<String>> {
        let paths = self.table.paths().bucket(&message.partition, message.bucket)?;
        let (data, compact) = (&message.increment.data, &message.increment.compact);
        // An upgraded file is in both lists: it was there before.
        let before: HashSet<&str> = compact
            .compact_before
            .iter()
            .map(|file| file.file_name.as_str())
            .collect();
        let after = compact
            .compact_after
            .iter()
            .filter(|file| !before.contains(file.file_name.as_str()));
        let files = data
            .new_files
            .iter()
            .chain(&data.changelog_files)
            .chain(after)
            .chain(&compact.changelog_files);
        let mut locations = Vec::new();
        for file in files {
            locations.push(paths.data_file(file));
            locations.extend(file.extra_files.iter().map(|name| paths.extra_file(file, name)));
        }
        let index = data.new_index_files.iter().chain(&compact.new_index_files);
        locations.extend(index.map(|file| paths.index_file(file)));
        let mut in_table = Vec::with_capacity(locations.len());
        for location in locations {
            match location {
                FileLocation::Table(path) => in_table.push(path),
                FileLocation::External(path) => tracing::warn!(path, "a file outside of the table is left alone"),
            }
        }
        Ok(in_table)
    }
}

/// Whether a failed commit certainly made no snapshot, so that its files may go.
pub(crate) fn certainly_not_committed(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Unavailable)
}
