//! What happens to rows before they reach a bucket, and who commits them.

use paimon_format::FormatError;
use paimon_format::options::{Options, SequenceSettings};

/// Settings of a table's writer that its buckets do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSettings {
    /// `ignore-delete`: -D and -U rows are dropped.
    pub ignore_delete: bool,
    /// `ignore-update-before`: -U rows are dropped.
    pub ignore_update_before: bool,
    /// `rowkind.field`: the column that says what a row is.
    pub row_kind_field: Option<String>,
    /// `local-merge-buffer-size`: rows of equal keys are merged in a buffer of so many bytes before they go to their buckets.
    pub local_merge_bytes: Option<u64>,
    /// `write.sequence-number-init-mode` is `snapshot`: records are numbered from above what the latest snapshot notes, and from above those of
    /// their bucket.
    pub sequence_from_snapshot: bool,
    /// `commit.user-prefix`: how generated commit users begin.
    pub commit_user_prefix: Option<String>,
}

impl RowSettings {
    /// From a table's options. Errors: `Invalid` naming the option.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        Ok(Self {
            ignore_delete: options.bool("ignore-delete")?.unwrap_or(false),
            ignore_update_before: options.bool("ignore-update-before")?.unwrap_or(false),
            row_kind_field: options.string("rowkind.field"),
            local_merge_bytes: options.memory_size("local-merge-buffer-size")?,
            sequence_from_snapshot: SequenceSettings::from_options(options)?.from_snapshot,
            commit_user_prefix: options.string("commit.user-prefix"),
        })
    }
}

/// Whether records may be ordered by the snapshots that they came with, if the options say so. `dynamic`: options of this use alone; a
/// compaction job, which uses a table with `write-only` = false, is one.
///
/// Errors: `Invalid` naming the option.
///
/// Source: `org.apache.paimon.schema.SchemaValidation#validateSnapshotSequenceOrdering`.
pub(crate) fn check_snapshot_ordering(options: &Options, dynamic: &Options) -> Result<(), FormatError> {
    const ORDERING: &str = "sequence.snapshot-ordering";
    if !SequenceSettings::from_options(options)?.snapshot_ordering {
        return Ok(());
    }
    if options.string("sequence.field").is_some() {
        return Err(FormatError::invalid(format!(
            "option '{ORDERING}' = 'true': not together with 'sequence.field', which is another order"
        )));
    }
    if dynamic.lookup("write-only").is_none() && !options.bool("write-only")?.unwrap_or(false) {
        return Err(FormatError::invalid(format!(
            "option '{ORDERING}' = 'true': needs 'write-only' = 'true', as a writer that compacts does not know the ids of its snapshots yet"
        )));
    }
    Ok(())
}
