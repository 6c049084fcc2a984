//! How a table is written.

use paimon_format::env::StopSignal;
use paimon_lsm::pick::PickRule;

use crate::error::Result;
use crate::options::RowSettings;
use crate::partition::Selection;
use crate::table::Table;
use crate::write::{TableCommit, TableWrite};

/// Makes the writers and the committer of one job, which share its commit user.
///
/// Source: `org.apache.paimon.table.sink.StreamWriteBuilder`.
#[derive(Clone, Debug)]
pub struct WriteBuilder {
    table: Table,
    commit_user: String,
    pick_rule: Option<PickRule>,
    overwrite: Option<OverwriteScope>,
    stop: StopSignal,
}

/// What a job replaces.
#[derive(Clone, Debug)]
struct OverwriteScope {
    partitions: Selection,
    read_from: Option<i64>,
}

impl WriteBuilder {
    pub(crate) fn new(table: Table) -> Self {
        let uuid = table.context().env().ids.uuid();
        // An illegal option is refused by `new_write`.
        let prefix = RowSettings::from_options(table.options())
            .ok()
            .and_then(|settings| settings.commit_user_prefix);
        Self {
            commit_user: prefix.map_or_else(|| uuid.clone(), |prefix| format!("{prefix}_{uuid}")),
            pick_rule: None,
            overwrite: None,
            stop: StopSignal::never(),
            table,
        }
    }

    /// Commits under this name instead of a new one. A job that goes on after a failure keeps its name, so that what it had
    /// committed is recognised.
    #[must_use]
    pub fn commit_user(self, user: impl Into<String>) -> Self {
        Self {
            commit_user: user.into(),
            ..self
        }
    }

    /// Follows another version of the reference's picker than the option `compaction.pick-rule` says.
    #[must_use]
    pub fn pick_rule(self, rule: PickRule) -> Self {
        Self {
            pick_rule: Some(rule),
            ..self
        }
    }

    /// Once it is time to stop, no call of the writer waits long for a compaction: it is cancelled, and the call ends without what would have
    /// come of it. The caller looks at the signal too, and [aborts](TableWrite::abort) the writer, or commits what it has.
    #[must_use]
    pub fn stop_on(self, stop: StopSignal) -> Self {
        Self { stop, ..self }
    }

    /// Replaces what is there with what is written: with `dynamic-partition-overwrite` (the default) in the partitions that are
    /// written, otherwise, and without partition columns, in the selected ones.
    ///
    /// The writer takes no notice of the files that are there, so it may also write another number of buckets.
    #[must_use]
    pub fn overwrite(self, partitions: Selection) -> Self {
        let overwrite = OverwriteScope {
            partitions,
            read_from: None,
        };
        Self {
            overwrite: Some(overwrite),
            ..self
        }
    }

    /// The rows that replace others were read from this snapshot: the commit fails when someone has changed the partitions since.
    #[must_use]
    pub(crate) fn read_from(self, snapshot: i64) -> Self {
        let overwrite = self.overwrite.map(|overwrite| OverwriteScope {
            read_from: Some(snapshot),
            ..overwrite
        });
        Self { overwrite, ..self }
    }

    /// The name under which this job commits.
    pub fn user(&self) -> &str {
        &self.commit_user
    }

    /// A writer. Errors: `Unsupported` or `Invalid`, naming the option that forbids writing.
    pub fn new_write(&self) -> Result<TableWrite> {
        let write = TableWrite::new(
            self.table.clone(),
            self.pick_rule,
            self.overwrite.is_some(),
            &self.commit_user,
        )?;
        Ok(write.stop_on(self.stop.clone()))
    }

    /// The committer. Errors: `Invalid`, naming the option, or the partition column of an overwrite that is none.
    pub fn new_commit(&self) -> Result<TableCommit> {
        let commit = TableCommit::new(&self.table, &self.commit_user)?;
        match &self.overwrite {
            None => Ok(commit),
            Some(OverwriteScope { partitions, read_from }) => commit.overwriting(partitions, *read_from),
        }
    }
}
