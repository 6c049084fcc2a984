//! File metadata as rows: the records of a commit message.
//!
//! Sources: `org.apache.paimon.io.DataFileMetaSerializer`, `org.apache.paimon.index.IndexFileMetaSerializer`.

use std::vec::IntoIter;

use super::{DataFileMeta, DeletionVectorRange, FileSource, GlobalIndexMeta, IndexFileMeta, SimpleStats};
use crate::FormatError;
use crate::row::BinaryRow;
use crate::types::{DataField, DataType, Datum, TypeKind};

/// The row types of a version's records.
#[derive(Debug)]
pub(super) struct RecordTypes {
    pub(super) data_file: Vec<DataType>,
    pub(super) index_file: Vec<DataType>,
    has_source_meta: bool,
    has_write_cols_sequences: bool,
}

impl RecordTypes {
    pub(super) fn of_version(version: i32) -> Result<Self, FormatError> {
        if !(11..=13).contains(&version) {
            return Err(FormatError::unsupported(format!(
                "commit messages of version {version}: 11 to 13 are known"
            )));
        }
        let has_source_meta = version >= 12;
        let has_write_cols_sequences = version >= 13;
        let (long, int) = (|| of(TypeKind::BigInt), || of(TypeKind::Int));
        let (string, binary) = (
            || of(TypeKind::VarChar(MAX_LENGTH)),
            || of(TypeKind::VarBinary(MAX_LENGTH)),
        );
        let array = |element| of(TypeKind::Array(Box::new(element)));
        let stats = || row([binary(), binary(), array(long())]);

        let mut data_file = vec![
            string(),
            long(),
            long(),
            binary(),
            binary(),
            stats(),
            stats(),
            long(),
            long(),
            long(),
            int(),
            array(string()),
            of(TypeKind::Timestamp(3)),
            long(),
            binary(),
            of(TypeKind::TinyInt),
            array(string()),
            string(),
            long(),
            array(string()),
        ];
        if has_write_cols_sequences {
            data_file.push(array(long()));
        }
        let mut global_index = vec![long(), long(), int(), array(int()), binary()];
        if has_source_meta {
            global_index.push(binary());
        }
        let index_file = vec![
            string(),
            string(),
            long(),
            long(),
            array(row([string(), int(), int(), long()])),
            string(),
            row(global_index),
        ];
        Ok(Self {
            data_file,
            index_file,
            has_source_meta,
            has_write_cols_sequences,
        })
    }
}

/// The length of STRING and BYTES.
const MAX_LENGTH: u32 = i32::MAX as u32;

fn of(kind: TypeKind) -> DataType {
    DataType::nullable(kind)
}

fn row(types: impl IntoIterator<Item = DataType>) -> DataType {
    let fields = types
        .into_iter()
        .zip(0..)
        .map(|(data_type, id)| DataField::new(id, format!("f{id}"), data_type));
    of(TypeKind::Row(fields.collect()))
}

pub(super) fn data_file_to_row(file: &DataFileMeta, types: &RecordTypes) -> Result<Vec<Datum>, FormatError> {
    let mut row = vec![
        Datum::String(file.file_name.clone()),
        Datum::Int64(file.file_size),
        Datum::Int64(file.row_count),
        Datum::Bytes(file.min_key.to_serialized()),
        Datum::Bytes(file.max_key.to_serialized()),
        stats_to_datum(&file.key_stats),
        stats_to_datum(&file.value_stats),
        Datum::Int64(file.min_sequence_number),
        Datum::Int64(file.max_sequence_number),
        Datum::Int64(file.schema_id),
        Datum::Int32(file.level),
        strings(&file.extra_files),
        optional(file.creation_time_ms, |millis| Datum::Timestamp { millis, nanos: 0 }),
        optional(file.delete_row_count, Datum::Int64),
        optional(file.embedded_index.clone(), Datum::Bytes),
        optional(file.file_source, |source| Datum::Int8(source.to_byte())),
        optional(file.value_stats_cols.as_deref(), strings),
        optional(file.external_path.clone(), Datum::String),
        optional(file.first_row_id, Datum::Int64),
        optional(file.write_cols.as_deref(), strings),
    ];
    if types.has_write_cols_sequences {
        row.push(Datum::Null);
    }
    Ok(row)
}

