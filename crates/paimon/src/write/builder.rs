//! How a table is written.

use paimon_lsm::pick::PickRule;

use crate::error::Result;
use crate::options::RowSettings;
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

    /// The name under which this job commits.
    pub fn user(&self) -> &str {
        &self.commit_user
    }

    /// A writer. Errors: `Unsupported` or `Invalid`, naming the option that forbids writing.
    pub fn new_write(&self) -> Result<TableWrite> {
        TableWrite::new(self.table.clone(), self.pick_rule)
    }

    /// The committer. Errors: `Invalid`, naming the option.
    pub fn new_commit(&self) -> Result<TableCommit> {
        TableCommit::new(&self.table, &self.commit_user)
    }
}
