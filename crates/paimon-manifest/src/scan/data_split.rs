//! Splits with all that a reader needs to know.

use std::sync::Arc;

use paimon_format::meta::{DataFileMeta, IndexFileMeta};
use paimon_format::row::{BinaryRow, KeyComparator};

use super::plan::{BucketFiles, DeletionFile, ScanPlan, index_files};
use super::splits::{SplitSettings, split_for_batch};
use crate::error::Result;

/// Files of one bucket that one reader reads together.
///
/// Source: `org.apache.paimon.table.source.DataSplit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSplit {
    /// The snapshot.
    pub snapshot_id: i64,
    /// The partition's values.
    pub partition: BinaryRow,
    /// The bucket.
    pub bucket: i32,
    /// The bucket count of the partition.
    pub total_buckets: i32,
    /// The files.
    pub files: Vec<Arc<DataFileMeta>>,
    /// One a file: its deletion vector, if it has one.
    pub deletion_files: Vec<Option<DeletionFile>>,
    /// Each file may be read as it is, without merging.
    pub raw_convertible: bool,
}

impl DataSplit {
    /// Rows that come out of it, if that is known without reading: nothing to merge, no retracts, deletion vectors that are counted.
    pub fn merged_row_count(&self) -> Option<i64> {
        if !self.raw_convertible {
            return None;
        }
        self.files
            .iter()
            .zip(&self.deletion_files)
            .map(|(file, deletion)| {
                let deleted = match deletion {
                    None => Some(0),
                    Some(deletion) => deletion.range.cardinality,
                };
                (file.is_known_without_deletes()).then_some(file.row_count - deleted?)
            })
            .sum()
    }

    /// The index files that hold the deletion vectors of its files.
    pub fn deletion_index_files(&self) -> Vec<Arc<IndexFileMeta>> {
        index_files(self.deletion_files.iter().flatten())
    }
}

impl ScanPlan {
    /// Cuts the plan for a batch read. Errors: `Corrupt` when a file's key is no key of the table.
    pub fn splits(&self, settings: &SplitSettings, keys: &KeyComparator) -> Result<Vec<DataSplit>> {
        let mut splits = Vec::new();
        for bucket in &self.buckets {
            splits.extend(bucket.splits(self.snapshot_id, settings, keys)?);
        }
        Ok(splits)
    }
}

impl BucketFiles {
    fn splits(&self, snapshot_id: i64, settings: &SplitSettings, keys: &KeyComparator) -> Result<Vec<DataSplit>> {
        let splits = split_for_batch(&self.files, settings, keys)?;
        Ok(splits
            .into_iter()
            .map(|split| DataSplit {
                snapshot_id,
                partition: self.partition.clone(),
                bucket: self.bucket,
                total_buckets: self.total_buckets,
                deletion_files: split
                    .files
                    .iter()
                    .map(|file| self.deletion_files.get(&file.file_name).cloned())
                    .collect(),
                files: split.files,
                raw_convertible: split.raw_convertible,
            })
            .collect())
    }
}

/// As many splits as surely hold `limit` rows, taken from those whose row count is known; all of them when these do not suffice.
/// Not for reads with a filter.
///
/// Source: `org.apache.paimon.table.source.DataTableBatchScan#applyPushDownLimit`.
pub fn limit_splits(splits: Vec<DataSplit>, limit: u64) -> Vec<DataSplit> {
    let mut rows = 0_u64;
    let mut enough = Vec::new();
    for split in &splits {
        if rows >= limit {
            break;
        }
        if let Some(count) = split.merged_row_count() {
            rows = rows.saturating_add(count.max(0) as u64);
            enough.push(split.clone());
        }
    }
    if rows >= limit { enough } else { splits }
}
