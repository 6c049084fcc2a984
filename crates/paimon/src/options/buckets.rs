//! How rows find their bucket.

use paimon_format::FormatError;
use paimon_format::options::Options;

/// How rows find their bucket: the option `bucket`.
///
/// Source: `org.apache.paimon.table.BucketMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BucketMode {
    /// `bucket = n`: by a hash of the bucket key.
    Fixed(i32),
    /// `bucket = -1`: an index says which bucket a key is in; new buckets are opened as data grows.
    Dynamic,
    /// `bucket = -2`: rows wait in no bucket until a compaction gives them one.
    Postpone,
}

impl BucketMode {
    /// From a table's options. Errors: `Invalid` for a number that is no bucket count.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        match options.int("bucket")?.unwrap_or(-1) {
            -2 => Ok(Self::Postpone),
            -1 => Ok(Self::Dynamic),
            count if count > 0 => Ok(Self::Fixed(count)),
            other => Err(FormatError::invalid(format!(
                "option 'bucket' = '{other}': expected a number above 0, -1 (dynamic) or -2 (postpone)"
            ))),
        }
    }
}
