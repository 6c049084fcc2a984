//! JSON lines.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::BufRead;
use std::sync::Arc;

use arrow_array::{Int8Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use paimon_cdc::json::{Json, parse};
use serde_json::Value;

use super::numbers::with_exact_numbers;
use super::{BATCH_BYTES, BATCH_ROWS, InputBatch, InputSettings, kind, no_value};
use crate::error::CliError;
use crate::json::decode_column;

/// Reads rows, one a line: an object by column name, or an array of the kind and the values in table order. Blank lines are
/// skipped.
pub(crate) struct JsonLines<R> {
    label: String,
    lines: std::io::Lines<R>,
    line: usize,
    settings: InputSettings,
    /// The table's columns by name.
    positions: HashMap<String, usize>,
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
        let names = settings.fields.iter().map(|field| field.name.clone());
        Self {
            positions: names.enumerate().map(|(position, name)| (name, position)).collect(),
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
        let mut bytes = 0;
        while rows.lines.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some(line) = self.lines.next() else {
                break;
            };
            self.line += 1;
            let line = line.map_err(|error| CliError::file(&self.label, error))?;
            let line = match self.line {
                1 => line.strip_prefix('\u{feff}').unwrap_or(&line),
                _ => &line,
            };
            if line.trim().is_empty() {
                continue;
            }
            bytes += line.len();
            let value = parse(line).map_err(|error| self.wrong(self.line, error))?;
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

    fn row(&self, value: Json<'_>, rows: &mut Rows) -> Result<(), String> {
        match value {
            Json::Object(members) => self.object(members, rows),
            Json::Array(values) if values.len() == self.settings.fields.len() + 1 => {
                let mut values = values.into_iter();
                rows.kinds
                    .push(Some(kind(values.next().as_ref().and_then(Json::as_str))?));
                for ((column, value), field) in rows.columns.iter_mut().zip(values).zip(&self.settings.fields) {
                    column.push(with_exact_numbers(value, &field.data_type));
                }
                Ok(())
            }
            Json::Array(values) => Err(format!(
                "expected an array of a kind and {} values, found {} elements",
                self.settings.fields.len(),
                values.len()
            )),
            _ => Err("expected an object or an array".to_owned()),
        }
    }

    fn object(&self, members: Vec<(Cow<'_, str>, Json<'_>)>, rows: &mut Rows) -> Result<(), String> {
        let kind_field = self.settings.kind_field.as_deref();
        let mut row_kind = None;
        let mut values = vec![Value::Null; self.settings.fields.len()];
        let mut seen = HashSet::with_capacity(members.len());
        for (name, value) in members {
            if !seen.insert(name.clone()) {
                return Err(format!("field {name:?} is there twice"));
            }
            let is_kind = kind_field == Some(name.as_ref());
            if is_kind {
                row_kind = Some(kind(value.as_str()).map_err(|message| format!("field {name}: {message}"))?);
            }
            let position = self.positions.get(name.as_ref()).copied();
            let column =
                position.and_then(|position| Some((values.get_mut(position)?, self.settings.fields.get(position)?)));
            match column {
                Some((column, field)) => *column = with_exact_numbers(value, &field.data_type),
                None if is_kind => {}
                None => return Err(format!("field {name:?} is no column of the table")),
            }
        }
        if let (Some(name), None) = (kind_field, row_kind) {
            return Err(format!("there is no field {name:?} (--kind-field)"));
        }
        for (column, value) in rows.columns.iter_mut().zip(values) {
            column.push(value);
        }
        rows.kinds.push(row_kind);
        Ok(())
    }

    fn batch(&self, rows: Rows) -> Result<InputBatch, CliError> {
        let line_of = |row: usize| rows.lines.get(row).copied().unwrap_or(self.line);
        let mut fields = Vec::with_capacity(rows.columns.len());
        let mut arrays = Vec::with_capacity(rows.columns.len());
        for (field, values) in self.settings.fields.iter().zip(&rows.columns) {
            if let Some(row) = values.iter().position(Value::is_null)
                && !field.data_type.nullable
            {
                return Err(self.wrong(line_of(row), no_value(field)));
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
