//! Merge engines by name.

mod deduplicate;
mod registry;

use std::fmt::Debug;
use std::sync::Arc;

use paimon_format::kv::KvSchema;
use paimon_format::options::Options;

use crate::MergeError;
use crate::kernel::MergeKernel;

pub use deduplicate::{Deduplicate, DeduplicateFactory};
pub use registry::Registry;

/// What other parts may rely on; nobody matches on an engine's name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// The newest version alone is the result (deduplicate): older ones may be dropped in any pass. True with a sequence field
    /// too, "newest" being by that order.
    pub newest_wins: bool,
    /// -U and -D rows are merged, not refused.
    pub accepts_retract: bool,
    /// Only whether a key exists matters for older rows (first-row).
    pub existence_only: bool,
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
    fn create(&self, schema: &KvSchema, options: &Options) -> Result<Arc<dyn MergeEngine>, MergeError>;
}

/// An engine with its options, shared by all tasks; makes one kernel a task.
pub trait MergeEngine: Debug + Send + Sync {
    /// What other parts may rely on.
    fn promises(&self) -> Promises;
    /// Positions in the full schema's `fields` that a merge needs to answer for `wanted` (sorted, `wanted` and keys included).
    fn needs(&self, wanted: &[usize]) -> Vec<usize>;
    /// A kernel for batches of `read`, the schema made of the columns that [`needs`](Self::needs) named.
    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError>;
}

/// The option `ignore-delete` with its older names.
///
/// Errors: `Invalid` for anything but `true` and `false`.
pub(crate) fn ignore_delete(options: &Options) -> Result<bool, MergeError> {
    const KEYS: [&str; 4] = [
        "ignore-delete",
        "first-row.ignore-delete",
        "deduplicate.ignore-delete",
        "partial-update.ignore-delete",
    ];
    let Some((key, text)) = KEYS.iter().find_map(|key| Some((key, options.get(key)?))) else {
        return Ok(false);
    };
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(MergeError::Invalid(format!(
            "{key}: expected true or false, found {text:?}"
        ))),
    }
}
