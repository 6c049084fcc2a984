//! `DataFileMeta`: what is known about a data file without opening it.

use serde::{Deserialize, Serialize};

use crate::row::{BinaryRow, hex};

/// Why a data file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FileSource {
    /// Flushed by a writer (0 in manifests); changelog files too.
    Append,
    /// Written by a compaction (1).
    Compact,
}

impl FileSource {
    /// From the byte of a manifest; `None` for anything but 0 and 1.
    pub fn from_byte(byte: i8) -> Option<Self> {
        match byte {
            0 => Some(Self::Append),
            1 => Some(Self::Compact),
            _ => None,
        }
    }

    /// The byte in manifests.
    pub fn to_byte(self) -> i8 {
        match self {
            Self::Append => 0,
            Self::Compact => 1,
        }
    }
}

/// Column statistics: one entry a covered column, in order.
///
/// Source: `org.apache.paimon.stats.SimpleStats`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
    #[serde(with = "hex::optional")]
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

/// What makes a file the same file: a DELETE entry of a manifest takes away the ADD entry whose identity is equal.
///
/// Partition and bucket, which a manifest entry adds, are not in it. Source: `org.apache.paimon.manifest.FileEntry.Identifier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataFileIdentity<'a> {
    /// The level: an upgraded file is another one.
    pub level: i32,
    /// The name.
    pub file_name: &'a str,
    /// Sidecars, in order.
    pub extra_files: &'a [String],
    /// The embedded index.
    pub embedded_index: Option<&'a [u8]>,
    /// The full path, when it is not in its bucket's directory.
    pub external_path: Option<&'a str>,
}

impl DataFileMeta {
    /// A file of level 0 and schema 0 of which only the name and the size (bytes) are known. What is optional is absent, numbers are 0,
    /// keys and statistics empty.
    pub fn new(file_name: impl Into<String>, file_size: i64) -> Self {
        Self {
            file_name: file_name.into(),
            file_size,
            row_count: 0,
            min_key: BinaryRow::default(),
            max_key: BinaryRow::default(),
            key_stats: SimpleStats::default(),
            value_stats: SimpleStats::default(),
            min_sequence_number: 0,
            max_sequence_number: 0,
            schema_id: 0,
            level: 0,
            extra_files: Vec::new(),
            creation_time_ms: None,
            delete_row_count: None,
            embedded_index: None,
            file_source: None,
            value_stats_cols: None,
            external_path: None,
            first_row_id: None,
            write_cols: None,
        }
    }

    /// The same file on a higher level. Only the level changes.
    pub fn upgrade(&self, level: i32) -> Self {
        Self { level, ..self.clone() }
    }

    /// Its sidecars that the same file had not before.
    pub fn new_extra_files<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a String> {
        let names = self.extra_files.iter();
        names.filter(|name| !before.extra_files.contains(name))
    }

    /// What makes it the same file.
    pub fn identity(&self) -> DataFileIdentity<'_> {
        DataFileIdentity {
            level: self.level,
            file_name: &self.file_name,
            extra_files: &self.extra_files,
            embedded_index: self.embedded_index.as_deref(),
            external_path: self.external_path.as_deref(),
        }
    }

    /// Whether a compaction must count with retracts: an unknown count means yes.
    ///
    /// Source: `org.apache.paimon.mergetree.compact.MergeTreeCompactTask#upgrade`.
    pub fn may_have_deletes(&self) -> bool {
        self.delete_row_count.is_none_or(|count| count > 0)
    }

    /// Whether the planning of splits counts with retracts: an unknown count means no.
    ///
    /// Source: `org.apache.paimon.table.source.MergeTreeSplitGenerator`.
    pub fn has_known_deletes(&self) -> bool {
        self.delete_row_count.is_some_and(|count| count > 0)
    }

    /// Whether it is known that there are no retracts, so that rows can be read without merging: an unknown count means no, and the
    /// reader falls back to merging.
    ///
    /// Source: `org.apache.paimon.operation.RawFileSplitRead`.
    pub fn is_known_without_deletes(&self) -> bool {
        self.delete_row_count == Some(0)
    }
}
