//! Rows to write: from JSON lines, CSV or Parquet.

mod csv;
mod json_lines;
mod numbers;
mod parquet;

use std::io::BufReader;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::{Int8Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use clap::ValueEnum;
use paimon::format::env::Env;
use paimon::format::types::{DataField, RowKind};

use crate::error::CliError;
use crate::output::Console;

pub(crate) use json_lines::JsonLines;

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Bytes of input that end a batch earlier: what a batch takes is a small multiple of them, or of one row that is wider.
const BATCH_BYTES: usize = 2 << 20;

/// What an input is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// One JSON object a line, or an array `[kind, value, …]`
    Json,
    /// Comma-separated values with a header line
    Csv,
    /// Apache Parquet
    Parquet,
}

impl InputFormat {
    /// By the extension of a name; JSON without a known one.
    pub(crate) fn of_name(name: &str) -> Self {
        match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Self::Csv,
            Some("parquet" | "pq") => Self::Parquet,
            _ => Self::Json,
        }
    }
}

/// How rows are read.
#[derive(Clone, Debug)]
pub(crate) struct InputSettings {
    /// The table's columns.
    pub(crate) fields: Vec<DataField>,
    /// The input's column that holds `+I`, `-U`, `+U` or `-D`.
    pub(crate) kind_field: Option<String>,
    /// CSV: the text that stands for null.
    pub(crate) null: String,
    /// CSV: the separator.
    pub(crate) delimiter: u8,
}

/// Rows with their kinds; `None`: the table decides (all +I, or its `rowkind.field`).
pub(crate) type InputBatch = (RecordBatch, Option<Int8Array>);

/// The batches of an input.
pub(crate) type Input = Box<dyn Iterator<Item = Result<InputBatch, CliError>> + Send>;

/// Opens a file, or the console's input for `-`.
///
/// Errors: `File` when it cannot be read. Rows that do not fit come as errors of the batches.
pub(crate) fn open(
    name: &str,
    format: InputFormat,
    settings: InputSettings,
    console: &mut Console,
) -> Result<Input, CliError> {
    let (label, reader): (String, Box<dyn std::io::Read + Send>) = if name == "-" {
        let input = std::mem::replace(&mut console.input, Box::new(std::io::empty()));
        ("standard input".to_owned(), input)
    } else {
        let file = std::fs::File::open(name).map_err(|error| CliError::file(name, error))?;
        (name.to_owned(), Box::new(file))
    };
    Ok(match format {
        InputFormat::Json => Box::new(JsonLines::new(label, BufReader::new(reader), settings)),
        InputFormat::Csv => csv::open(label, reader, settings)?,
        InputFormat::Parquet => parquet::open(label, reader, settings)?,
    })
}

/// The next batch, read off the async threads; the input is given back. `None`: its end.
///
/// Errors: those of the batch.
pub(crate) async fn next_batch(env: &Env, mut input: Input) -> Result<Option<(InputBatch, Input)>, CliError> {
    let read = env.blocking(move || input.next().map(|batch| (batch, input)));
    match read.await? {
        Some((batch, input)) => Ok(Some((batch?, input))),
        None => Ok(None),
    }
}

/// What is wrong with a row without a value of a column that is NOT NULL.
fn no_value(field: &DataField) -> String {
    format!("column {} is NOT NULL, but has no value", field.name)
}

/// Takes the kind column out of a batch, unless it is a column of the table too. `lines` are those of its rows.
fn take_kinds(
    label: &str,
    lines: &[usize],
    mut batch: RecordBatch,
    settings: &InputSettings,
) -> Result<InputBatch, CliError> {
    let Some(name) = &settings.kind_field else {
        return Ok((batch, None));
    };
    let Ok(position) = batch.schema_ref().index_of(name) else {
        return Err(CliError::usage(format!(
            "{label}: there is no column {name} (--kind-field)"
        )));
    };
    let texts = cast(batch.column(position), &DataType::Utf8)?;
    let mut kinds = Vec::with_capacity(texts.len());
    for (text, &line) in texts.as_string::<i32>().iter().zip(lines) {
        kinds.push(kind(text).map_err(|message| CliError::Input {
            input: label.to_owned(),
            line,
            message: format!("column {name}: {message}"),
        })?);
    }
    if !settings.fields.iter().any(|field| field.name == *name) {
        batch.remove_column(position);
    }
    Ok((batch, Some(Int8Array::from(kinds))))
}

/// The byte of a kind's text.
fn kind(text: Option<&str>) -> Result<i8, String> {
    match text.and_then(RowKind::from_short_string) {
        Some(kind) => Ok(kind as i8),
        None => Err(format!(
            "expected +I, -U, +U or -D, found {}",
            text.map_or_else(|| "null".to_owned(), |text| format!("{text:?}"))
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int32Array, StringArray};
    use paimon::format::types::DataType;

    use super::*;

    /// The numbers of rows of the batches of an input.
    fn batches(format: InputFormat, bytes: Vec<u8>) -> Vec<usize> {
        let field = |id, name: &str, of: &str| DataField::new(id, name, of.parse::<DataType>().unwrap());
        let settings = InputSettings {
            fields: vec![field(0, "id", "INT NOT NULL"), field(1, "v", "STRING")],
            kind_field: None,
            null: String::new(),
            delimiter: b',',
        };
        let mut console = Console {
            input: Box::new(std::io::Cursor::new(bytes)),
            out: Box::new(std::io::sink()),
            err: Box::new(std::io::sink()),
            progress: false,
        };
        let input = open("-", format, settings, &mut console).unwrap();
        input.map(|batch| batch.unwrap().0.num_rows()).collect()
    }

    #[test]
    fn wide_rows_come_in_small_batches() {
        for (bytes, expected) in [(2 * BATCH_BYTES, vec![1; 5]), (BATCH_BYTES / 2 - 100, vec![3, 2])] {
            let wide = |id: usize| format!("{id}").repeat(bytes);
            let json: String = (0..5)
                .map(|id| format!("{{\"id\":{id},\"v\":\"{}\"}}\n", wide(id)))
                .collect();
            assert_eq!(batches(InputFormat::Json, json.into_bytes()), expected);
            let csv: String = (0..5).map(|id| format!("{id},{}\n", wide(id))).collect();
            assert_eq!(batches(InputFormat::Csv, format!("id,v\n{csv}").into_bytes()), expected);
        }
        let narrow: String = (0..BATCH_ROWS + 1).map(|id| format!("{{\"id\":{id}}}\n")).collect();
        assert_eq!(batches(InputFormat::Json, narrow.into_bytes()), [BATCH_ROWS, 1]);
    }

    #[test]
    fn wide_rows_of_parquet_come_in_small_batches() {
        let wide = (0..5).map(|id: usize| format!("{id}").repeat(BATCH_BYTES / 2 - 1000));
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(Int32Array::from_iter_values(0..5))),
            ("v", Arc::new(StringArray::from_iter_values(wide))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        assert_eq!(batches(InputFormat::Parquet, bytes), [2, 2, 1]);
    }
}
