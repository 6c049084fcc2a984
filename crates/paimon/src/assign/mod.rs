//! Which partition and bucket each row goes to.
//!
//! | `bucket` | Who decides |
//! |---|---|
//! | above 0 | `FixedBuckets`: a hash of the bucket key, by the bucket count of the partition |
//! | -1 | `HashBucketAssigner`: an index of key hashes a partition, kept in index files beside the data |
//! | -2 | nobody yet: a compaction will |
//! | -1, and the primary key has not all partition columns | `GlobalIndexAssigner`: an index of all keys of the table, made anew from its rows with the first row of a writer; a key that is in another partition is moved, or stays there |

mod columns;
mod fixed;
mod global_index;
mod hash_index;
mod key_index;
mod partition_index;

use std::collections::{BTreeMap, HashMap, HashSet};

use paimon_format::meta::{IndexFileMeta, POSTPONE_BUCKET};
use paimon_format::row::BinaryRow;

pub(crate) use columns::Columns;
pub(crate) use fixed::FixedBuckets;
use global_index::GlobalIndexAssigner;
use hash_index::HashBucketAssigner;
pub(crate) use hash_index::hash_index_file;

use crate::error::{Error, Result};
use crate::options::{BucketMode, PostponeSettings};
use crate::table::Table;
use crate::write::Partitioned;

/// The bucket count in the metadata of files in dynamic buckets.
const DYNAMIC_BUCKET_COUNT: i32 = -1;

/// Rows with the places where they go.
#[derive(Debug)]
pub(crate) struct Assigned {
    /// The rows, with their partitions.
    pub(crate) rows: Partitioned,
    /// The bucket of each row.
    pub(crate) buckets: Vec<i32>,
}

/// A bucket's new index of key hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewHashIndex {
    /// What was written.
    pub(crate) file: IndexFileMeta,
    /// What it takes the place of.
    pub(crate) replaces: Option<IndexFileMeta>,
}

/// By partition bytes and bucket.
pub(crate) type NewHashIndexes = BTreeMap<(Vec<u8>, i32), NewHashIndex>;

/// A partition as errors name it, `partition dt=2024-01-01`; `None` in a table without partitions.
///
/// Errors: `Corrupt`, `Invalid` when the row is no partition of the table.
pub(crate) fn named_partition(table: &Table, partition: &BinaryRow) -> Result<Option<String>> {
    let path = table.paths().partition(partition)?;
    Ok((!path.is_empty()).then(|| format!("partition {path}")))
}

/// Says which bucket each row goes to. One writer owns it.
#[derive(Debug)]
pub(crate) enum BucketAssigner {
    Fixed(FixedBuckets),
    Hash(HashBucketAssigner),
    Global(GlobalIndexAssigner),
    Postpone,
}

impl BucketAssigner {
    /// For a writer of a table; with `overwrites` what is there counts for nothing.
    ///
    /// Errors: `Invalid`, `Unsupported`, naming the option.
    pub(crate) fn new(table: &Table, overwrites: bool) -> Result<Self> {
        match BucketMode::from_options(table.options())? {
            BucketMode::Fixed(count) => Ok(Self::Fixed(FixedBuckets::new(table, count, overwrites)?)),
            BucketMode::Dynamic if table.schema().cross_partition_update() => {
                if overwrites {
                    return Err(Error::unsupported(
                        "overwriting a table whose primary key has not all partition columns: its keys may be in partitions that are \
                         not written",
                    ));
                }
                Ok(Self::Global(GlobalIndexAssigner::new(table)?))
            }
            BucketMode::Dynamic => Ok(Self::Hash(HashBucketAssigner::new(table, overwrites)?)),
            BucketMode::Postpone => {
                // What a compaction will need.
                PostponeSettings::from_options(table.options())?;
                FixedBuckets::given(table, HashMap::new())?;
                Ok(Self::Postpone)
            }
        }
    }

    /// The place of each row. May read the table's metadata or rows, the first time that it sees a partition.
    pub(crate) async fn assign(&mut self, rows: Partitioned) -> Result<Assigned> {
        match self {
            Self::Fixed(fixed) => fixed.assign(rows).await,
            Self::Hash(hash) => hash.assign(rows).await,
            Self::Global(global) => global.assign(rows).await,
            Self::Postpone => Ok(Assigned {
                buckets: vec![POSTPONE_BUCKET; rows.of_row.len()],
                rows,
            }),
        }
    }

    /// The bucket count that the metadata of a partition's files has.
    pub(crate) fn total_buckets(&self, partition: &BinaryRow) -> i32 {
        match self {
            Self::Fixed(fixed) => fixed.count(partition),
            Self::Hash(_) | Self::Global(_) => DYNAMIC_BUCKET_COUNT,
            Self::Postpone => POSTPONE_BUCKET,
        }
    }

    /// Errors: `Invalid` when there cannot be such a bucket.
    pub(crate) async fn check_bucket(&mut self, partition: &BinaryRow, bucket: i32) -> Result<()> {
        match self {
            Self::Fixed(fixed) => fixed.check_bucket(partition, bucket).await,
            Self::Hash(_) | Self::Global(_) if bucket < 0 => {
                Err(Error::invalid(format!("bucket {bucket}: buckets are numbered from 0")))
            }
            Self::Hash(_) | Self::Global(_) => Ok(()),
            Self::Postpone => Err(Error::invalid(
                "a writer of a table with 'bucket' = '-2' compacts nothing: a compaction of the table does",
            )),
        }
    }

    /// Writes the index files of the buckets that have got new keys since the last call.
    pub(crate) async fn prepare_commit(&mut self) -> Result<NewHashIndexes> {
        match self {
            Self::Hash(hash) => hash.prepare_commit().await,
            Self::Fixed(_) | Self::Global(_) | Self::Postpone => Ok(BTreeMap::new()),
        }
    }

    /// Forgets what it knows of other partitions than these: all that was assigned must be committed.
    pub(crate) fn retain(&mut self, partitions: &HashSet<Vec<u8>>) {
        if let Self::Hash(hash) = self {
            hash.retain(partitions);
        }
    }
}
