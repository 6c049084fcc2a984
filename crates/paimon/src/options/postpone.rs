//! How many buckets postponed rows get.

use paimon_format::FormatError;
use paimon_format::options::Options;

use super::above_zero;

/// How many buckets a partition gets when a compaction gives its rows buckets for the first time.
///
/// Source: `org.apache.paimon.table.PostponeUtils`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostponeSettings {
    /// `postpone.default-bucket-num`: so many.
    Buckets(i32),
    /// `postpone.target-row-num-per-bucket`: as many as its rows fill.
    RowsPerBucket(u64),
    /// `postpone.target-size-per-bucket`, 1 GiB when nothing is set: as many as the bytes of its waiting files fill.
    BytesPerBucket(u64),
}

impl PostponeSettings {
    /// From a table's options. Errors: `Invalid` naming the option.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        let key = "postpone.default-bucket-num";
        if let Some(count) = options.int(key)? {
            return Ok(Self::Buckets(above_zero(key, i64::from(count))?));
        }
        let key = "postpone.target-row-num-per-bucket";
        if let Some(rows) = options.long(key)? {
            return Ok(Self::RowsPerBucket(above_zero(key, rows)?));
        }
        let key = "postpone.target-size-per-bucket";
        match options.memory_size(key)? {
            Some(0) => Err(FormatError::invalid(format!(
                "option '{key}' = '0': expected a size above 0"
            ))),
            bytes => Ok(Self::BytesPerBucket(bytes.unwrap_or(1 << 30))),
        }
    }

    /// The number of buckets for so many rows in files of so many bytes. Errors: `Invalid` when they are more than there can be.
    pub fn bucket_count(self, rows: u64, bytes: u64) -> Result<i32, FormatError> {
        let (amount, target) = match self {
            Self::Buckets(count) => return Ok(count),
            Self::RowsPerBucket(target) => (rows, target),
            Self::BytesPerBucket(target) => (bytes, target),
        };
        i32::try_from(amount.div_ceil(target).max(1)).map_err(|_| {
            FormatError::invalid(format!(
                "{rows} postponed rows of {bytes} bytes would make more than {} buckets: increase 'postpone.target-row-num-per-bucket' or \
                 'postpone.target-size-per-bucket'",
                i32::MAX
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<PostponeSettings, String> {
        PostponeSettings::from_options(&pairs.iter().copied().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_goes_before_rows_and_rows_before_bytes() {
        let (rows, bytes) = (101, 3 << 30);
        let count = |pairs: &[(&str, &str)]| settings(pairs).unwrap().bucket_count(rows, bytes).unwrap();
        let number = ("postpone.default-bucket-num", "7");
        let by_rows = ("postpone.target-row-num-per-bucket", "50");
        let by_bytes = ("postpone.target-size-per-bucket", "2 gb");
        assert_eq!(count(&[number, by_rows, by_bytes]), 7);
        assert_eq!(count(&[by_rows, by_bytes]), 3);
        assert_eq!(count(&[by_bytes]), 2);
        assert_eq!(count(&[]), 3);
        assert_eq!(settings(&[]).unwrap().bucket_count(0, 0).unwrap(), 1);
    }

    #[test]
    fn illegal_settings_are_named() {
        assert_eq!(
            settings(&[("postpone.default-bucket-num", "0")]).unwrap_err(),
            "option 'postpone.default-bucket-num' = '0': expected a number above 0"
        );
        assert_eq!(
            settings(&[("postpone.target-size-per-bucket", "0 b")]).unwrap_err(),
            "option 'postpone.target-size-per-bucket' = '0': expected a size above 0"
        );
        let one = settings(&[("postpone.target-row-num-per-bucket", "1")]).unwrap();
        let error = one.bucket_count(1 << 40, 0).unwrap_err().to_string();
        assert!(
            error.starts_with("1099511627776 postponed rows of 0 bytes would make more than"),
            "{error}"
        );
    }
}
