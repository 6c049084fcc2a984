//! A Parquet file being written.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType as ArrowType, SchemaRef};
use bytes::Bytes;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::data_type::Int96Type;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, TypePtr};

use super::ParquetSettings;
use super::column_stats::LeafStats;
use super::dictionary::{hardly_repeats, overfills};
use super::levels::{Int96Column, LeafPath, leaf_paths};
use super::message::message_type;
use crate::error::FormatError;
use crate::formats::{Encoded, FileEncoder};
use crate::types::{DataField, arrow_schema};

/// Statistics longer than this are not written into the footer, as `org.apache.parquet` leaves them out.
const MAX_FOOTER_STATS_BYTES: usize = 4096;

/// Encodes a Parquet file. Also the encoding part of a compaction's lower bound: it needs no storage.
///
/// A row group ends when its encoded bytes reach [`ParquetSettings::row_group_bytes`]; until then it is held in memory.
pub struct ParquetEncoder {
    writer: SerializedFileWriter<Vec<u8>>,
    factory: ArrowRowGroupWriterFactory,
    settings: ParquetSettings,
    message: TypePtr,
    schema: SchemaRef,
    /// The leaves of each column.
    leaves: Vec<Vec<LeafPath>>,
    row_group: Option<RowGroup>,
    row_group_bytes: u64,
    stats: Vec<LeafStats>,
}

/// A row group that is not ended.
struct RowGroup {
    /// One a leaf.
    columns: Vec<ColumnWriter>,
    /// Per top-level column: a float column with a NaN, which Parquet's bounds leave out.
    nan: Vec<bool>,
    /// Per top-level column: whether it goes without a dictionary.
    plain: Vec<bool>,
}

enum ColumnWriter {
    Arrow(Box<ArrowColumnWriter>),
    Int96(Int96Column),
}

impl ParquetEncoder {
    /// A file with these physical columns.
    ///
    /// Errors: `Unsupported` names a column of a type that is not written; `Invalid` the compression.
    pub fn new(fields: &[DataField], settings: &ParquetSettings) -> Result<Self, FormatError> {
        let schema = Arc::new(arrow_schema(fields)?);
        let message = message_type(&schema).map_err(|error| FormatError::unsupported(error.to_string()))?;
        let properties = settings.properties(&SchemaDescriptor::new(Arc::clone(&message)), &[])?;
        let writer =
            SerializedFileWriter::new(Vec::new(), Arc::clone(&message), Arc::new(properties)).map_err(failed)?;
        Ok(Self {
            factory: ArrowRowGroupWriterFactory::new(&writer, Arc::clone(&schema)),
            writer,
            settings: settings.clone(),
            message,
            leaves: schema.fields().iter().map(|field| leaf_paths(field)).collect(),
            schema,
            row_group: None,
            row_group_bytes: settings.row_group_bytes.max(1),
            stats: fields
                .iter()
                .map(|field| LeafStats::new(&field.data_type.kind))
                .collect(),
        })
    }

    /// The writers of a row group, one a leaf. `plain`: which columns go without a dictionary.
    fn column_writers(&self, plain: &[bool]) -> Result<Vec<ArrowColumnWriter>, ParquetError> {
        let index = self.writer.flushed_row_groups().len();
        let fields = self.schema.fields().iter().zip(plain);
        let plain: Vec<&str> = fields
            .filter(|(_, plain)| **plain)
            .map(|(field, _)| field.name().as_str())
            .collect();
        if plain.is_empty() {
            return self.factory.create_column_writers(index);
        }
        // Properties are those of a file: an empty one lends them to this row group.
        let descriptor = SchemaDescriptor::new(Arc::clone(&self.message));
        let properties = self.settings.properties(&descriptor, &plain);
        let properties = properties.map_err(|error| ParquetError::General(error.to_string()))?;
        let lender = SerializedFileWriter::new(Vec::new(), Arc::clone(&self.message), Arc::new(properties))?;
        ArrowRowGroupWriterFactory::new(&lender, Arc::clone(&self.schema)).create_column_writers(index)
    }

    /// A row group that begins with a batch.
    fn begin_row_group(&self, first: &RecordBatch) -> Result<RowGroup, ParquetError> {
        let columns = self.schema.fields().iter().zip(first.columns());
        let plain: Vec<bool> = columns
            .map(|(field, column)| {
                self.settings.may_go_plain(field.name()) && hardly_repeats(column, self.settings.dictionary_page_bytes)
            })
            .collect();
        let writers = self.column_writers(&plain)?.into_iter();
        let columns = writers
            .zip(self.leaves.iter().flatten())
            .map(|(writer, leaf)| match leaf.is_int96 {
                true => ColumnWriter::Int96(Int96Column::default()),
                false => ColumnWriter::Arrow(Box::new(writer)),
            });
        Ok(RowGroup {
            columns: columns.collect(),
            nan: vec![false; self.leaves.len()],
            plain,
        })
    }

    /// Whether a batch has values that are too wide for a dictionary which the open row group has begun with narrow ones.
    fn overfills_dictionary(&self, row_group: &RowGroup, batch: &RecordBatch) -> bool {
        let columns = self.schema.fields().iter().zip(batch.columns());
        let mut with_dictionary = columns.zip(&row_group.plain).filter(|(_, plain)| !**plain);
        with_dictionary.any(|((field, column), _)| {
            self.settings.may_go_plain(field.name()) && overfills(column, self.settings.dictionary_page_bytes)
        })
    }

