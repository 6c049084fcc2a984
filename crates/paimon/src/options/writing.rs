//! What happens to rows before they reach a bucket, and who commits them.

use paimon_format::FormatError;
use paimon_format::options::Options;

/// Settings of a table's writer that its buckets do not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowSettings {
    /// `ignore-delete`: -D and -U rows are dropped.
    pub ignore_delete: bool,
    /// `ignore-update-before`: -U rows are dropped.
    pub ignore_update_before: bool,
    /// `rowkind.field`: the column that says what a row is.
    pub row_kind_field: Option<String>,
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
            commit_user_prefix: options.string("commit.user-prefix"),
        })
    }
}
