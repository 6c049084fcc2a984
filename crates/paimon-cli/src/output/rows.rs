//! Table rows as text.

use paimon::format::types::DataField;
use serde_json::Value;

use super::{Console, Grid};
use crate::commands::RowFormat;
use crate::error::CliError;

/// Rows that a table shows before it begins anew: widths must be known before the first row is printed.
const PAGE_ROWS: usize = 1000;

/// Prints rows as they come.
pub(crate) struct Rows<'a> {
    format: RowFormat,
    fields: &'a [DataField],
    page: Vec<Vec<String>>,
    printed: bool,
}

impl<'a> Rows<'a> {
    /// Rows of these columns.
    pub(crate) fn new(format: RowFormat, fields: &'a [DataField]) -> Self {
        Self {
            format,
            fields,
            page: Vec::new(),
            printed: false,
        }
    }

    /// Prints rows of values in column order.
    pub(crate) fn print(&mut self, console: &mut Console, rows: &[Vec<Value>]) -> Result<(), CliError> {
        match self.format {
            RowFormat::Json => {
                for row in rows {
                    console.line(object(self.fields, row))?;
                }
                Ok(())
            }
            RowFormat::Csv => {
                self.csv_header(console)?;
                for row in rows {
                    let cells: Vec<String> = row.iter().map(|value| quoted(&text(value, ""))).collect();
                    console.line(cells.join(","))?;
                }
                Ok(())
            }
            RowFormat::Table => {
                for row in rows {
                    self.page.push(row.iter().map(|value| text(value, "null")).collect());
                    if self.page.len() == PAGE_ROWS {
                        self.page(console)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Prints what is gathered, and hands everything to the operating system: somebody waits for it.
    pub(crate) fn flush(&mut self, console: &mut Console) -> Result<(), CliError> {
        if !self.page.is_empty() {
            self.page(console)?;
        }
        console.flush()
    }

    /// Prints what is left, and the header when there was no row.
    pub(crate) fn finish(mut self, console: &mut Console) -> Result<(), CliError> {
        match self.format {
            RowFormat::Json => Ok(()),
            RowFormat::Csv => self.csv_header(console),
            RowFormat::Table if self.page.is_empty() && self.printed => Ok(()),
            RowFormat::Table => self.page(console),
        }
    }

    fn csv_header(&mut self, console: &mut Console) -> Result<(), CliError> {
        if std::mem::replace(&mut self.printed, true) {
            return Ok(());
        }
        let names: Vec<String> = self.fields.iter().map(|field| quoted(&field.name)).collect();
        console.line(names.join(","))
    }

    fn page(&mut self, console: &mut Console) -> Result<(), CliError> {
        self.printed = true;
        let mut grid = Grid::new(self.fields.iter().map(|field| field.name.as_str()));
        self.page.drain(..).for_each(|row| grid.row(row));
        console.print(grid)
    }
}

/// A row as a JSON object whose members stand in column order.
fn object(fields: &[DataField], row: &[Value]) -> String {
    let members = fields.iter().zip(row);
    let members = members.map(|(field, value)| format!("{}:{value}", Value::from(field.name.as_str())));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// A value without JSON's quotes; nested values stay JSON.
fn text(value: &Value, null: &str) -> String {
    match value {
        Value::Null => null.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A CSV cell.
fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) || cell.starts_with(' ') || cell.ends_with(' ') {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}
