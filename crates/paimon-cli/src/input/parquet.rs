//! Parquet files.

use std::io::Read;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{BATCH_ROWS, Input, InputSettings, take_kinds};
use crate::error::CliError;

/// Reads a Parquet file whole into memory (its footer is at the end, and the input may be a pipe), then its rows by batches.
pub(super) fn open(
    label: String,
    mut reader: Box<dyn Read + Send>,
    settings: InputSettings,
) -> Result<Input, CliError> {
    let mut bytes = Vec::new();
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::file(&label, error))?;
    let wrong = |error: &dyn std::fmt::Display| CliError::usage(format!("{label}: no Parquet file: {error}"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).map_err(|error| wrong(&error))?;
    let batches = builder
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| wrong(&error))?;
    let mut row = 1;
    let batches = batches.map(move |batch| {
        let batch = batch.map_err(|error| CliError::usage(format!("{label}: {error}")))?;
        let rows: Vec<usize> = (row..row + batch.num_rows()).collect();
        row += batch.num_rows();
        take_kinds(&label, &rows, batch, &settings)
    });
    Ok(Box::new(batches))
}
