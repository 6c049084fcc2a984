//! Rows of a file made into batches: columns of the schema wanted, hidden rows left out, keys, positions.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType as ArrowType, TimeUnit};
use arrow_select::filter::FilterBuilder;

use crate::error::FormatError;
use crate::formats::FileRows;
use crate::kv::evolve::Evolution;
use crate::kv::{ExpiredBefore, KeyCodec, KvBatch, ReadSpec, RowLevels, VALUE_OFFSET};
use crate::predicate::{Predicate, Test};
use crate::types::Datum;

/// From this number on, a BIGINT record-level time is in milliseconds, as in `org.apache.paimon.io.RecordLevelExpire`.
const FIRST_MILLIS: i64 = 1_000_000_000_000;

/// Makes the batches of one file.
pub(super) struct BatchMaker {
    pub(super) path: String,
    pub(super) level: i32,
    /// The sequence number of all rows, in place of those in the file.
    pub(super) sequence: Option<i64>,
    pub(super) read: ReadSpec,
    pub(super) evolution: Evolution,
    pub(super) codec: KeyCodec,
}

impl BatchMaker {
    /// The batch of some rows; `None` when all of them are hidden.
    pub(super) fn make(&self, rows: &FileRows) -> Result<Option<KvBatch>, FormatError> {
        let corrupt = |error: FormatError| match error {
            FormatError::Invalid(message) => FormatError::corrupt(&self.path, message),
            other => other,
        };
        let mut columns = self.evolution.apply(&rows.columns).map_err(corrupt)?;
        let kept = self.kept(rows.first_row, &columns)?;
        let mut positions = None;
        match &kept {
            Some(kept) if kept.count_set_bits() == 0 => return Ok(None),
            Some(kept) => {
                if self.read.positions {
                    positions = Some(kept.set_indices().map(|row| rows.first_row + row as u64).collect());
                }
                let filter = FilterBuilder::new(&kept.clone().into()).optimize().build();
                columns = filter.filter_record_batch(&columns).map_err(FormatError::internal)?;
            }
            None if self.read.positions => {
                positions = Some((rows.first_row..rows.first_row + columns.num_rows() as u64).collect());
            }
            None => {}
        }
        if let Some(sequence) = self.sequence {
            columns = with_sequence(&columns, sequence)?;
        }
        let levels = RowLevels::All(self.level);
        let batch = KvBatch::new(&self.read.schema, columns, &self.codec, levels).map_err(corrupt)?;
        Ok(Some(KvBatch { positions, ..batch }))
    }

    /// What is asked of the file's columns: bounds of the first key column, by which the file is sorted, and the filter, as far as it is
    /// about columns that the file holds unchanged.
    pub(super) fn file_filter(&self) -> Option<Predicate> {
        let schema = &self.read.schema;
        let source = |column| {
            let source = self.evolution.read.get(self.evolution.unchanged(column)?)?;
            Some(source.name.clone())
        };
        let mut parts = Vec::new();
        if let Some(key) = schema.key.first().and_then(|&key| source(key)) {
            let first = |bound: &Option<Vec<Datum>>| bound.as_ref()?.first().cloned();
            let min = first(&self.read.keys.min).map(Test::GreaterOrEqual);
            let max = first(&self.read.keys.max).map(Test::LessOrEqual);
            parts.extend(
                [min, max]
                    .into_iter()
                    .flatten()
                    .map(|test| Predicate::column(key.clone(), test)),
            );
        }
        let source = |name: &str| schema.position(name).and_then(source);
        let filter = self.read.filter.as_ref();
        let filter = filter.and_then(|filter| filter.project(&|name| source(name).is_some()));
        parts.extend(filter.map(|filter| filter.renamed(&|name| source(name).unwrap_or_default())));
        (!parts.is_empty()).then_some(Predicate::And(parts))
    }

    /// The rows that come out; `None`: all.
    fn kept(&self, first_row: u64, columns: &RecordBatch) -> Result<Option<BooleanBuffer>, FormatError> {
        let rows = columns.num_rows();
        let mut kept = None;
        if let Some(deleted) = &self.read.deleted {
            for position in deleted.range(first_row..first_row + rows as u64) {
                let kept = kept.get_or_insert_with(|| all_set(rows));
                kept.set_bit((position - first_row) as usize, false);
            }
        }
        if let Some(expired) = &self.read.expired_before {
            let column = columns.columns().get(VALUE_OFFSET + expired.column);
            let column = column.ok_or_else(|| FormatError::invalid("record-level.time-field is not read"))?;
            if let Some(time) = expired_rows(column, expired)? {
                let kept = kept.get_or_insert_with(|| all_set(rows));
                for row in time {
                    kept.set_bit(row, false);
                }
            }
        }
        Ok(kept.map(|mut kept| kept.finish()))
    }
}

/// The same rows with this sequence number.
fn with_sequence(rows: &RecordBatch, sequence: i64) -> Result<RecordBatch, FormatError> {
    let mut columns = rows.columns().to_vec();
    if let Some(numbers) = columns.first_mut() {
        *numbers = Arc::new(Int64Array::from_value(sequence, rows.num_rows()));
    }
    RecordBatch::try_new(rows.schema(), columns).map_err(FormatError::internal)
}

fn all_set(rows: usize) -> BooleanBufferBuilder {
    let mut bits = BooleanBufferBuilder::new(rows);
    bits.append_n(rows, true);
    bits
}

/// The rows whose time is before the limit; `None`: none of them.
fn expired_rows(column: &ArrayRef, expired: &ExpiredBefore) -> Result<Option<Vec<usize>>, FormatError> {
    let limit = expired.seconds;
    let rows = match column.data_type() {
        ArrowType::Int32 => before(column, column.as_primitive::<Int32Type>().values(), |time| {
            i64::from(time) < limit
        }),
        ArrowType::Int64 => before(column, column.as_primitive::<Int64Type>().values(), |time| {
            (if time >= FIRST_MILLIS { time / 1000 } else { time }) < limit
        }),
        ArrowType::Timestamp(unit, _) => match unit {
            TimeUnit::Millisecond => {
                let times = column.as_primitive::<TimestampMillisecondType>();
                before(column, times.values(), |time| time / 1000 < limit)
            }
            TimeUnit::Microsecond => {
                let times = column.as_primitive::<TimestampMicrosecondType>();
                before(column, times.values(), |time| time.div_euclid(1000) / 1000 < limit)
            }
            TimeUnit::Nanosecond => {
                let times = column.as_primitive::<TimestampNanosecondType>();
                before(column, times.values(), |time| time.div_euclid(1_000_000) / 1000 < limit)
            }
            TimeUnit::Second => return Err(wrong_time(column)),
        },
        _ => return Err(wrong_time(column)),
    };
    Ok((!rows.is_empty()).then_some(rows))
}

fn before<T: Copy>(column: &ArrayRef, times: &[T], is_before: impl Fn(T) -> bool) -> Vec<usize> {
    let rows = times
        .iter()
        .enumerate()
        .filter(|&(row, &time)| is_before(time) && column.is_valid(row));
    rows.map(|(row, _)| row).collect()
}

fn wrong_time(column: &ArrayRef) -> FormatError {
    FormatError::invalid(format!(
        "record-level.time-field is of the Arrow type {}: it must be INT, BIGINT or a timestamp",
        column.data_type()
    ))
}
