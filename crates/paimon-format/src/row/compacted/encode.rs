//! Arrow columns as compacted rows.

use arrow_array::builder::BinaryBuilder;
use arrow_array::{ArrayRef, BinaryArray};

use super::{header_bytes, put_bytes, put_varint};
use crate::FormatError;
use crate::row::columns::{Column, Values, columns_of, millis_and_nanos, range, write_array};
use crate::row::section::{Place, redundant_sign_bytes};
use crate::row::writer::end_map_keys;
use crate::types::DataType;

/// Makes compacted rows of Arrow columns: types are looked at once, values of flat types never become objects.
#[derive(Debug)]
pub struct CompactedRowEncoder<'a> {
    columns: Vec<Column<'a>>,
    rows: usize,
}

impl<'a> CompactedRowEncoder<'a> {
    /// For these columns, one a field. `Invalid` when a column does not hold values of its type or the lengths differ,
    /// `Unsupported` for BLOB and VECTOR.
    pub fn new(columns: &'a [ArrayRef], types: &[DataType]) -> Result<Self, FormatError> {
        let (columns, rows) = columns_of(columns, types)?;
        Ok(Self { columns, rows })
    }

    /// The number of rows; 0 without columns.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends one row's bytes. `Invalid` when there is no such row, or it holds a value that its type cannot.
    pub fn encode(&self, row: usize, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
        if row >= self.rows && !self.columns.is_empty() {
            return Err(FormatError::invalid(format!(
                "row {row} of a batch of {} rows",
                self.rows
            )));
        }
        write_row(&self.columns, row, buffer)
    }

    /// All rows. Errors as [`encode`](Self::encode); `Invalid` when they are 2 GiB or more.
    pub fn encode_all(&self) -> Result<BinaryArray, FormatError> {
        let mut rows = BinaryBuilder::with_capacity(self.rows, 0);
        let (mut buffer, mut total) = (Vec::new(), 0_usize);
        for row in 0..self.rows {
            buffer.clear();
            self.encode(row, &mut buffer)?;
            total += buffer.len();
            if i32::try_from(total).is_err() {
                return Err(FormatError::invalid("compacted rows of 2 GiB or more in one batch"));
            }
            rows.append_value(&buffer);
        }
        Ok(rows.finish())
    }
}

fn write_row(columns: &[Column<'_>], row: usize, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
    let header = buffer.len();
    buffer.resize(header + header_bytes(columns.len()), 0);
    for (i, column) in columns.iter().enumerate() {
        if column.is_null(row) {
            buffer[header + 1 + i / 8] |= 1 << (i % 8);
        } else {
            write_value(column, row, buffer)?;
        }
    }
    Ok(())
}

/// Appends a value that is not null. `row` is within the column.
fn write_value(column: &Column<'_>, row: usize, buffer: &mut Vec<u8>) -> Result<(), FormatError> {
    match &column.values {
        Values::Boolean(values) => buffer.push(u8::from(values.value(row))),
        Values::Int8(values) => buffer.extend_from_slice(&values[row].to_le_bytes()),
        Values::Int16(values) => buffer.extend_from_slice(&values[row].to_le_bytes()),
        Values::Int32(values) => buffer.extend_from_slice(&values[row].to_le_bytes()),
        Values::Int64(values) => buffer.extend_from_slice(&values[row].to_le_bytes()),
        Values::Float32(values) => buffer.extend_from_slice(&values[row].to_le_bytes()),
        Values::Float64(values) => buffer.extend_from_slice(&values[row].to_le_bytes()),
        Values::Bytes(values) => put_bytes(buffer, values.value(row))?,
        Values::Decimal(values) if column.place == Place::Plain => {
            let unscaled = i64::try_from(values[row]).map_err(|_| {
                FormatError::invalid(format!(
                    "decimal with unscaled value {}: more digits than its type has",
                    values[row]
                ))
            })?;
            buffer.extend_from_slice(&unscaled.to_le_bytes());
        }
        Values::Decimal(values) => {
            let bytes = values[row].to_be_bytes();
            put_bytes(buffer, &bytes[redundant_sign_bytes(&bytes)..])?;
        }
        Values::Timestamp(values, unit) => {
            let (millis, nanos) = millis_and_nanos(values[row], *unit)?;
            buffer.extend_from_slice(&millis.to_le_bytes());
            if column.place != Place::Plain {
                put_varint(buffer, nanos as u64);
            }
        }
        Values::Variant(value, metadata) => {
            let mut nested = Vec::new();
            put_bytes(&mut nested, value.value(row))?;
            put_bytes(&mut nested, metadata.value(row))?;
            put_bytes(buffer, &nested)?;
        }
        Values::Array(offsets, elements, kind) => {
            let mut nested = Vec::new();
            write_array(elements, kind, range(offsets, row), &mut nested)?;
            put_bytes(buffer, &nested)?;
        }
        Values::Map(offsets, entries, key_kind, value_kind) => {
            let mut nested = vec![0; 4];
            write_array(&entries.0, key_kind, range(offsets, row), &mut nested)?;
            end_map_keys(&mut nested, 0)?;
            write_array(&entries.1, value_kind, range(offsets, row), &mut nested)?;
            put_bytes(buffer, &nested)?;
        }
        Values::Row(columns) => {
            let mut nested = Vec::new();
            write_row(columns, row, &mut nested)?;
            put_bytes(buffer, &nested)?;
        }
    }
    Ok(())
}
