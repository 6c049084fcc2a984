//! What is read of one data file, whatever its format.

use std::sync::Arc;

use arrow_array::RecordBatch;
use futures::stream::BoxStream;

use crate::env::Env;
use crate::error::FormatError;
use crate::kv::{BatchLimit, FileFormat, PageCache};
use crate::predicate::Predicate;
use crate::storage::Storage;
use crate::types::DataField;

/// A read of one file.
#[derive(Clone, Debug)]
pub struct FileScan {
    /// Where it is, relative to the storage's root.
    pub path: String,
    /// Its exact size in bytes.
    pub file_size: u64,
    /// The columns wanted, as the schema that the file was written with has them. They are found by name; a nullable one that the
    /// file lacks is all null.
    pub fields: Vec<DataField>,
    /// What rows must pass to be wanted at all, about columns by their names in `fields`. What the file's statistics refute is not read;
    /// most rows that do not pass still come.
    pub filter: Option<Predicate>,
    /// The size of the batches.
    pub batch: BatchLimit,
    /// Bytes of memory for fetched and decoded pages.
    pub window_bytes: usize,
    /// Shares pages with other reads.
    pub page_cache: Option<PageCache>,
}

/// Consecutive rows of a file.
#[derive(Clone, Debug)]
pub struct FileRows {
    /// The position in the file of the first row.
    pub first_row: u64,
    /// The columns of [`FileScan::fields`], in that order.
    pub columns: RecordBatch,
}

/// What a file's rows were made into, in file order.
pub type RowsStream<T> = BoxStream<'static, Result<T, FormatError>>;

/// The rows of a file of any format, each batch made into something else on the CPU pool by `finish` (`None`: nothing of it is
/// wanted). Errors are those of the format's own `scan`; `Unsupported` when the format is not built in.
pub(crate) fn scan_file<T, F>(
    format: FileFormat,
    storage: Arc<dyn Storage>,
    env: Env,
    scan: FileScan,
    finish: F,
) -> RowsStream<T>
where
    T: Send + 'static,
    F: Fn(FileRows) -> Result<Option<T>, FormatError> + Send + Sync + 'static,
{
    match format {
        #[cfg(feature = "parquet")]
        FileFormat::Parquet => super::parquet::scan(storage, env, scan, finish),
        #[cfg(feature = "avro")]
        FileFormat::Avro => super::avro::scan(storage, env, scan, finish),
        #[cfg(feature = "orc")]
        FileFormat::Orc => super::orc::scan(storage, env, scan, finish),
        #[cfg(not(all(feature = "parquet", feature = "avro", feature = "orc")))]
        other => {
            let _ = (storage, env, finish);
            let message = format!("{}: reading {other} files: built without that format", scan.path);
            Box::pin(futures::stream::iter([Err(FormatError::unsupported(message))]))
        }
    }
}
