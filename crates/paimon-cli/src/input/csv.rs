//! Comma-separated values (RFC 4180).

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{Field, Schema};
use paimon::format::types::{Datum, array_from_datums};

use super::{BATCH_BYTES, BATCH_ROWS, Input, InputBatch, InputSettings, no_value, take_kinds};
use crate::error::CliError;

/// Reads values with a header line; columns are matched by name. Blank lines are skipped.
pub(super) fn open(label: String, reader: Box<dyn Read + Send>, settings: InputSettings) -> Result<Input, CliError> {
    let mut records = Records::new(label.clone(), reader, settings.delimiter);
    let names = match records.next().transpose()? {
        None => {
            return Err(CliError::usage(format!(
                "{label}: expected a header line with the names of columns"
            )));
        }
        Some(header) => header.values,
    };
    let mut sorted: Vec<&str> = names.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    if let Some([name, _]) = sorted.windows(2).find(|pair| matches!(pair, [a, b] if a == b)) {
        return Err(CliError::usage(format!("{label}: two columns are named {name}")));
    }
    Ok(Box::new(Batches {
        label,
        names,
        records,
        settings,
    }))
}

struct Batches {
    label: String,
    names: Vec<String>,
    records: Records,
    settings: InputSettings,
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<InputBatch>, CliError> {
        let mut lines = Vec::new();
        let mut columns: Vec<Vec<String>> = vec![Vec::new(); self.names.len()];
        let mut bytes = 0;
        while lines.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            let Some(record) = self.records.next().transpose()? else {
                break;
            };
            bytes += record.values.iter().map(String::len).sum::<usize>();
            if record.values.len() != columns.len() {
                let message = format!(
                    "expected {} values, as in the header, found {}",
                    columns.len(),
                    record.values.len()
                );
                return Err(wrong(&self.label, record.line, message));
            }
            lines.push(record.line);
            for (column, value) in columns.iter_mut().zip(record.values) {
                column.push(value);
            }
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let arrays = columns
            .into_iter()
            .map(|values| Arc::new(StringArray::from(values)) as ArrayRef);
        let batch = RecordBatch::try_from_iter(self.names.iter().zip(arrays))?;
        let (batch, kinds) = take_kinds(&self.label, &lines, batch, &self.settings)?;
        let batch = typed(&self.label, &lines, &batch, &self.settings)?;
        Ok(Some((batch, kinds)))
    }
}

