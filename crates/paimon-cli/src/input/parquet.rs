//! Parquet files.

use std::io::Read;

use arrow_array::{Array, RecordBatch};
use paimon::format::types::DataField;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;

use super::{BATCH_BYTES, BATCH_ROWS, Input, InputSettings, no_value, take_kinds};
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
    let batch_rows = batch_rows(builder.metadata());
    let batches = builder
        .with_batch_size(batch_rows)
        .build()
        .map_err(|error| wrong(&error))?;
    let mut row = 1;
    let batches = batches.map(move |batch| {
        let batch = batch.map_err(|error| CliError::usage(format!("{label}: {error}")))?;
        let rows: Vec<usize> = (row..row + batch.num_rows()).collect();
        row += batch.num_rows();
        check_not_null(&label, &rows, &batch, &settings.fields)?;
        take_kinds(&label, &rows, batch, &settings)
    });
    Ok(Box::new(batches))
}

/// Errors: `Input` for the first null of a column that is NOT NULL. `numbers` are those of the rows.
fn check_not_null(label: &str, numbers: &[usize], batch: &RecordBatch, fields: &[DataField]) -> Result<(), CliError> {
    for field in fields.iter().filter(|field| !field.data_type.nullable) {
        let nulls = batch
            .column_by_name(&field.name)
            .and_then(|column| column.logical_nulls());
        let Some(nulls) = nulls else { continue };
        if let Some((_, &line)) = nulls.iter().zip(numbers).find(|(valid, _)| !valid) {
            return Err(CliError::Input {
                input: label.to_owned(),
                line,
                message: no_value(field),
            });
        }
    }
    Ok(())
}

/// Rows whose values, as they are stored without compression, fit a batch; by the row group with the widest ones.
fn batch_rows(metadata: &ParquetMetaData) -> usize {
    let widths = metadata
        .row_groups()
        .iter()
        .map(|group| group.total_byte_size() / group.num_rows().max(1));
    let width = usize::try_from(widths.max().unwrap_or(0)).unwrap_or(0);
    (BATCH_BYTES / width.max(1)).clamp(1, BATCH_ROWS)
}