    fn write_rows(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let open = self.row_group.as_ref();
        if open.is_some_and(|row_group| self.overfills_dictionary(row_group, batch)) {
            self.end_row_group()?;
        }
        let row_group = match self.row_group.take() {
            Some(row_group) => row_group,
            None => self.begin_row_group(batch)?,
        };
        let row_group = self.row_group.insert(row_group);
        let mut writers = row_group.columns.iter_mut();
        for (i, (field, column)) in self.schema.fields().iter().zip(batch.columns()).enumerate() {
            if let Some(nan) = row_group.nan.get_mut(i) {
                *nan = *nan || has_nan(column);
            }
            let paths = self.leaves.get(i).map_or(&[][..], Vec::as_slice);
            let mut leaves = match paths {
                [path] if path.is_int96 => Vec::new(),
                _ => compute_leaves(field, column)?,
            }
            .into_iter();
            for path in paths {
                let written = match (writers.next(), leaves.next()) {
                    (Some(ColumnWriter::Arrow(writer)), Some(leaf)) => {
                        writer.write(&leaf)?;
                        true
                    }
                    (Some(ColumnWriter::Int96(writer)), _) => writer.append(column, path),
                    _ => false,
                };
                if !written {
                    return Err(ParquetError::General(format!(
                        "column {} has another shape",
                        field.name()
                    )));
                }
            }
        }
        if self.open_bytes() >= self.row_group_bytes {
            self.end_row_group()?;
        }
        Ok(())
    }

    /// Bytes of the row group that is not ended.
    fn open_bytes(&self) -> u64 {
        let columns = self.row_group.iter().flat_map(|group| &group.columns);
        let bytes = columns.map(|column| match column {
            ColumnWriter::Arrow(writer) => writer.get_estimated_total_bytes(),
            ColumnWriter::Int96(column) => column.memory_size(),
        });
        bytes.sum::<usize>() as u64
    }

    fn end_row_group(&mut self) -> Result<(), ParquetError> {
        let Some(row_group) = self.row_group.take() else {
            return Ok(());
        };
        let mut writer = self.writer.next_row_group()?;
        let mut columns = row_group.columns.into_iter();
        for (i, paths) in self.leaves.iter().enumerate() {
            let nan = row_group.nan.get(i).copied().unwrap_or(false);
            for _ in paths {
                match columns.next() {
                    Some(ColumnWriter::Arrow(column)) => {
                        let mut chunk = column.close()?;
                        let close = chunk.close_mut();
                        if let (Some(stats), [_]) = (self.stats.get_mut(i), paths.as_slice()) {
                            stats.add(close.metadata.statistics(), nan);
                        }
                        let long = close.metadata.statistics().is_some_and(|stats| {
                            let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
                            length(stats.min_bytes_opt()) + length(stats.max_bytes_opt()) >= MAX_FOOTER_STATS_BYTES
                        });
                        if nan || long {
                            // Bounds without the NaN would hide it from Java, for which it is larger than all numbers.
                            close.metadata = close.metadata.clone().into_builder().clear_statistics().build()?;
                        }
                        if nan {
                            close.column_index = None;
                        }
                        chunk.append_to_row_group(&mut writer)?;
                    }
                    Some(ColumnWriter::Int96(column)) => {
                        if let (Some(stats), [_]) = (self.stats.get_mut(i), paths.as_slice()) {
                            stats.add_nulls(column.definition.len() - column.values.len());
                        }
                        let mut out = writer
                            .next_column()?
                            .ok_or_else(|| ParquetError::General("no column".into()))?;
                        let levels = (Some(column.definition.as_slice()), Some(column.repetition.as_slice()));
                        out.typed::<Int96Type>()
                            .write_batch(&column.values, levels.0, levels.1)?;
                        out.close()?;
                    }
                    None => return Err(ParquetError::General("fewer columns than the schema has".into())),
                }
            }
        }
        writer.close()?;
        Ok(())
    }
}

impl FileEncoder for ParquetEncoder {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        if batch.num_columns() != self.leaves.len() {
            return Err(FormatError::internal(format!(
                "{} columns for a file of {}",
                batch.num_columns(),
                self.leaves.len()
            )));
        }
        if batch.num_rows() == 0 {
            return Ok(());
        }
        self.write_rows(batch).map_err(failed)
    }

    fn size(&self) -> u64 {
        self.writer.bytes_written() as u64 + self.open_bytes()
    }

    fn take(&mut self) -> Result<Bytes, FormatError> {
        self.writer.flush().map_err(failed)?;
        Ok(Bytes::from(std::mem::take(self.writer.inner_mut())))
    }

    fn finish(mut self: Box<Self>) -> Result<Encoded, FormatError> {
        self.end_row_group().map_err(failed)?;
        self.writer.finish().map_err(failed)?;
        Ok(Encoded {
            bytes: self.take()?,
            stats: self.stats.into_iter().map(LeafStats::finish).collect(),
        })
    }
}

fn failed(error: impl std::fmt::Display) -> FormatError {
    FormatError::internal(format!("Parquet encoding: {error}"))
}

/// Whether a float column has a NaN.
fn has_nan(column: &ArrayRef) -> bool {
    match column.data_type() {
        ArrowType::Float32 => column
            .as_primitive::<Float32Type>()
            .values()
            .iter()
            .any(|value| value.is_nan()),
        ArrowType::Float64 => column
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .any(|value| value.is_nan()),
        _ => false,
    }
}
