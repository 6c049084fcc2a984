//! Comma-separated values.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_csv::ReaderBuilder;
use arrow_schema::{DataType, Field, Schema};
use paimon::format::types::{Datum, array_from_datums};

use super::{BATCH_ROWS, Input, InputBatch, InputSettings, take_kinds};
use crate::error::CliError;

/// Reads values with a header line; columns are matched by name.
pub(super) fn open(label: String, reader: Box<dyn Read + Send>, settings: InputSettings) -> Result<Input, CliError> {
    let mut reader = BufReader::new(reader);
    let mut header = String::new();
    reader
        .read_line(&mut header)
        .map_err(|error| CliError::file(&label, error))?;
    let names = header_names(&header, settings.delimiter)?;
    let text = |name: &String| Field::new(name, DataType::Utf8, true);
    let schema = Arc::new(Schema::new(names.iter().map(text).collect::<Vec<_>>()));
    let batches = ReaderBuilder::new(schema)
        .with_delimiter(settings.delimiter)
        .with_batch_size(BATCH_ROWS)
        .build(reader)?;
    // The header is line 1.
    let mut line = 2;
    let batches = batches.map(move |batch| {
        let batch = batch.map_err(|error| CliError::Input {
            input: label.clone(),
            line,
            message: error.to_string(),
        })?;
        let first_line = line;
        line += batch.num_rows();
        let (batch, kinds) = take_kinds(&label, first_line, batch, &settings)?;
        let batch = typed(&label, first_line, &batch, &settings)?;
        Ok::<InputBatch, CliError>((batch, kinds))
    });
    Ok(Box::new(batches))
}

/// The names of a header line.
fn header_names(header: &str, delimiter: u8) -> Result<Vec<String>, CliError> {
    let format = arrow_csv::reader::Format::default()
        .with_delimiter(delimiter)
        .with_header(true);
    let (schema, _) = format.infer_schema(header.as_bytes(), Some(0))?;
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// Texts as the table's types; columns that the table does not have stay, to be refused by name.
fn typed(
    label: &str,
    first_line: usize,
    batch: &RecordBatch,
    settings: &InputSettings,
) -> Result<RecordBatch, CliError> {
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (given, texts) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let column: ArrayRef = match settings.fields.iter().find(|field| field.name == *given.name()) {
            None => Arc::clone(texts),
            Some(field) => {
                let mut values = Vec::with_capacity(texts.len());
                for (row, text) in texts.as_string::<i32>().iter().enumerate() {
                    let text = text.unwrap_or_default();
                    values.push(if text == settings.null {
                        Datum::Null
                    } else {
                        Datum::parse(text, &field.data_type).map_err(|error| CliError::Input {
                            input: label.to_owned(),
                            line: first_line + row,
                            message: format!("column {}: {error}", field.name),
                        })?
                    });
                }
                array_from_datums(field, &values)?
            }
        };
        fields.push(Field::new(given.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
