//! From commit messages to snapshots.

use std::collections::BTreeMap;

use paimon_format::ErrorKind;
use paimon_format::meta::{CommitIncrement, CommitMessage};
use paimon_format::predicate::Predicate;
use paimon_manifest::ManifestError;
use paimon_manifest::commit::{AppendCheck, FileStoreCommit, ManifestCommittable, Overwrite};
use paimon_manifest::snapshot::CommitKind;

use crate::error::{Error, Result};
use crate::partition::Selection;
use crate::table::Table;

/// The commit identifier of jobs that commit once.
///
/// Source: `org.apache.paimon.table.sink.BatchWriteBuilder#COMMIT_IDENTIFIER`.
pub const BATCH_IDENTIFIER: i64 = i64::MAX;

/// What a failed commit left in the table: it makes a snapshot of what was written, then one of what was compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommittedPart {
    /// No snapshot.
    Nothing,
    /// What was written; what was compacted is lost.
    Written,
    /// All: only the answer was lost.
    All,
}

/// Commits for one user of a table. Any number of committers may work at once, in any number of processes.
///
/// Source: `org.apache.paimon.table.sink.TableCommitImpl`.
#[derive(Clone, Debug)]
pub struct TableCommit {
    commit: FileStoreCommit,
    table: Table,
    overwrite: Option<Overwrite>,
}

impl TableCommit {
    pub(crate) fn new(table: &Table, user: &str) -> Result<Self> {
        let storage = std::sync::Arc::clone(table.storage());
        let env = table.context().env().clone();
        let commit = FileStoreCommit::new(storage, env, table.schema(), user)?;
        Ok(Self {
            commit: commit
                .with_table_name(table.metrics_name())
                .with_external_files(std::sync::Arc::clone(table.context().storages())),
            table: table.clone(),
            overwrite: None,
        })
    }

    /// Replaces what is in these partitions, or in those that are written.
    pub(crate) fn overwriting(self, partitions: &Selection, read_from: Option<i64>) -> Result<Self> {
        let overwrite = Overwrite {
            partitions: self.predicate(partitions)?,
            read_from,
            with_compaction: !self.table.reads_see_level0()?,
        };
        Ok(Self {
            overwrite: Some(overwrite),
            ..self
        })
    }

