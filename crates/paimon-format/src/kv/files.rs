//! The files of one bucket: how they are read and written.

use std::fmt::{self, Debug};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::dv::DeletionVector;
use crate::error::FormatError;
use crate::kv::{KvBatch, KvSchema, PageCache};
use crate::meta::{DataFileMeta, FileSource};
use crate::predicate::Predicate;
use crate::types::Datum;

/// A data file's format, taken from the last extension of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileFormat {
    /// `.parquet`
    Parquet,
    /// `.avro`
    Avro,
    /// `.orc`
    Orc,
}

impl FileFormat {
    /// From an option's text or a file name's extension, upper or lower case.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "parquet" => Some(Self::Parquet),
            "avro" => Some(Self::Avro),
            "orc" => Some(Self::Orc),
            _ => None,
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "parquet",
            Self::Avro => "avro",
            Self::Orc => "orc",
        })
    }
}

/// How large a decoded batch may be. Both limits hold: 8 K rows of 8 MiB overflow memory and 32-bit offsets alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimit {
    /// Rows.
    pub rows: usize,
    /// Bytes in memory, roughly; one row may exceed it.
    pub bytes: usize,
}

impl Default for BatchLimit {
    fn default() -> Self {
        Self {
            rows: 8192,
            bytes: 8 << 20,
        }
    }
}

/// A closed range of keys: one datum a key field; `None` is unbounded. Prunes row groups and pages: rows outside may still come.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// Smallest key wanted.
    pub min: Option<Vec<Datum>>,
    /// Largest key wanted.
    pub max: Option<Vec<Datum>>,
}

/// What a read of a file needs.
#[derive(Clone, Debug)]
pub struct ReadSpec {
    /// Columns wanted, key and sequence columns always among them. The file's own schema may be older: columns are matched by
    /// field id, widened by cast, and null where the file has none.
    pub schema: Arc<KvSchema>,
    /// Keys wanted.
    pub keys: KeyRange,
    /// What rows must pass to be wanted, about columns of `schema`. Rows may be left out that the file's statistics refute; most rows that
    /// do not pass still come. Only for rows that no merge can change: without the newest version of a key an older one would come back.
    pub filter: Option<Arc<Predicate>>,
    /// Row positions that a deletion vector hides; those rows never come out.
    pub deleted: Option<Arc<DeletionVector>>,
    /// Record-level expire: rows whose time field is before this second never come out.
    pub expired_before: Option<ExpiredBefore>,
    /// Whether batches carry positions.
    pub positions: bool,
    /// The size of the batches.
    pub batch: BatchLimit,
    /// Bytes of memory for fetched and decoded pages of this one file at a time.
    pub window_bytes: usize,
    /// Shares pages with other reads.
    pub page_cache: Option<PageCache>,
}

impl ReadSpec {
    /// All rows with these columns, in batches and windows of 8 K rows and 8 MiB.
    pub fn all(schema: Arc<KvSchema>) -> Self {
        Self {
            schema,
            keys: KeyRange::default(),
            filter: None,
            deleted: None,
            expired_before: None,
            positions: false,
            batch: BatchLimit::default(),
            window_bytes: 8 << 20,
            page_cache: None,
        }
    }
}

/// Record-level expire: which column, and the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiredBefore {
    /// Position in [`KvSchema::fields`] of `record-level.time-field`.
    pub column: usize,
    /// A row is kept if its time is null or not before this, in seconds since the epoch.
    pub seconds: i64,
}

/// The batches of one file, in file order.
pub type KvStream = BoxStream<'static, Result<KvBatch, FormatError>>;

/// The files of one bucket: how they are opened and made. `TableKvFiles` is the built-in one.
#[async_trait]
pub trait KvFiles: Debug + Send + Sync {
    /// Opens a file of this bucket. Nothing is read before the stream is polled.
    ///
    /// Errors (in the stream) name the file: `NotFound`, `Unavailable`, `Corrupt`, `Unsupported`.
    fn open(&self, file: &DataFileMeta, read: ReadSpec) -> KvStream;

    /// The format that [`data_sink`](Self::data_sink) would write: a changed format forbids an upgrade by metadata.
    fn format(&self, level: i32) -> FileFormat;

    /// A new data file, or several, on `level`.
    fn data_sink(&self, level: i32, source: FileSource) -> Box<dyn BatchSink>;

    /// A new changelog file, or several, for `level`.
    fn changelog_sink(&self, level: i32) -> Box<dyn BatchSink>;

    /// Removes a file that no snapshot can name (an aborted or superseded output), with its sidecars.
    async fn delete(&self, file: &DataFileMeta) -> Result<(), FormatError>;

    /// Removes one sidecar of a file that stays: no snapshot can name it. One that is not there is no error.
    async fn delete_extra(&self, file: &DataFileMeta, name: &str) -> Result<(), FormatError>;
}

/// Takes batches in key order and rolls files at the target size. After `abort` none of its files is left.
#[async_trait]
pub trait BatchSink: Send {
    /// Appends records, keys not descending.
    async fn write(&mut self, batch: &KvBatch) -> Result<(), FormatError>;
    /// Ends the last file. No records: no file, an empty list.
    async fn finish(self: Box<Self>) -> Result<Vec<DataFileMeta>, FormatError>;
    /// Deletes all files of this sink, the finished ones too.
    async fn abort(self: Box<Self>);
}
