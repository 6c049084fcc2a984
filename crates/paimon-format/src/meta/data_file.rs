//! `DataFileMeta`: what is known about a data file without opening it.

use crate::row::BinaryRow;

/// Why a data file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSource {
    /// Flushed by a writer (0 in manifests); changelog files too.
    Append,
    /// Written by a compaction (1).
    Compact,
}

/// Column statistics: one entry a covered column, in order.
///
/// Source: `org.apache.paimon.stats.SimpleStats`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct SimpleStats {
    /// Lower bounds; null: unknown, or no value that is not null.
    pub min_values: BinaryRow,
    /// Upper bounds; null as above.
    pub max_values: BinaryRow,
    /// Nulls a column; `None`: unknown.
    pub null_counts: Vec<Option<i64>>,
}

/// A data file or changelog file as manifests describe it. Immutable; shared as `Arc<DataFileMeta>`.
///
/// Source: `org.apache.paimon.io.PojoDataFileMeta`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataFileMeta {
    /// Name only, no directory.
    pub file_name: String,
    /// Exact size in bytes: readers find the footer with it.
    pub file_size: i64,
    /// Physical rows, deletes included.
    pub row_count: i64,
    /// Trimmed primary key of the first row.
    pub min_key: BinaryRow,
    /// Trimmed primary key of the last row.
    pub max_key: BinaryRow,
    /// Statistics of the trimmed primary key's columns.
    pub key_stats: SimpleStats,
    /// Statistics of all columns, or of `value_stats_cols`.
    pub value_stats: SimpleStats,
    /// Smallest `_SEQUENCE_NUMBER`.
    pub min_sequence_number: i64,
    /// Largest `_SEQUENCE_NUMBER`.
    pub max_sequence_number: i64,
    /// The schema it was written with.
    pub schema_id: i64,
    /// LSM level.
    pub level: i32,
    /// Sidecars in the same directory.
    pub extra_files: Vec<String>,
    /// Local wall clock as if it were UTC, in milliseconds since the epoch.
    pub creation_time_ms: Option<i64>,
    /// Rows of kind -U or -D; `None`: unknown (old files).
    pub delete_row_count: Option<i64>,
    /// A small file index, embedded.
    pub embedded_index: Option<Vec<u8>>,
    /// Why it was written; `None`: unknown (old files).
    pub file_source: Option<FileSource>,
    /// Names of the columns that `value_stats` covers; `None`: all columns of the file's schema.
    pub value_stats_cols: Option<Vec<String>>,
    /// The full path when the file is not in its bucket's directory.
    pub external_path: Option<String>,
    /// Row tracking: not used by primary-key tables, kept as it is.
    pub first_row_id: Option<i64>,
    /// Partial-column files: not used by primary-key tables, kept as it is.
    pub write_cols: Option<Vec<String>>,
}

impl DataFileMeta {
    /// The same file on a higher level. Only the level changes.
    pub fn upgrade(&self, level: i32) -> Self {
        Self { level, ..self.clone() }
    }
}
