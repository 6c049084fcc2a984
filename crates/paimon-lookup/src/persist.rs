//! What a lookup file stores of a row.
//!
//! | Need | Name | Value |
//! |---|---|---|
//! | existence | `empty` | nothing |
//! | position | `position` | the row's number in the data file, a varint |
//! | value | `value` | compacted row of all columns; sequence number, 8 bytes; row kind, 1 byte |
//! | both | `position-and-value` | compacted row; row's number, 8 bytes; sequence number, 8 bytes; row kind, 1 byte |
//!
//! Numbers are little endian. Keys are compacted rows of the trimmed primary key.
//!
//! Source: `org.apache.paimon.mergetree.lookup.PersistProcessor` and its implementations.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, KvSchemaRef, RowLevels};
use paimon_format::row::compacted::{
    CompactedKeyOrder, CompactedRowDecoder, CompactedRowEncoder, put_varint, read_varint,
};
use paimon_format::sst::SstWriter;
use paimon_format::types::{DataType, canonical_nan};
use paimon_merge::changelog::LookupNeed;

use crate::found::{FileHits, Found};

/// Version of the row format, in names of remote files.
pub(crate) const VERSION: &str = "v1";

/// Turns rows of one schema into entries of lookup files, and back.
#[derive(Clone, Debug)]
pub(crate) struct Persist {
    schema: KvSchemaRef,
    codec: KeyCodec,
    order: Arc<CompactedKeyOrder>,
    key_types: Arc<[DataType]>,
    value_types: Arc<[DataType]>,
    values: CompactedRowDecoder,
}

/// The name of a need, as in names of remote files.
pub(crate) fn identifier(need: LookupNeed) -> &'static str {
    match need {
        LookupNeed::Existence => "empty",
        LookupNeed::Position => "position",
        LookupNeed::Value => "value",
        LookupNeed::PositionAndValue => "position-and-value",
    }
}

impl Persist {
    /// Errors: `Unsupported` for a key column without an order, and for columns that have no compacted form, by name.
    pub(crate) fn new(schema: &KvSchemaRef) -> Result<Self, FormatError> {
        let key_types: Arc<[DataType]> = schema.key_fields().map(|field| field.data_type.clone()).collect();
        Ok(Self {
            schema: Arc::clone(schema),
            codec: KeyCodec::new(schema)?,
            order: Arc::new(CompactedKeyOrder::new(key_types.iter())?),
            key_types,
            value_types: schema.fields.iter().map(|field| field.data_type.clone()).collect(),
            values: CompactedRowDecoder::new(&schema.fields)?,
        })
    }

    pub(crate) fn schema(&self) -> &KvSchemaRef {
        &self.schema
    }

    pub(crate) fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    pub(crate) fn order(&self) -> &CompactedKeyOrder {
        &self.order
    }

    /// The keys as they stand in lookup files. `columns`: the key columns, in key order.
    pub(crate) fn encode_keys(&self, columns: &[ArrayRef]) -> Result<arrow_array::BinaryArray, FormatError> {
        let columns: Vec<ArrayRef> = columns.iter().map(canonical_nan).collect();
        CompactedRowEncoder::new(&columns, &self.key_types)?.encode_all()
    }

