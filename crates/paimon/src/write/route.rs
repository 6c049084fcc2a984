//! A batch cut into the parts that belong to one bucket each, by columns.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use arrow_array::{Array, ArrayRef, Int8Array, RecordBatch, UInt32Array};
use arrow_row::{RowConverter, SortField};
use arrow_select::take::{take, take_record_batch};

use paimon_format::row::{BinaryRow, row_at};

use crate::assign::{Assigned, Columns};
use crate::error::{Error, Result};
use crate::write::rows::Prepared;

/// Rows with their partitions.
#[derive(Clone, Debug)]
pub(crate) struct Partitioned {
    /// The rows.
    pub(crate) rows: Prepared,
    /// The partitions, each once.
    pub(crate) partitions: Vec<BinaryRow>,
    /// The number of each row's partition.
    pub(crate) of_row: Vec<usize>,
}

impl Partitioned {
    /// Finds the partition of each row: `columns` are the partition columns.
    pub(crate) fn new(rows: Prepared, columns: &Columns) -> Result<Self> {
        let values = columns.of(&rows.rows)?;
        let (of_row, first_rows) = partitions(&values, rows.rows.num_rows())?;
        let mut partitions = Vec::with_capacity(first_rows.len());
        for &row in &first_rows {
            partitions.push(row_at(&values, &columns.types, row)?);
        }
        Ok(Self {
            rows,
            partitions,
            of_row,
        })
    }

    /// The partition with this number.
    pub(crate) fn partition(&self, number: usize) -> Result<&BinaryRow> {
        self.partitions
            .get(number)
            .ok_or_else(|| Error::internal("a row without a partition"))
    }
}

/// The rows of one bucket, in their order of arrival.
#[derive(Debug)]
pub(crate) struct Part {
    /// Number of the partition, in order of first appearance.
    pub(crate) partition: usize,
    /// The bucket.
    pub(crate) bucket: i32,
    /// The rows.
    pub(crate) rows: RecordBatch,
    /// Their kinds.
    pub(crate) kinds: Int8Array,
}

/// Numbers the partitions of a batch: a number a row, and for each number the first row that has it.
///
/// Costs one row encoding of the partition columns; an unpartitioned table costs nothing.
fn partitions(columns: &[ArrayRef], rows: usize) -> Result<(Vec<usize>, Vec<usize>)> {
    if columns.is_empty() {
        return Ok((vec![0; rows], if rows == 0 { Vec::new() } else { vec![0] }));
    }
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone()));
    let converter = RowConverter::new(fields.collect())?;
    let encoded = converter.convert_columns(columns)?;
    let mut numbers = HashMap::new();
    let mut first_rows = Vec::new();
    let mut of_row = Vec::with_capacity(rows);
    for (row, key) in encoded.iter().enumerate() {
        let number = match numbers.entry(key.owned()) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                first_rows.push(row);
                *new.insert(first_rows.len() - 1)
            }
        };
        of_row.push(number);
    }
    Ok((of_row, first_rows))
}

/// Cuts a batch by partition number and bucket. Rows of a part keep their order; a batch of one bucket is not copied.
pub(crate) fn split(assigned: &Assigned) -> Result<Vec<Part>> {
    let Partitioned { rows, of_row, .. } = &assigned.rows;
    cut(&rows.rows, &rows.kinds, of_row, &assigned.buckets)
}

fn cut(batch: &RecordBatch, kinds: &Int8Array, partitions: &[usize], buckets: &[i32]) -> Result<Vec<Part>> {
    let mut places: Vec<(usize, i32)> = partitions.iter().copied().zip(buckets.iter().copied()).collect();
    let mut distinct = places.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if let [(partition, bucket)] = distinct.as_slice() {
        return Ok(vec![Part {
            partition: *partition,
            bucket: *bucket,
            rows: batch.clone(),
            kinds: kinds.clone(),
        }]);
    }
    let mut rows_of: HashMap<(usize, i32), Vec<u32>> = HashMap::with_capacity(distinct.len());
    for (row, place) in places.drain(..).enumerate() {
        let row = u32::try_from(row).map_err(|_| Error::invalid("a batch has at most 4294967295 rows"))?;
        rows_of.entry(place).or_default().push(row);
    }
    let mut parts = Vec::with_capacity(distinct.len());
    for (partition, bucket) in distinct {
        let Some(rows) = rows_of.remove(&(partition, bucket)) else {
            continue;
        };
        let rows = UInt32Array::from(rows);
        let kinds = take(kinds, &rows, None)?;
        let kinds = kinds
            .as_any()
            .downcast_ref::<Int8Array>()
            .ok_or_else(|| Error::internal("kinds are not bytes"))?
            .clone();
        parts.push(Part {
            partition,
            bucket,
            rows: take_record_batch(batch, &rows)?,
            kinds,
        });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn rows_go_to_their_part_in_order_of_arrival() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("p", DataType::Utf8, true),
            Field::new("k", DataType::Int32, false),
        ]));
        let p: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("a"), Some("a"), None]));
        let k: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5]));
        let batch = RecordBatch::try_new(schema, vec![Arc::clone(&p), k]).unwrap();
        let kinds = Int8Array::from(vec![0, 1, 2, 3, 0]);

        let (of_row, first_rows) = partitions(&[p], 5).unwrap();
        assert_eq!(
            (of_row.as_slice(), first_rows.as_slice()),
            ([0, 1, 0, 0, 1].as_slice(), [0, 1].as_slice())
        );

        let parts = cut(&batch, &kinds, &of_row, &[0, 0, 1, 0, 0]).unwrap();
        let seen: Vec<_> = parts
            .iter()
            .map(|part| {
                let keys = part.rows.column(1).as_any().downcast_ref::<Int32Array>().unwrap();
                (
                    part.partition,
                    part.bucket,
                    keys.values().to_vec(),
                    part.kinds.values().to_vec(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (0, 0, vec![1, 4], vec![0, 3]),
                (0, 1, vec![3], vec![2]),
                (1, 0, vec![2, 5], vec![1, 0])
            ]
        );
    }

    #[test]
    fn an_empty_batch_has_no_parts() {
        let (of_row, _) = partitions(&[], 0).unwrap();
        let batch = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let parts = cut(&batch, &Int8Array::from(Vec::<i8>::new()), &of_row, &[]).unwrap();
        assert!(parts.is_empty());
    }
}
