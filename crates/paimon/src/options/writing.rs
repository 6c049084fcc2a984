//! How a writer buffers and commits.

use paimon_format::FormatError;
use paimon_format::options::Options;

/// Settings of a table's writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteSettings {
    /// `write-only`: never compacts.
    pub write_only: bool,
    /// `write-buffer-size`: bytes of memory for the buffers of all buckets.
    pub buffer_bytes: u64,
    /// `ignore-delete`: -D and -U rows are dropped.
    pub ignore_delete: bool,
    /// `ignore-update-before`: -U rows are dropped.
    pub ignore_update_before: bool,
    /// `rowkind.field`: the column that says what a row is.
    pub row_kind_field: Option<String>,
    /// `commit.force-compact`: a commit waits for the compaction that it started.
    pub force_compact: bool,
    /// `commit.user-prefix`: how generated commit users begin.
    pub commit_user_prefix: Option<String>,
}

impl WriteSettings {
    /// From a table's options. Errors: `Invalid` naming the option.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        Ok(Self {
            write_only: options.bool("write-only")?.unwrap_or(false),
            buffer_bytes: options.memory_size("write-buffer-size")?.unwrap_or(256 << 20),
            ignore_delete: options.bool("ignore-delete")?.unwrap_or(false),
            ignore_update_before: options.bool("ignore-update-before")?.unwrap_or(false),
            row_kind_field: options.string("rowkind.field"),
            force_compact: options.bool("commit.force-compact")?.unwrap_or(false),
            commit_user_prefix: options.string("commit.user-prefix"),
        })
    }
}