    /// Adds all rows of a batch, which has at least the columns that `need` stores.
    ///
    /// Errors: `Invalid` when a value does not fit its type, or positions are wanted and not there.
    pub(crate) fn put(&self, batch: &KvBatch, need: LookupNeed, file: &mut SstWriter) -> Result<(), FormatError> {
        // Every NaN is one key, so that all of them hash alike.
        let keys: Vec<ArrayRef> = key_columns(batch).iter().map(canonical_nan).collect();
        let keys = CompactedRowEncoder::new(&keys, &self.key_types)?;
        let values = match need.value() {
            true => Some(CompactedRowEncoder::new(batch.values(), &self.value_types)?),
            false => None,
        };
        let position = |row: usize| {
            let positions = batch.positions.as_ref().and_then(|positions| positions.get(row));
            positions
                .copied()
                .ok_or_else(|| FormatError::internal("a batch without positions"))
        };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let rows = batch.sequence_numbers().iter().zip(batch.kinds()).enumerate();
        for (row, (sequence, kind)) in rows {
            key.clear();
            value.clear();
            keys.encode(row, &mut key)?;
            match (&values, need.position()) {
                (None, false) => {}
                (None, true) => put_varint(&mut value, position(row)?),
                (Some(values), with_position) => {
                    values.encode(row, &mut value)?;
                    if with_position {
                        value.extend_from_slice(&position(row)?.to_le_bytes());
                    }
                    value.extend_from_slice(&sequence.to_le_bytes());
                    value.extend_from_slice(&kind.to_le_bytes());
                }
            }
            file.put(&key, &value)?;
        }
        Ok(())
    }

    /// The answers that the values of a file are. `level`: the file's.
    ///
    /// Errors: `Corrupt`, without the file's name.
    pub(crate) fn decode(&self, found: Found, need: LookupNeed, level: i32) -> Result<FileHits, FormatError> {
        let (positions, rows) = match (need.value(), need.position()) {
            (false, false) => (None, None),
            (false, true) => (Some(found.values().map(read_varint).collect::<Result<_, _>>()?), None),
            (true, with_position) => {
                let trailers = found.values().map(|value| Trailer::split(value, with_position));
                let trailers: Vec<Trailer<'_>> = trailers.collect::<Result<_, _>>()?;
                let positions = trailers.iter().map(|trailer| trailer.position).collect();
                (with_position.then_some(positions), Some(self.batch(&trailers, level)?))
            }
        };
        Ok(FileHits {
            keys: found.into_keys(),
            positions,
            rows,
        })
    }

    fn batch(&self, rows: &[Trailer<'_>], level: i32) -> Result<KvBatch, FormatError> {
        let sequences: Int64Array = rows.iter().map(|row| Some(row.sequence)).collect();
        let kinds: Int8Array = rows.iter().map(|row| Some(row.kind)).collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(sequences), Arc::new(kinds)];
        columns.extend(self.values.decode(rows.iter().map(|row| row.row))?);
        let columns = RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns).map_err(corrupt)?;
        KvBatch::new(&self.schema, columns, &self.codec, RowLevels::All(level)).map_err(|error| match error {
            FormatError::Invalid(message) => corrupt(message),
            other => other,
        })
    }
}

/// The key columns of a batch, in key order.
fn key_columns(batch: &KvBatch) -> Vec<ArrayRef> {
    let schema: &KvSchema = &batch.schema;
    let columns = schema.key.iter().filter_map(|&column| batch.values().get(column));
    columns.map(Arc::clone).collect()
}

/// A value, taken apart.
struct Trailer<'a> {
    row: &'a [u8],
    position: u64,
    sequence: i64,
    kind: i8,
}

impl<'a> Trailer<'a> {
    fn split(value: &'a [u8], with_position: bool) -> Result<Self, FormatError> {
        let parts = || {
            let (value, kind) = value.split_last_chunk::<1>()?;
            let (value, sequence) = value.split_last_chunk::<8>()?;
            let (row, position) = match with_position {
                true => value.split_last_chunk::<8>()?,
                false => (value, &[0; 8]),
            };
            Some(Self {
                row,
                position: u64::from_le_bytes(*position),
                sequence: i64::from_le_bytes(*sequence),
                kind: i8::from_le_bytes(*kind),
            })
        };
        parts().ok_or_else(|| corrupt(format_args!("a value of {} bytes", value.len())))
    }
}

/// The caller names the file.
fn corrupt(message: impl std::fmt::Display) -> FormatError {
    FormatError::corrupt("lookup file", message)
}
