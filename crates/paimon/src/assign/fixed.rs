//! A fixed number of buckets: a hash of the bucket key decides.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use paimon_format::bucket::BucketFunction;
use paimon_format::row::BinaryRow;

use super::{Assigned, Columns, named_partition};
use crate::error::{Error, Result};
use crate::table::Table;
use crate::write::Partitioned;

/// Buckets by the hash of the bucket key. The bucket count of a partition is that of its files, and else the option's.
///
/// Source: `org.apache.paimon.table.sink.FixedBucketRowKeyExtractor`.
#[derive(Debug)]
pub(crate) struct FixedBuckets {
    table: Table,
    key: Columns,
    function: BucketFunction,
    /// Of partitions without files.
    default_count: i32,
    /// Of the partitions seen so far.
    counts: HashMap<BinaryRow, i32>,
    overwrites: bool,
}

impl FixedBuckets {
    pub(super) fn new(table: &Table, default_count: i32, overwrites: bool) -> Result<Self> {
        let key = Columns::new(table, table.schema().bucket_key()?);
        Ok(Self {
            function: BucketFunction::from_options(table.options(), key.types.clone())?,
            key,
            default_count,
            counts: HashMap::new(),
            overwrites,
            table: table.clone(),
        })
    }

    /// For partitions whose bucket counts are known; rows of others go to one bucket.
    pub(crate) fn given(table: &Table, counts: HashMap<BinaryRow, i32>) -> Result<Self> {
        Ok(Self {
            counts,
            ..Self::new(table, 1, false)?
        })
    }

    pub(super) async fn assign(&mut self, rows: Partitioned) -> Result<Assigned> {
        self.learn_counts(&rows.partitions).await?;
        let buckets = self.buckets(&rows.rows.rows, &rows.of_row, &rows.partitions)?;
        Ok(Assigned { rows, buckets })
    }

    pub(super) fn count(&self, partition: &BinaryRow) -> i32 {
        self.counts.get(partition).copied().unwrap_or(self.default_count)
    }

    pub(super) async fn check_bucket(&mut self, partition: &BinaryRow, bucket: i32) -> Result<()> {
        self.learn_counts(std::slice::from_ref(partition)).await?;
        let count = self.count(partition);
        if bucket < 0 || bucket >= count {
            return Err(Error::invalid(format!(
                "bucket {bucket}: the partition has {count} buckets"
            )));
        }
        Ok(())
    }

    /// The bucket of each row: the count of its partition decides.
    fn buckets(&self, rows: &RecordBatch, of_row: &[usize], partitions: &[BinaryRow]) -> Result<Vec<i32>> {
        let key = self.key.of(rows)?;
        let counts: Vec<i32> = partitions.iter().map(|partition| self.count(partition)).collect();
        let mut distinct = counts.clone();
        distinct.sort_unstable();
        distinct.dedup();
        match distinct.as_slice() {
            [] => Ok(Vec::new()),
            [count] => Ok(self.function.buckets(&key, *count)?),
            several => {
                // Partitions of one batch with different counts are rare: one pass each.
                let mut buckets = vec![0; rows.num_rows()];
                for count in several {
                    let by_count = self.function.buckets(&key, *count)?;
                    for ((bucket, found), partition) in buckets.iter_mut().zip(by_count).zip(of_row) {
                        if counts.get(*partition) == Some(count) {
                            *bucket = found;
                        }
                    }
                }
                Ok(buckets)
            }
        }
    }

    /// The bucket count of a partition is that of its files. One that differs from the option is refused: the partition must be
    /// rescaled first.
    async fn learn_counts(&mut self, partitions: &[BinaryRow]) -> Result<()> {
        let unknown: Vec<&BinaryRow> = partitions
            .iter()
            .filter(|partition| !self.counts.contains_key(*partition))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let live = self.table.files_before(self.overwrites, &unknown).await?;
        for partition in unknown {
            let mut count = self.default_count;
            for bucket in live
                .iter()
                .filter(|bucket| bucket.partition == *partition && bucket.bucket >= 0)
            {
                if bucket.total_buckets != self.default_count {
                    let named = named_partition(&self.table, partition)?;
                    return Err(Error::invalid(format!(
                        "{}: its files are in {} buckets, but the option 'bucket' is {}; rescale it before writing",
                        named.as_deref().unwrap_or("the table"),
                        bucket.total_buckets,
                        self.default_count
                    )));
                }
                count = bucket.total_buckets;
            }
            self.counts.insert(partition.clone(), count);
        }
        Ok(())
    }
}
