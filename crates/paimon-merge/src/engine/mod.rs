//! Merge engines by name.

mod aggregation;
mod checks;
mod columns;
mod deduplicate;
mod first_row;
mod functions;
mod partial;
mod registry;

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_format::types::RowKind;

use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::kernel::MergeKernel;

pub use aggregation::{Aggregation, AggregationFactory};
pub use deduplicate::{Deduplicate, DeduplicateFactory};
pub use first_row::{FirstRow, FirstRowFactory};
pub use partial::{PartialUpdate, PartialUpdateFactory};
pub use registry::Registry;

/// What other parts may rely on; nobody matches on an engine's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// The newest version alone is the result (deduplicate): older ones may be dropped in any pass. True with a sequence field
    /// too, "newest" being by that order.
    pub newest_wins: bool,
    /// -U and -D rows are merged, whatever their values are.
    pub accepts_retract: bool,
    /// Only whether a key exists matters for older rows (first-row).
    pub existence_only: bool,
    /// Merging a result once more with rows that it was made of changes nothing (deduplicate, first-row). Tables whose compactions look
    /// old rows up have results above rows that are in them already.
    pub idempotent: bool,
    /// A delete removes what is older, so that a later row of its key begins anew. No file can hold "deleted, then inserted": a
    /// compaction that merges a delete with a later row of its key must take all older runs along (or look the older row up), and a writer
    /// flushes between the two, or the older row comes back.
    pub deletes_need_older: bool,
    /// Kernels need all versions of a key in one call: [`PlanOptions::cut_keys`](crate::plan::PlanOptions::cut_keys) must be off.
    pub whole_keys: bool,
}

impl Promises {
    /// An engine that refuses -U and -D rows.
    pub fn insert_only() -> Self {
        Self::default()
    }

    /// An engine that merges rows of every kind.
    pub fn retracting() -> Self {
        Self {
            accepts_retract: true,
            ..Self::default()
        }
    }
}

/// Makes engines of one name: `merge-engine = <name>`.
pub trait MergeEngineFactory: Debug + Send + Sync {
    /// The value of the option `merge-engine`.
    fn name(&self) -> &str;
    /// Also the check at creation and on open of a table: an illegal option is refused here, by name, before anything is written.
    /// `aggregators` are the aggregate functions that options may name.
    fn create(
        &self,
        schema: &KvSchema,
        options: &Options,
        aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError>;
}

/// An engine with its options, shared by all tasks; makes one kernel a task.
pub trait MergeEngine: Debug + Send + Sync {
    /// What other parts may rely on.
    fn promises(&self) -> Promises;
    /// Positions in the full schema's `fields` that a merge needs to answer for `wanted` (sorted, `wanted` and keys included).
    fn needs(&self, wanted: &[usize]) -> Vec<usize>;
    /// Whether [`check_rows`](Self::check_rows) may refuse rows of a kind. By default it goes by [`Promises::accepts_retract`].
    fn may_refuse(&self, kind: RowKind) -> bool {
        kind.is_retract() && !self.promises().accepts_retract
    }
    /// Refuses rows that the merge will refuse, before they are written: a version that is alone passes unmerged, so that a merge would
    /// meet them when they are in a file, and fail for good. `rows`: all columns of the table; `kinds`: one a row. By default it goes by
    /// [`Promises::accepts_retract`].
    ///
    /// Errors: `Retract`, naming what would allow the row; `Value` for a value that its column's function cannot read.
    fn check_rows(&self, _rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        match self.promises().accepts_retract {
            true => Ok(()),
            false => refuse_retracts("of this table", INSERT_ONLY, kinds),
        }
    }
    /// A kernel for batches of `read`, the schema made of the columns that [`needs`](Self::needs) named.
    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError>;
}

/// What an engine says that has no use for -U and -D rows.
pub(crate) const INSERT_ONLY: &str = "it merges +I and +U rows only";

/// Errors: `Retract` for the first -U or -D.
pub(crate) fn refuse_retracts(engine: &str, hint: &str, kinds: &[RowKind]) -> Result<(), MergeError> {
    match kinds.iter().find(|kind| kind.is_retract()) {
        Some(&kind) => Err(refused(engine, kind, hint)),
        None => Ok(()),
    }
}

/// The error of an engine that meets a row kind which it does not take. `hint`: what would allow it.
pub(crate) fn refused(engine: &str, kind: RowKind, hint: impl Into<String>) -> MergeError {
    MergeError::Retract {
        engine: engine.to_owned(),
        kind,
        hint: hint.into(),
    }
}

/// The option `ignore-delete` with its older names.
///
/// Errors: `Invalid` for anything but `true` and `false`.
pub(crate) fn ignore_delete(options: &Options) -> Result<bool, MergeError> {
    flag(options, "ignore-delete")
}

/// An option that is `false` when it is not set.
///
/// Errors: `Invalid`, naming the option.
pub(crate) fn flag(options: &Options, key: &str) -> Result<bool, MergeError> {
    Ok(options.bool(key)?.unwrap_or(false))
}