impl Iterator for Batches {
    type Item = Result<InputBatch, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// Texts as the table's types; columns that the table does not have stay, to be refused by name.
fn typed(label: &str, lines: &[usize], batch: &RecordBatch, settings: &InputSettings) -> Result<RecordBatch, CliError> {
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    for (given, texts) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let column: ArrayRef = match settings.fields.iter().find(|field| field.name == *given.name()) {
            None => Arc::clone(texts),
            Some(field) => {
                let mut values = Vec::with_capacity(texts.len());
                for (text, &line) in texts.as_string::<i32>().iter().zip(lines) {
                    let text = text.unwrap_or_default();
                    values.push(if text == settings.null {
                        if !field.data_type.nullable {
                            return Err(wrong(label, line, no_value(field)));
                        }
                        Datum::Null
                    } else {
                        Datum::parse(text, &field.data_type)
                            .map_err(|error| wrong(label, line, format!("column {}: {error}", field.name)))?
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

fn wrong(label: &str, line: usize, message: String) -> CliError {
    CliError::Input {
        input: label.to_owned(),
        line,
        message,
    }
}

/// The values between separators, and the line on which they begin.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    line: usize,
    values: Vec<String>,
}

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte of a value.
    Start,
    /// In a value without quotes, in which quotes are characters.
    Plain,
    /// Between quotes, the first of which is on this line.
    Quoted(usize),
    /// After a quote within quotes: the end of the value, or one of two quotes that stand for one.
    Quote(usize),
}

/// Cuts text into records.
struct Records {
    label: String,
    reader: BufReader<Box<dyn Read + Send>>,
    delimiter: u8,
    /// Lines read so far.
    line: usize,
    done: bool,
}

impl Records {
    fn new(label: String, reader: Box<dyn Read + Send>, delimiter: u8) -> Self {
        Self {
            label,
            reader: BufReader::new(reader),
            delimiter,
            line: 0,
            done: false,
        }
    }

    /// The next line with its end; empty after the last one.
    fn read_line(&mut self, bytes: &mut Vec<u8>) -> Result<(), CliError> {
        bytes.clear();
        let read = self.reader.read_until(b'\n', bytes);
        read.map_err(|error| CliError::file(&self.label, error))?;
        if !bytes.is_empty() {
            self.line += 1;
        }
        if self.line == 1 && bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        Ok(())
    }

    fn record(&mut self) -> Result<Option<Record>, CliError> {
        let mut bytes = Vec::new();
        self.read_line(&mut bytes)?;
        while matches!(bytes.as_slice(), b"\n" | b"\r\n") {
            self.read_line(&mut bytes)?;
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let line = self.line;
        let mut values = Vec::new();
        let mut value = Vec::new();
        let mut state = State::Start;
        loop {
            let (content, ended) = match bytes.strip_suffix(b"\n") {
                Some(content) => (content, true),
                None => (bytes.as_slice(), false),
            };
            for &byte in content {
                state = match (state, byte) {
                    (State::Start, b'"') => State::Quoted(self.line),
                    (State::Quoted(line), b'"') => State::Quote(line),
                    (State::Quote(line), b'"') => {
                        value.push(b'"');
                        State::Quoted(line)
                    }
                    (State::Start | State::Plain | State::Quote(_), byte) if byte == self.delimiter => {
                        values.push(self.text(std::mem::take(&mut value))?);
                        State::Start
                    }
                    // The end of a line may be two characters.
                    (State::Quote(line), b'\r') => State::Quote(line),
                    (State::Quote(_), _) => {
                        let message =
                            "expected a separator after the closing quote; a quote within quotes is written \"\"";
                        return Err(wrong(&self.label, self.line, message.to_owned()));
                    }
                    (State::Quoted(line), byte) => {
                        value.push(byte);
                        State::Quoted(line)
                    }
                    (State::Start | State::Plain, byte) => {
                        value.push(byte);
                        State::Plain
                    }
                };
            }
            let State::Quoted(opened) = state else { break };
            if ended {
                value.push(b'\n');
            }
            self.read_line(&mut bytes)?;
            if bytes.is_empty() {
                let message = "a quote is opened and never closed".to_owned();
                return Err(wrong(&self.label, opened, message));
            }
        }
        if state == State::Plain && value.last() == Some(&b'\r') {
            value.pop();
        }
        values.push(self.text(value)?);
        Ok(Some(Record { line, values }))
    }

    fn text(&self, bytes: Vec<u8>) -> Result<String, CliError> {
        String::from_utf8(bytes).map_err(|_| wrong(&self.label, self.line, "a value is not UTF-8".to_owned()))
    }
}

impl Iterator for Records {
    type Item = Result<Record, CliError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let record = self.record().transpose();
        // Nothing after an error can be trusted.
        self.done = !matches!(record, Some(Ok(_)));
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Vec<String> {
        let records = Records::new("in.csv".to_owned(), Box::new(text.as_bytes()), b',');
        let shown = records.map(|record| match record {
            Ok(record) => format!("{}: {}", record.line, record.values.join("|")),
            Err(error) => error.to_string(),
        });
        shown.collect()
    }

    #[test]
    fn records() {
        assert_eq!(read(""), [""; 0]);
        assert_eq!(read("\u{feff}a,b\n1,2"), ["1: a|b", "2: 1|2"]);
        assert_eq!(read("a,b\r\n\r\n\n,\r\n"), ["1: a|b", "4: |"]);
        assert_eq!(read("\"a,\"\"b\"\"\",\"\"\r\nc\"d, e"), ["1: a,\"b\"|", "2: c\"d| e"]);
        assert_eq!(read("\"one\r\ntwo\",x\ny,z\n"), ["1: one\r\ntwo|x", "3: y|z"]);
    }

    #[test]
    fn quotes_that_are_wrong_are_found_where_they_are() {
        assert_eq!(
            read("a,b\n1,\"2\n3,4\n5,6\n"),
            ["1: a|b", "in.csv, line 2: a quote is opened and never closed"]
        );
        assert_eq!(read("\""), ["in.csv, line 1: a quote is opened and never closed"]);
        assert_eq!(
            read("a\n\"b\"c\n"),
            [
                "1: a",
                "in.csv, line 2: expected a separator after the closing quote; a quote within quotes is written \"\""
            ]
        );
    }
}
