//! Whether two rows have the same values.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_ord::cmp::not_distinct;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::interleave::interleave;
use paimon_format::kv::{KvSchema, VALUE_OFFSET};
use paimon_format::types::{Datum, canonical_nan};

use crate::MergeError;
use crate::plan::RowRef;

/// Compares the values of rows that have the same key, some columns left out. Null equals null, NaN equals NaN, -0.0 is not 0.0.
///
/// Source: `org.apache.paimon.utils.ValueEqualiserSupplier`. Maps are equal if they have the same entries, in
/// whatever order.
#[derive(Debug)]
pub struct ValueEqualiser {
    /// Positions among a batch's columns.
    columns: Vec<usize>,
}

impl ValueEqualiser {
    /// Compares all columns of `schema` but the key's and those named by `ignored`.
    pub(super) fn new(schema: &KvSchema, ignored: &[String]) -> Self {
        let fields = schema.fields.iter().enumerate();
        let counts = |&(position, field): &(usize, &_)| {
            let field: &paimon_format::types::DataField = field;
            !schema.is_primary_key(position) && !ignored.contains(&field.name)
        };
        Self {
            columns: fields
                .filter(counts)
                .map(|(position, _)| position + VALUE_OFFSET)
                .collect(),
        }
    }

    /// Compares these columns, by their position in a batch.
    pub fn of_columns(columns: impl IntoIterator<Item = usize>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
        }
    }

    /// Which pairs are equal. Rows are in `batches`, all of one schema; that they exist was checked.
    ///
    /// Cost: a column is looked at only for pairs that were equal in those before. Errors: `Internal` when Arrow refuses a column.
    pub fn equal(&self, batches: &[&RecordBatch], pairs: &[(RowRef, RowRef)]) -> Result<Vec<bool>, MergeError> {
        let mut candidates: Vec<usize> = (0..pairs.len()).collect();
        for &column in &self.columns {
            if candidates.is_empty() {
                break;
            }
            let arrays: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(column).as_ref()).collect();
            let gather = |row: fn(&(RowRef, RowRef)) -> RowRef| {
                let rows = candidates.iter().filter_map(|&pair| pairs.get(pair)).map(row);
                let rows: Vec<(usize, usize)> = rows.map(|row| (row.batch as usize, row.row as usize)).collect();
                let gathered = interleave(&arrays, &rows).map_err(MergeError::internal)?;
                Ok::<_, MergeError>(canonical_nan(&gathered))
            };
            let equal = equal_rows(&gather(|pair| pair.0)?, &gather(|pair| pair.1)?)?;
            let mut bits = equal.iter();
            candidates.retain(|_| bits.next().unwrap_or(false));
        }
        let mut equal = vec![false; pairs.len()];
        for pair in candidates {
            if let Some(equal) = equal.get_mut(pair) {
                *equal = true;
            }
        }
        Ok(equal)
    }
}

/// Compares row by row.
fn equal_rows(left: &ArrayRef, right: &ArrayRef) -> Result<BooleanBuffer, MergeError> {
    if !left.data_type().is_nested() {
        let equal = not_distinct(&Arc::clone(left), &Arc::clone(right)).map_err(MergeError::internal)?;
        return Ok(equal.values().clone());
    }
    let compare = make_comparator(left, right, SortOptions::default()).map_err(MergeError::internal)?;
    if !has_map(left.data_type()) {
        return Ok(BooleanBuffer::collect_bool(left.len(), |row| compare(row, row).is_eq()));
    }
    // Most maps that are equal have the same order.
    let mut equal = BooleanBufferBuilder::new(left.len());
    for row in 0..left.len() {
        equal.append(compare(row, row).is_eq() || without_order(left, row)? == without_order(right, row)?);
    }
    Ok(equal.finish())
}

fn has_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(element) => has_map(element.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_map(field.data_type())),
        _ => false,
    }
}

/// A value whose maps, at any depth, are sorted.
fn without_order(column: &ArrayRef, row: usize) -> Result<Datum, MergeError> {
    fn sort(value: &mut Datum) {
        match value {
            Datum::Array(parts) | Datum::Row(parts) => parts.iter_mut().for_each(sort),
            Datum::Map(entries) => {
                for (key, value) in entries.iter_mut() {
                    sort(key);
                    sort(value);
                }
                entries.sort_unstable();
            }
            _ => {}
        }
    }
    let mut value = Datum::from_array(column, row).map_err(MergeError::internal)?;
    sort(&mut value);
    Ok(value)
}
