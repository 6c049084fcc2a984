//! Buckets in numbers.

use paimon_format::row::BinaryRow;

use super::plan::BucketFiles;

/// What a bucket holds, summed up.
///
/// Source: `org.apache.paimon.manifest.BucketEntry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketEntry {
    /// The partition's values.
    pub partition: BinaryRow,
    /// The bucket.
    pub bucket: i32,
    /// The bucket count of the partition.
    pub total_buckets: i32,
    /// Physical rows, over all levels.
    pub record_count: i64,
    /// Bytes.
    pub file_size: i64,
    /// Data files.
    pub file_count: usize,
    /// When its newest file was written: local wall clock as if it were UTC, milliseconds.
    pub last_file_creation_ms: Option<i64>,
}

impl From<&BucketFiles> for BucketEntry {
    fn from(bucket: &BucketFiles) -> Self {
        Self {
            partition: bucket.partition.clone(),
            bucket: bucket.bucket,
            total_buckets: bucket.total_buckets,
            record_count: bucket.files.iter().map(|file| file.row_count).sum(),
            file_size: bucket.files.iter().map(|file| file.file_size).sum(),
            file_count: bucket.files.len(),
            last_file_creation_ms: bucket.files.iter().filter_map(|file| file.creation_time_ms).max(),
        }
    }
}
