//! An ORC file being written.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use bytes::Bytes;
use orc_rust::ArrowWriterBuilder;
use orc_rust::compression::CompressionType;
use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::formats::array_stats::ArrayStats;
use crate::formats::{Encoded, FileEncoder};
use crate::options::Options;
use crate::types::{DataField, TypeKind, arrow_schema};

/// Where stripes end, in encoded bytes.
const STRIPE_BYTES: usize = 32 << 20;

/// How ORC files are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrcSettings {
    /// `zstd`, `snappy`, `lz4`, `zlib` or `none`: `orc.compress`, else `file.compression`.
    pub compression: String,
}

impl OrcSettings {
    /// From a table's `orc.compress` and the value of `file.compression`. `Unsupported` names another codec.
    pub fn from_options(options: &Options, compression: &str) -> Result<Self, FormatError> {
        let settings = Self {
            compression: options.get("orc.compress").unwrap_or(compression).to_ascii_lowercase(),
        };
        settings.codec()?;
        Ok(settings)
    }

    fn codec(&self) -> Result<Option<CompressionType>, FormatError> {
        Ok(match self.compression.as_str() {
            "zstd" => Some(CompressionType::Zstd),
            "snappy" => Some(CompressionType::Snappy),
            "lz4" => Some(CompressionType::Lz4),
            "zlib" => Some(CompressionType::Zlib),
            "none" | "uncompressed" => None,
            other => {
                return Err(FormatError::unsupported(format!(
                    "file compression {other:?} of ORC files; supported are zstd, snappy, lz4, zlib, none"
                )));
            }
        })
    }
}

/// Encodes an ORC file of flat columns.
///
/// The ORC library's writer cannot move between threads, so rows are kept until the file ends and are then encoded at once: a file
/// ends when its rows take the target size in memory.
pub struct OrcEncoder {
    codec: Option<CompressionType>,
    /// The columns as ORC has them.
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Bytes in memory of the batches.
    size: u64,
    stats: Vec<ArrayStats>,
}

impl OrcEncoder {
    /// A file with these physical columns.
    ///
    /// Errors: `Unsupported` names a column of a nested type or of DECIMAL, or the codec.
    pub fn new(fields: &[DataField], settings: &OrcSettings) -> Result<Self, FormatError> {
        let arrow = arrow_schema(fields)?;
        let mut physical = Vec::with_capacity(fields.len());
        for (field, arrow) in fields.iter().zip(arrow.fields()) {
            let of = match arrow.data_type() {
                ArrowType::Time32(_) => ArrowType::Int32,
                of if of.is_nested() || matches!(field.data_type.kind, TypeKind::Decimal(..)) => {
                    return Err(FormatError::unsupported(format!(
                        "writing column {} of type {} into ORC files: only flat types without DECIMAL",
                        field.name, field.data_type
                    )));
                }
                of => of.clone(),
            };
            physical.push(Field::new(&field.name, of, true));
        }
        Ok(Self {
            codec: settings.codec()?,
            schema: Arc::new(Schema::new(physical)),
            batches: Vec::new(),
            size: 0,
            stats: fields.iter().map(|_| ArrayStats::default()).collect(),
        })
    }
}

impl FileEncoder for OrcEncoder {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        for (stats, column) in self.stats.iter_mut().zip(batch.columns()) {
            stats.add(column)?;
        }
        let columns = batch.columns().iter().zip(self.schema.fields()).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                cast(column, field.data_type()).map_err(failed)
            }
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>()?;
        for column in &columns {
            self.size += column.to_data().get_slice_memory_size().map_err(failed)? as u64;
        }
        let physical = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(failed)?;
        self.batches.push(physical);
        Ok(())
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn take(&mut self) -> Result<Bytes, FormatError> {
        Ok(Bytes::new())
    }

    fn finish(self: Box<Self>) -> Result<Encoded, FormatError> {
        let mut bytes = Vec::new();
        let mut builder = ArrowWriterBuilder::new(&mut bytes, self.schema).with_stripe_byte_size(STRIPE_BYTES);
        if let Some(codec) = self.codec {
            builder = builder.with_compression(codec);
        }
        let mut writer = builder.try_build().map_err(failed)?;
        for batch in &self.batches {
            writer.write(batch).map_err(failed)?;
        }
        writer.close().map_err(failed)?;
        Ok(Encoded {
            bytes: Bytes::from(bytes),
            stats: self.stats.into_iter().map(ArrayStats::finish).collect(),
        })
    }
}

fn failed(error: impl std::fmt::Display) -> FormatError {
    FormatError::internal(format!("ORC encoding: {error}"))
}