    fn predicate(&self, partitions: &Selection) -> Result<Option<Predicate>> {
        if !partitions.buckets.is_empty() {
            return Err(Error::invalid("whole partitions are replaced, not single buckets"));
        }
        partitions.predicate(&self.table.partition_fields(), &self.table.default_partition_name())
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
    /// Errors: `Conflict`: another commit took away or overlapped files of this one, or a partition has another number of buckets than its rows were
    /// written for, nothing of the failed part is visible;
    /// `Unavailable`: given up, the message says whether a snapshot may be there all the same. No data file is deleted: what
    /// certainly is not committed can be removed with [`or_abort`](Self::or_abort).
    pub async fn commit(&self, identifier: i64, messages: Vec<CommitMessage>) -> Result<Vec<i64>> {
        self.commit_with_properties(identifier, messages, BTreeMap::new()).await
    }

    /// As [`commit`](Self::commit), with properties that are noted in the snapshot.
    pub async fn commit_with_properties(
        &self,
        identifier: i64,
        messages: Vec<CommitMessage>,
        properties: BTreeMap<String, String>,
    ) -> Result<Vec<i64>> {
        let committable = ManifestCommittable {
            properties,
            ..ManifestCommittable::new(identifier, messages)
        };
        match &self.overwrite {
            None => Ok(self.commit.commit(&committable, AppendCheck::Skip).await?),
            Some(overwrite) => Ok(self.commit.overwrite(&committable, overwrite).await?),
        }
    }

    /// Commits once, under [`BATCH_IDENTIFIER`]; where that certainly made no snapshot, removes the files of the messages.
    ///
    /// Errors: as [`commit`](Self::commit).
    pub(crate) async fn commit_or_abort(&self, messages: Vec<CommitMessage>) -> Result<Vec<i64>> {
        let committed = self.commit(BATCH_IDENTIFIER, messages.clone()).await;
        self.or_abort(committed, BATCH_IDENTIFIER, &messages).await
    }

    /// Gives back what the commit of these messages under `identifier` came to; where it certainly made no snapshot, removes their files
    /// first, and where only what was compacted lost, what that made. After an unclear answer all files stay. That they could not be removed is
    /// only noted: why there is no snapshot matters more.
    ///
    /// Errors: that of the commit, unchanged.
    pub async fn or_abort<T>(&self, committed: Result<T>, identifier: i64, messages: &[CommitMessage]) -> Result<T> {
        if let Err(error) = &committed
            && certainly_not_committed(error)
            && let Err(error) = self.abort_lost(identifier, messages).await
        {
            tracing::warn!(%error, "files that were not committed could not be removed");
        }
        committed
    }

    async fn abort_lost(&self, identifier: i64, messages: &[CommitMessage]) -> Result<()> {
        match self.committed_in_part(identifier, messages).await? {
            CommittedPart::Nothing => self.abort(messages).await,
            CommittedPart::All => Ok(()),
            CommittedPart::Written => {
                let compacted = |increment: &CommitIncrement| CommitIncrement {
                    compact: increment.compact.clone(),
                    ..CommitIncrement::default()
                };
                let compacted: Vec<_> = messages.iter().map(|message| message.part(compacted)).collect();
                self.abort(&compacted).await
            }
        }
    }

    /// What a failed commit of these messages under this identifier left in the table.
    ///
    /// Cost: one read a snapshot, from the latest down to this user's newest; none for what was compacted alone.
    pub async fn committed_in_part(&self, identifier: i64, messages: &[CommitMessage]) -> Result<CommittedPart> {
        // What was compacted alone is in one snapshot, which failed.
        if self.overwrite.is_none() && messages.iter().all(|message| message.increment.data.is_empty()) {
            return Ok(CommittedPart::Nothing);
        }
        let newest = self.table.snapshot_store().latest_of_user(self.user()).await?;
        let Some(found) = newest.filter(|snapshot| snapshot.commit_identifier >= identifier) else {
            return Ok(CommittedPart::Nothing);
        };
        let in_one = self
            .overwrite
            .as_ref()
            .is_some_and(|overwrite| overwrite.with_compaction);
        let compacted = messages.iter().any(|message| !message.increment.compact.is_empty());
        let second_missing = compacted && !in_one && found.commit_kind != CommitKind::Compact;
        Ok(match second_missing {
            true => CommittedPart::Written,
            false => CommittedPart::All,
        })
    }

    /// Takes all rows of the selected partitions away, of the whole table without a selection, in one OVERWRITE snapshot. Returns its
    /// id. Errors: `Invalid` naming a column that is no partition column; else as [`commit`](Self::commit).
    ///
    /// Source: `org.apache.paimon.table.sink.BatchTableCommit#{truncateTable, truncatePartitions}`.
    pub async fn truncate(&self, partitions: &Selection) -> Result<i64> {
        let partitions = self.predicate(partitions)?;
        Ok(self.commit.truncate(BATCH_IDENTIFIER, partitions).await?)
    }

    /// Recovery: commits those of the committables (identifier and messages) that this user had not committed before it died, each as
    /// [`commit`](Self::commit) would have: one that overwrites replaces what is there. Returns how many that were.
    ///
    /// Errors: `NotFound` naming a file that is gone, before anything is committed; else as [`commit`](Self::commit), and earlier
    /// committables stay committed.
    pub async fn filter_and_commit(&self, committables: Vec<(i64, Vec<CommitMessage>)>) -> Result<usize> {
        let committables = committables.into_iter();
        let committables = committables.map(|(identifier, messages)| ManifestCommittable::new(identifier, messages));
        match &self.overwrite {
            None => Ok(self.commit.filter_and_commit(committables.collect()).await?),
            Some(overwrite) => Ok(self
                .commit
                .filter_and_overwrite(committables.collect(), overwrite)
                .await?),
        }
    }

    /// Removes the files of messages that are not committed and never will be. Must not be called after an error of kind
    /// `Unavailable`: the commit may be there. Files that cannot be removed are left to orphan cleaning.
    ///
    /// Errors: `Corrupt`, `Invalid` for messages of another table.
    pub async fn abort(&self, messages: &[CommitMessage]) -> Result<()> {
        Ok(self.commit.abort(messages).await?)
    }
}

/// Whether a failed commit certainly made no snapshot, so that its files may go.
fn certainly_not_committed(error: &Error) -> bool {
    let gave_up = matches!(error, Error::Manifest(ManifestError::GaveUp { .. }));
    gave_up || error.kind() != ErrorKind::Unavailable
}
