//! JSON lines.

use std::io::BufRead;
use std::sync::Arc;

use arrow_array::{Int8Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use serde_json::{Map, Value};

use super::{BATCH_ROWS, InputBatch, InputSettings, kind};
use crate::error::CliError;
use crate::json::decode_column;

/// Reads rows, one a line: an object by column name, or an array of the kind and the values in table order. Blank lines are
/// skipped.
pub(crate) struct JsonLines<R> {
    label: String,
    lines: std::io::Lines<R>,
    line: usize,
    settings: InputSettings,
    done: bool,
}

/// Values of a batch by column, with the line that each row came from.
struct Rows {
    lines: Vec<usize>,
    kinds: Vec<Option<i8>>,
    columns: Vec<Vec<Value>>,
}

impl<R: BufRead> JsonLines<R> {
    /// `label` names the input in errors.
    pub(crate) fn new(label: impl Into<String>, reader: R, settings: InputSettings) -> Self {
        Self {
            label: label.into(),
            lines: reader.lines(),
            line: 0,
            settings,
            done: false,
        }
    }

    fn wrong(&self, line: usize, message: impl std::fmt::Display) -> CliError {
        CliError::Input {
            input: self.label.clone(),
            line,
            message: message.to_string(),
        }
    }

    fn next_batch(&mut self) -> Result<Option<InputBatch>, CliError> {
        let mut rows = Rows {
            lines: Vec::new(),
            kinds: Vec::new(),
            columns: vec![Vec::new(); self.settings.fields.len()],
        };
        while rows.lines.len() < BATCH_ROWS {
            let Some(line) = self.lines.next() else {
                break;
            };
            self.line += 1;
            let line = line.map_err(|error| CliError::file(&self.label, error))?;
            if line.trim().is_empty() {
                continue;
            }
            let value =
                serde_json::from_str(&line).map_err(|error| self.wrong(self.line, format!("no JSON: {error}")))?;
            self.row(value, &mut rows)
                .map_err(|message| self.wrong(self.line, message))?;
            rows.lines.push(self.line);
        }
        if rows.lines.is_empty() {
            Ok(None)
        } else {
            self.batch(rows).map(Some)
        }
    }

    fn row(&self, value: Value, rows: &mut Rows) -> Result<(), String> {
        match value {
            Value::Object(object) => self.object(object, rows),
            Value::Array(values) if values.len() == self.settings.fields.len() + 1 => {
                let mut values = values.into_iter();
                rows.kinds
                    .push(Some(kind(values.next().as_ref().and_then(Value::as_str))?));
                for (column, value) in rows.columns.iter_mut().zip(values) {
                    column.push(value);
                }
                Ok(())
            }
            Value::Array(values) => Err(format!(
                "expected an array of a kind and {} values, found {} elements",
                self.settings.fields.len(),
                values.len()
            )),
            _ => Err("expected an object or an array".to_owned()),
        }
    }

    fn object(&self, mut object: Map<String, Value>, rows: &mut Rows) -> Result<(), String> {
        let mut row_kind = None;
        if let Some(name) = &self.settings.kind_field {
            let text = object
                .get(name)
                .ok_or_else(|| format!("there is no field {name:?} (--kind-field)"))?;
            row_kind = Some(kind(text.as_str()).map_err(|message| format!("field {name}: {message}"))?);
            if !self.settings.fields.iter().any(|field| field.name == *name) {
                object.remove(name);
            }
        }
        for (column, field) in rows.columns.iter_mut().zip(&self.settings.fields) {
            column.push(object.remove(&field.name).unwrap_or(Value::Null));
        }
        rows.kinds.push(row_kind);
        match object.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("field {name:?} is no column of the table")),
        }
    }

    fn batch(&self, rows: Rows) -> Result<InputBatch, CliError> {
        let line_of = |row: usize| rows.lines.get(row).copied().unwrap_or(self.line);
        let mut fields = Vec::with_capacity(rows.columns.len());
        let mut arrays = Vec::with_capacity(rows.columns.len());
        for (field, values) in self.settings.fields.iter().zip(&rows.columns) {
            if let Some(row) = values.iter().position(Value::is_null)
                && !field.data_type.nullable
            {
                return Err(self.wrong(
                    line_of(row),
                    format!("column {} is NOT NULL, but has no value", field.name),
                ));
            }
            let array = decode_column(values, field)
                .map_err(|(row, message)| self.wrong(line_of(row), format!("column {}: {message}", field.name)))?;
            fields.push(Field::new(&field.name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.lines.len()));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
        let insert = paimon::format::types::RowKind::Insert as i8;
        let any = rows.kinds.iter().any(Option::is_some);
        let kinds = rows.kinds.into_iter().map(|kind| kind.unwrap_or(insert));
        Ok((batch, any.then(|| Int8Array::from_iter_values(kinds))))
    }
}

impl<R: BufRead> Iterator for JsonLines<R> {
    type Item = Result<InputBatch, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let batch = self.next_batch().transpose();
        // Nothing after an error can be trusted.
        self.done = !matches!(batch, Some(Ok(_)));
        batch
    }
}