pub(super) fn data_file_from_row(row: Vec<Datum>) -> Result<DataFileMeta, FormatError> {
    let mut fields = Fields::new("data file", row);
    let file = DataFileMeta {
        file_name: fields.string()?,
        file_size: fields.long()?,
        row_count: fields.long()?,
        min_key: fields.binary_row()?,
        max_key: fields.binary_row()?,
        key_stats: fields.stats()?,
        value_stats: fields.stats()?,
        min_sequence_number: fields.long()?,
        max_sequence_number: fields.long()?,
        schema_id: fields.long()?,
        level: fields.int()?,
        extra_files: fields.strings()?.unwrap_or_default(),
        creation_time_ms: fields.millis()?,
        delete_row_count: fields.optional_long()?,
        embedded_index: fields.optional_bytes()?,
        file_source: fields.file_source()?,
        value_stats_cols: fields.strings()?,
        external_path: fields.optional_string()?,
        first_row_id: fields.optional_long()?,
        write_cols: fields.strings()?,
    };
    match fields.values.next() {
        None | Some(Datum::Null) => Ok(file),
        Some(_) => Err(FormatError::unsupported(format!(
            "sequence numbers by column, in the metadata of {}",
            file.file_name
        ))),
    }
}

pub(super) fn index_file_to_row(file: &IndexFileMeta, types: &RecordTypes) -> Result<Vec<Datum>, FormatError> {
    let global_index = match &file.global_index {
        None => Datum::Null,
        Some(index) if index.source_meta.is_some() && !types.has_source_meta => {
            return Err(FormatError::unsupported(format!(
                "the source metadata of index file {} in this version of commit messages",
                file.file_name
            )));
        }
        Some(index) => {
            let mut row = vec![
                Datum::Int64(index.row_range_start),
                Datum::Int64(index.row_range_end),
                Datum::Int32(index.index_field_id),
                optional(index.extra_field_ids.as_deref(), |ids| {
                    Datum::Array(ids.iter().copied().map(Datum::Int32).collect())
                }),
                optional(index.index_meta.clone(), Datum::Bytes),
            ];
            if types.has_source_meta {
                row.push(optional(index.source_meta.clone(), Datum::Bytes));
            }
            Datum::Row(row)
        }
    };
    Ok(vec![
        Datum::String(file.index_type.clone()),
        Datum::String(file.file_name.clone()),
        Datum::Int64(file.file_size),
        Datum::Int64(file.row_count),
        optional(file.dv_ranges.as_deref(), |ranges| {
            Datum::Array(ranges.iter().map(range_to_datum).collect())
        }),
        optional(file.external_path.clone(), Datum::String),
        global_index,
    ])
}

pub(super) fn index_file_from_row(row: Vec<Datum>) -> Result<IndexFileMeta, FormatError> {
    let mut fields = Fields::new("index file", row);
    Ok(IndexFileMeta {
        index_type: fields.string()?,
        file_name: fields.string()?,
        file_size: fields.long()?,
        row_count: fields.long()?,
        dv_ranges: fields
            .array()?
            .map(|ranges| ranges.into_iter().map(range_from_datum).collect())
            .transpose()?,
        external_path: fields.optional_string()?,
        global_index: match fields.next()? {
            Datum::Null => None,
            Datum::Row(row) => Some(global_index_from_row(row)?),
            _ => return Err(fields.wrong("a row")),
        },
    })
}

fn global_index_from_row(row: Vec<Datum>) -> Result<GlobalIndexMeta, FormatError> {
    let mut fields = Fields::new("global index", row);
    Ok(GlobalIndexMeta {
        row_range_start: fields.long()?,
        row_range_end: fields.long()?,
        index_field_id: fields.int()?,
        extra_field_ids: fields
            .array()?
            .map(|ids| {
                let mut ids = Fields::new("field ids of a global index", ids);
                (0..ids.values.len()).map(|_| ids.int()).collect()
            })
            .transpose()?,
        index_meta: fields.optional_bytes()?,
        source_meta: if fields.values.len() == 0 {
            None
        } else {
            fields.optional_bytes()?
        },
    })
}

fn range_to_datum(range: &DeletionVectorRange) -> Datum {
    Datum::Row(vec![
        Datum::String(range.data_file_name.clone()),
        Datum::Int32(range.offset),
        Datum::Int32(range.length),
        optional(range.cardinality, Datum::Int64),
    ])
}

fn range_from_datum(range: Datum) -> Result<DeletionVectorRange, FormatError> {
    let mut fields = Fields::new(
        "deletion vector range",
        match range {
            Datum::Row(row) => row,
            _ => Vec::new(),
        },
    );
    Ok(DeletionVectorRange {
        data_file_name: fields.string()?,
        offset: fields.int()?,
        length: fields.int()?,
        cardinality: fields.optional_long()?,
    })
}

