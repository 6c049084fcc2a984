//! What a bucket's writer hands to a committer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::meta::DataFileMeta;
use crate::row::{BinaryRow, hex};

/// Index files of dynamic buckets: the hashes of the keys in a bucket.
pub const HASH_INDEX: &str = "HASH";
/// Index files that hold a bucket's deletion vectors.
pub const DELETION_VECTORS_INDEX: &str = "DELETION_VECTORS";

/// Where one data file's deletion vector lies in an index file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DeletionVectorRange {
    /// The data file.
    pub data_file_name: String,
    /// Position of the vector's record in the index file, bytes.
    pub offset: i32,
    /// Its length, bytes, as the vector's version counts it.
    pub length: i32,
    /// Rows deleted; `None`: unknown.
    pub cardinality: Option<i64>,
}

/// Where a global index belongs: carried through unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GlobalIndexMeta {
    /// First row.
    pub row_range_start: i64,
    /// Last row.
    pub row_range_end: i64,
    /// The indexed field.
    pub index_field_id: i32,
    /// Further indexed fields.
    pub extra_field_ids: Option<Vec<i32>>,
    /// Opaque.
    #[serde(with = "hex::optional")]
    pub index_meta: Option<Vec<u8>>,
    /// Opaque; since 2.0.0.
    #[serde(with = "hex::optional")]
    pub source_meta: Option<Vec<u8>>,
}

/// An index file: `HASH`, `DELETION_VECTORS`, or one that is carried through unchanged.
///
/// Source: `org.apache.paimon.index.IndexFileMeta`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct IndexFileMeta {
    /// `HASH`, `DELETION_VECTORS`, or another engine's.
    pub index_type: String,
    /// Name only.
    pub file_name: String,
    /// Bytes.
    pub file_size: i64,
    /// Hashes or vectors in it.
    pub row_count: i64,
    /// The vectors in it, in file order.
    pub dv_ranges: Option<Vec<DeletionVectorRange>>,
    /// The full path when it is not in the index directory.
    pub external_path: Option<String>,
    /// For global indexes.
    pub global_index: Option<GlobalIndexMeta>,
}

/// Files of one append: what a flush made.
///
/// Source: `org.apache.paimon.io.DataIncrement`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataIncrement {
    /// New data files.
    pub new_files: Vec<Arc<DataFileMeta>>,
    /// Data files taken away.
    pub deleted_files: Vec<Arc<DataFileMeta>>,
    /// New changelog files.
    pub changelog_files: Vec<Arc<DataFileMeta>>,
    /// New index files.
    pub new_index_files: Vec<IndexFileMeta>,
    /// Index files taken away.
    pub deleted_index_files: Vec<IndexFileMeta>,
}

/// Files of one or more compactions.
///
/// Source: `org.apache.paimon.io.CompactIncrement`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactIncrement {
    /// Files merged or upgraded, as they were.
    pub compact_before: Vec<Arc<DataFileMeta>>,
    /// Files that take their place.
    pub compact_after: Vec<Arc<DataFileMeta>>,
    /// New changelog files.
    pub changelog_files: Vec<Arc<DataFileMeta>>,
    /// New index files.
    pub new_index_files: Vec<IndexFileMeta>,
    /// Index files taken away.
    pub deleted_index_files: Vec<IndexFileMeta>,
    /// The names of all files that the bucket then has above level 0, where old rows were looked up and which say what deletes may be dropped: with
    /// other ones the compactions are void. `None`: not known, as for a message from Java's bytes, which do not have it.
    #[serde(default)]
    pub upper_files: Option<Vec<String>>,
}

/// Both increments of one bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitIncrement {
    /// What flushes made.
    pub data: DataIncrement,
    /// What compactions made.
    pub compact: CompactIncrement,
}

/// What one bucket's writer hands to the committer; serialises to Java's bytes.
///
/// Source: `org.apache.paimon.table.sink.CommitMessageImpl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitMessage {
    /// The partition's values.
    pub partition: BinaryRow,
    /// The bucket; -2 for postponed rows.
    pub bucket: i32,
    /// The bucket count that the writer used; `None`: the option's.
    pub total_buckets: Option<i32>,
    /// The files.
    pub increment: CommitIncrement,
}

impl DataIncrement {
    /// Whether it holds no file at all.
    pub fn is_empty(&self) -> bool {
        self.new_files.is_empty()
            && self.deleted_files.is_empty()
            && self.changelog_files.is_empty()
            && self.new_index_files.is_empty()
            && self.deleted_index_files.is_empty()
    }
}

impl CompactIncrement {
    /// Whether it holds no file at all.
    pub fn is_empty(&self) -> bool {
        self.compact_before.is_empty()
            && self.compact_after.is_empty()
            && self.changelog_files.is_empty()
            && self.new_index_files.is_empty()
            && self.deleted_index_files.is_empty()
    }
}

impl CommitIncrement {
    /// Whether it holds no file at all.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty() && self.compact.is_empty()
    }
}

impl CommitMessage {
    /// A message of the same bucket with a part of the files: those that `take` takes of the increment.
    #[must_use]
    pub fn part(&self, take: impl FnOnce(&CommitIncrement) -> CommitIncrement) -> Self {
        Self {
            partition: self.partition.clone(),
            bucket: self.bucket,
            total_buckets: self.total_buckets,
            increment: take(&self.increment),
        }
    }
}
