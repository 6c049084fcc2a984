//! How rows find their bucket.

use paimon_format::FormatError;
use paimon_format::options::Options;

use super::above_zero;

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

/// How dynamic buckets grow.
///
/// Source: `org.apache.paimon.CoreOptions#DYNAMIC_BUCKET_TARGET_ROW_NUM` and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicBucketSettings {
    /// `dynamic-bucket.target-row-num`: a bucket with so many keys is full.
    pub target_rows: u64,
    /// `dynamic-bucket.initial-buckets`: how many buckets of a partition are filled side by side.
    pub initial_buckets: u16,
    /// `dynamic-bucket.max-buckets`, of each partition; `None`: as many as there can be.
    pub max_buckets: Option<u16>,
}

impl DynamicBucketSettings {
    /// From a table's options. Errors: `Invalid` naming the option.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        let bucket_count = |key: &str| match options.int(key)? {
            None => Ok(None),
            Some(count) => match u16::try_from(count) {
                Ok(count) if (1..=MAX_DYNAMIC_BUCKETS).contains(&count) => Ok(Some(count)),
                _ => Err(FormatError::invalid(format!(
                    "option '{key}' = '{count}': expected a number from 1 to {MAX_DYNAMIC_BUCKETS}"
                ))),
            },
        };
        let target_rows = match options.long(TARGET_ROWS)? {
            None => 2_000_000,
            Some(rows) => above_zero(TARGET_ROWS, rows)?,
        };
        let initial_buckets = bucket_count("dynamic-bucket.initial-buckets")?.unwrap_or(1);
        let max_buckets = match options.int(MAX_BUCKETS)? {
            Some(-1) => None,
            _ => bucket_count(MAX_BUCKETS)?,
        };
        if let Some(max) = max_buckets
            && max < initial_buckets
        {
            return Err(FormatError::invalid(format!(
                "option '{MAX_BUCKETS}' = '{max}': a partition begins with {initial_buckets} buckets ('dynamic-bucket.initial-buckets')"
            )));
        }
        Ok(Self {
            target_rows,
            initial_buckets,
            max_buckets,
        })
    }
}

const TARGET_ROWS: &str = "dynamic-bucket.target-row-num";
const MAX_BUCKETS: &str = "dynamic-bucket.max-buckets";

/// Java keeps bucket numbers in a `short`.
pub(crate) const MAX_DYNAMIC_BUCKETS: u16 = i16::MAX as u16;

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[("dynamic-bucket.target-row-num", "0")], "option 'dynamic-bucket.target-row-num' = '0': expected a number above 0")]
    #[case(&[("dynamic-bucket.max-buckets", "0")], "option 'dynamic-bucket.max-buckets' = '0': expected a number from 1 to 32767")]
    #[case(&[("dynamic-bucket.initial-buckets", "-1")], "option 'dynamic-bucket.initial-buckets' = '-1': expected a number from 1 to 32767")]
    #[case(
        &[("dynamic-bucket.max-buckets", "2"), ("dynamic-bucket.initial-buckets", "3")],
        "option 'dynamic-bucket.max-buckets' = '2': a partition begins with 3 buckets ('dynamic-bucket.initial-buckets')"
    )]
    fn illegal_settings_are_named(#[case] options: &[(&str, &str)], #[case] expected: &str) {
        let options = options.iter().copied().collect();
        let error = DynamicBucketSettings::from_options(&options).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