fn stats_to_datum(stats: &SimpleStats) -> Datum {
    let null_counts = stats.null_counts.iter().map(|count| optional(*count, Datum::Int64));
    Datum::Row(vec![
        Datum::Bytes(stats.min_values.to_serialized()),
        Datum::Bytes(stats.max_values.to_serialized()),
        Datum::Array(null_counts.collect()),
    ])
}

fn strings(texts: &[String]) -> Datum {
    Datum::Array(texts.iter().cloned().map(Datum::String).collect())
}

fn optional<T>(value: Option<T>, datum: impl FnOnce(T) -> Datum) -> Datum {
    value.map_or(Datum::Null, datum)
}

/// The values of a record, taken one after the other.
struct Fields {
    record: &'static str,
    position: usize,
    values: IntoIter<Datum>,
}

impl Fields {
    fn new(record: &'static str, row: Vec<Datum>) -> Self {
        Self {
            record,
            position: 0,
            values: row.into_iter(),
        }
    }

    fn next(&mut self) -> Result<Datum, FormatError> {
        self.position += 1;
        self.values.next().ok_or_else(|| self.wrong("a value"))
    }

    fn wrong(&self, expected: &str) -> FormatError {
        FormatError::corrupt(
            "commit message",
            format!("{}: expected {expected} as field {}", self.record, self.position - 1),
        )
    }

    fn string(&mut self) -> Result<String, FormatError> {
        self.optional_string()?.ok_or_else(|| self.wrong("text"))
    }

    fn optional_string(&mut self) -> Result<Option<String>, FormatError> {
        match self.next()? {
            Datum::Null => Ok(None),
            Datum::String(text) => Ok(Some(text)),
            _ => Err(self.wrong("text")),
        }
    }

    fn long(&mut self) -> Result<i64, FormatError> {
        self.optional_long()?.ok_or_else(|| self.wrong("a number"))
    }

    fn optional_long(&mut self) -> Result<Option<i64>, FormatError> {
        match self.next()? {
            Datum::Null => Ok(None),
            Datum::Int64(number) => Ok(Some(number)),
            _ => Err(self.wrong("a number")),
        }
    }

    fn int(&mut self) -> Result<i32, FormatError> {
        match self.next()? {
            Datum::Int32(number) => Ok(number),
            _ => Err(self.wrong("a number")),
        }
    }

    fn optional_bytes(&mut self) -> Result<Option<Vec<u8>>, FormatError> {
        match self.next()? {
            Datum::Null => Ok(None),
            Datum::Bytes(bytes) => Ok(Some(bytes)),
            _ => Err(self.wrong("bytes")),
        }
    }

    fn binary_row(&mut self) -> Result<BinaryRow, FormatError> {
        let bytes = self.optional_bytes()?.ok_or_else(|| self.wrong("a row"))?;
        BinaryRow::from_serialized(bytes)
    }

    fn array(&mut self) -> Result<Option<Vec<Datum>>, FormatError> {
        match self.next()? {
            Datum::Null => Ok(None),
            Datum::Array(values) => Ok(Some(values)),
            _ => Err(self.wrong("an array")),
        }
    }

    fn strings(&mut self) -> Result<Option<Vec<String>>, FormatError> {
        let record = self.record;
        self.array()?
            .map(|values| {
                let mut texts = Self::new(record, values);
                (0..texts.values.len()).map(|_| texts.string()).collect()
            })
            .transpose()
    }

    fn millis(&mut self) -> Result<Option<i64>, FormatError> {
        match self.next()? {
            Datum::Null => Ok(None),
            Datum::Timestamp { millis, .. } => Ok(Some(millis)),
            _ => Err(self.wrong("a timestamp")),
        }
    }

    fn file_source(&mut self) -> Result<Option<FileSource>, FormatError> {
        match self.next()? {
            Datum::Null => Ok(None),
            Datum::Int8(byte) => FileSource::from_byte(byte)
                .map(Some)
                .ok_or_else(|| self.wrong("file source 0 or 1")),
            _ => Err(self.wrong("a file source")),
        }
    }

    fn stats(&mut self) -> Result<SimpleStats, FormatError> {
        let Datum::Row(row) = self.next()? else {
            return Err(self.wrong("statistics"));
        };
        let mut fields = Self::new("statistics", row);
        Ok(SimpleStats {
            min_values: fields.binary_row()?,
            max_values: fields.binary_row()?,
            null_counts: {
                let counts = fields.array()?.ok_or_else(|| fields.wrong("null counts"))?;
                let mut counts = Self::new("null counts", counts);
                (0..counts.values.len())
                    .map(|_| counts.optional_long())
                    .collect::<Result<_, _>>()?
            },
        })
    }
}
