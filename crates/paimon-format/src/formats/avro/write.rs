//! An Avro file being written.

use std::sync::Arc;

use apache_avro::{Codec, ZstandardSettings};
use arrow_array::RecordBatch;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::container::{MAGIC, MARKER, codec_by_name};
use super::encode::{ColumnEncoder, bytes, long};
use super::schema::to_json;
use crate::error::FormatError;
use crate::formats::array_stats::ArrayStats;
use crate::formats::{Encoded, FileEncoder};
use crate::options::Options;
use crate::types::DataField;

/// A block ends when its rows have this many bytes, as in `org.apache.avro.file.DataFileWriter`.
const BLOCK_BYTES: usize = 64_000;

/// How Avro files are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AvroSettings {
    /// `zstandard`, `snappy`, `deflate` or `null`: `avro.codec`, else `file.compression`.
    pub codec: String,
    /// `file.compression.zstd-level`
    pub zstd_level: u8,
}

impl AvroSettings {
    /// From a table's `avro.codec` and the values of `file.compression` and `file.compression.zstd-level`.
    ///
    /// Errors: `Unsupported` names the codec; `Invalid` the level.
    pub fn from_options(options: &Options, compression: &str, zstd_level: i32) -> Result<Self, FormatError> {
        let codec = match options
            .get("avro.codec")
            .unwrap_or(compression)
            .to_ascii_lowercase()
            .as_str()
        {
            "zstd" => "zstandard".to_owned(),
            "none" => "null".to_owned(),
            codec => codec.to_owned(),
        };
        codec_by_name(&codec).map_err(|_| {
            FormatError::unsupported(format!(
                "file compression {codec:?} of Avro files; supported are zstd, snappy, deflate, null"
            ))
        })?;
        let zstd_level = u8::try_from(zstd_level)
            .map_err(|_| FormatError::invalid(format!("the zstd level {zstd_level} of Avro files")))?;
        Ok(Self { codec, zstd_level })
    }
}

/// Encodes an Avro file.
pub struct AvroEncoder {
    fields: Arc<[DataField]>,
    codec: Codec,
    marker: [u8; MARKER],
    /// Rows of the block that is not ended, encoded.
    block: Vec<u8>,
    block_rows: i64,
    /// Bytes not given out.
    out: Vec<u8>,
    written: u64,
    stats: Vec<ArrayStats>,
}

impl AvroEncoder {
    /// A file with these physical columns. `marker` separates its blocks: 16 bytes that no block holds by chance.
    ///
    /// Errors: `Unsupported` names a column of a type that Avro files do not have, or the codec.
    pub fn new(fields: &[DataField], settings: &AvroSettings, marker: [u8; MARKER]) -> Result<Self, FormatError> {
        let schema = to_json(fields)?.to_string();
        let codec = match codec_by_name(&settings.codec).map_err(FormatError::unsupported)? {
            Codec::Zstandard(_) => Codec::Zstandard(ZstandardSettings::new(settings.zstd_level)),
            codec => codec,
        };
        let mut out = MAGIC.to_vec();
        long(2, &mut out);
        for (key, value) in [
            ("avro.codec", settings.codec.as_str()),
            ("avro.schema", schema.as_str()),
        ] {
            bytes(key.as_bytes(), &mut out);
            bytes(value.as_bytes(), &mut out);
        }
        long(0, &mut out);
        out.extend_from_slice(&marker);
        Ok(Self {
            fields: fields.into(),
            codec,
            marker,
            block: Vec::new(),
            block_rows: 0,
            out,
            written: 0,
            stats: fields.iter().map(|_| ArrayStats::default()).collect(),
        })
    }

    fn end_block(&mut self) -> Result<(), FormatError> {
        if self.block_rows == 0 {
            return Ok(());
        }
        let mut block = std::mem::take(&mut self.block);
        self.codec
            .compress(&mut block)
            .map_err(|error| FormatError::internal(format!("Avro encoding: {error}")))?;
        long(self.block_rows, &mut self.out);
        bytes(&block, &mut self.out);
        self.out.extend_from_slice(&self.marker);
        self.block_rows = 0;
        block.clear();
        self.block = block;
        Ok(())
    }
}

impl FileEncoder for AvroEncoder {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        for (stats, column) in self.stats.iter_mut().zip(batch.columns()) {
            stats.add(column)?;
        }
        let fields = Arc::clone(&self.fields);
        let columns = fields.iter().zip(batch.columns()).map(|(field, column)| {
            let encoder = ColumnEncoder::new(&field.data_type.kind, field.data_type.nullable, column);
            encoder.ok_or_else(|| FormatError::internal(format!("column {} holds {}", field.name, column.data_type())))
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for column in &columns {
                column.value(row, &mut self.block);
            }
            self.block_rows += 1;
            if self.block.len() >= BLOCK_BYTES {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn size(&self) -> u64 {
        self.written + (self.out.len() + self.block.len()) as u64
    }

    fn take(&mut self) -> Result<Bytes, FormatError> {
        self.written += self.out.len() as u64;
        Ok(Bytes::from(std::mem::take(&mut self.out)))
    }

    fn finish(mut self: Box<Self>) -> Result<Encoded, FormatError> {
        self.end_block()?;
        Ok(Encoded {
            bytes: self.take()?,
            stats: self.stats.into_iter().map(ArrayStats::finish).collect(),
        })
    }
}
