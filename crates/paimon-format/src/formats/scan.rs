//! What is read of one data file, whatever its format.

use arrow_array::RecordBatch;
use futures::stream::BoxStream;

use crate::error::FormatError;
use crate::kv::BatchLimit;
use crate::types::{DataField, Datum};

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
    /// Which rows are wanted at all.
    pub bounds: Option<KeyBounds>,
    /// The size of the batches.
    pub batch: BatchLimit,
    /// Bytes of memory for fetched and decoded pages.
    pub window_bytes: usize,
}

/// Bounds of the first key column: a file is sorted by it, so rows outside are a prefix and a suffix. Rows outside may still come.
#[derive(Clone, Debug)]
pub struct KeyBounds {
    /// Position in [`FileScan::fields`].
    pub column: usize,
    /// Smallest value wanted.
    pub min: Option<Datum>,
    /// Largest value wanted.
    pub max: Option<Datum>,
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
