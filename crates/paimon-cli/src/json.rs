//! Rows as JSON, both ways; values have the form of [`Datum::to_json`].

use arrow_array::{ArrayRef, RecordBatch};
use paimon::format::FormatError;
use paimon::format::types::{DataField, Datum, array_from_datums};
use serde_json::Value;

/// Rows as arrays of values, in column order.
///
/// Errors: `Internal` when a column's Arrow type is of no Paimon type.
pub fn encode_batch(batch: &RecordBatch, fields: &[DataField]) -> Result<Vec<Vec<Value>>, FormatError> {
    let mut rows = vec![Vec::with_capacity(fields.len()); batch.num_rows()];
    for (column, field) in batch.columns().iter().zip(fields) {
        for (row, values) in rows.iter_mut().enumerate() {
            values.push(Datum::from_array(column, row)?.to_json(&field.data_type));
        }
    }
    Ok(rows)
}

/// A column of values, one a row, in the table's Arrow type.
///
/// Errors: the row (from 0), and what was found and expected.
pub fn decode_column<'a>(
    values: impl IntoIterator<Item = &'a Value>,
    field: &DataField,
) -> Result<ArrayRef, (usize, FormatError)> {
    let values = values.into_iter().enumerate();
    let datums = values
        .map(|(row, value)| Datum::from_json(value, &field.data_type).map_err(|error| (row, error)))
        .collect::<Result<Vec<_>, _>>()?;
    array_from_datums(field, &datums).map_err(|error| (0, error))
}
