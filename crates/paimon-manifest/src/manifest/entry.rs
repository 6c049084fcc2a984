//! One line of a manifest: a data file that came or went.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::meta::{DataFileIdentity, DataFileMeta, FileSource, SimpleStats};
use paimon_format::row::BinaryRow;

use super::avro::{AvroError, AvroResult, Encoder, Value, required};
use crate::error::{ManifestError, Result};

const VERSION: i32 = 2;

/// Whether a manifest entry adds or removes its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// 0
    Add,
    /// 1
    Delete,
}

/// A data file that came or went.
///
/// Source: `org.apache.paimon.manifest.ManifestEntry`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Came or went.
    pub kind: FileKind,
    /// The partition's values, in the order of the partition keys.
    pub partition: BinaryRow,
    /// The bucket; -2 for postponed rows.
    pub bucket: i32,
    /// The bucket count of the partition when the file was written; -1 for dynamic buckets, -2 for postponed rows.
    pub total_buckets: i32,
    /// The file. An entry that removes it repeats all of it.
    pub file: Arc<DataFileMeta>,
}

/// What makes two entries speak of the same file: an upgraded file is another one, because its level differs.
///
/// Source: `org.apache.paimon.manifest.FileEntry.Identifier`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity<'a> {
    /// Partition.
    pub partition: &'a BinaryRow,
    /// Bucket.
    pub bucket: i32,
    /// The file.
    pub file: DataFileIdentity<'a>,
}

impl ManifestEntry {
    /// An entry that adds a file.
    pub fn add(partition: BinaryRow, bucket: i32, total_buckets: i32, file: Arc<DataFileMeta>) -> Self {
        Self {
            kind: FileKind::Add,
            partition,
            bucket,
            total_buckets,
            file,
        }
    }

    /// An entry that removes a file.
    pub fn delete(partition: BinaryRow, bucket: i32, total_buckets: i32, file: Arc<DataFileMeta>) -> Self {
        Self {
            kind: FileKind::Delete,
            ..Self::add(partition, bucket, total_buckets, file)
        }
    }

    /// Which file it speaks of.
    pub fn identity(&self) -> FileIdentity<'_> {
        FileIdentity {
            partition: &self.partition,
            bucket: self.bucket,
            file: self.file.identity(),
        }
    }

    /// Decodes a row of a manifest. Fields are found by name; unknown ones are skipped.
    pub(super) fn decode(row: Value<'_, '_, '_>) -> AvroResult<Self> {
        let (mut version, mut kind, mut partition, mut bucket, mut total_buckets, mut file) =
            (None, None, None, None, None, None);
        row.record(|name, value| {
            match name {
                "_VERSION" => version = Some(value.int()?),
                "_KIND" => kind = Some(value.int()?),
                "_PARTITION" => partition = Some(decode_row(value)?),
                "_BUCKET" => bucket = Some(value.int()?),
                "_TOTAL_BUCKETS" => total_buckets = Some(value.int()?),
                "_FILE" => file = Some(decode_file(value)?),
                _ => value.skip()?,
            }
            Ok(())
        })?;
        check_version(version, VERSION)?;
        Ok(Self {
            kind: decode_kind(kind)?,
            partition: required(partition, "_PARTITION")?,
            bucket: required(bucket, "_BUCKET")?,
            total_buckets: required(total_buckets, "_TOTAL_BUCKETS")?,
            file: Arc::new(required(file, "_FILE")?),
        })
    }

    /// Encodes a row of a manifest.
    pub(super) fn encode(&self, row: &mut Encoder) {
        row.int(VERSION);
        row.int(encode_kind(self.kind));
        row.bytes(&self.partition.to_serialized());
        row.int(self.bucket);
        row.int(self.total_buckets);
        encode_file(&self.file, row);
    }
}

/// Applies entries in order: an added file stays until an entry removes it; a removal of a file that was not added stays too,
/// because a later manifest may be about to meet it. The order of what stays is the order of the entries.
///
/// Errors: `Corrupt` when a file is added that is there already. Source: `FileEntry.mergeEntries`.
pub fn merge_entries<'a>(entries: impl IntoIterator<Item = &'a ManifestEntry>) -> Result<Vec<&'a ManifestEntry>> {
    let mut merged: Vec<Option<&ManifestEntry>> = Vec::new();
    let mut places: HashMap<FileIdentity<'a>, usize> = HashMap::new();
    for entry in entries {
        let place = places.get(&entry.identity()).copied();
        match (entry.kind, place) {
            (FileKind::Add, Some(_)) => {
                return Err(ManifestError::Conflict(format!(
                    "file {} of bucket {} is added although it is there already",
                    entry.file.file_name, entry.bucket
                )));
            }
            (FileKind::Delete, Some(place)) => {
                if let Some(slot) = merged.get_mut(place) {
                    *slot = None;
                }
                places.remove(&entry.identity());
            }
            (_, None) => {
                places.insert(entry.identity(), merged.len());
                merged.push(Some(entry));
            }
        }
    }
    Ok(merged.into_iter().flatten().collect())
}

pub(super) fn check_version(found: Option<i32>, expected: i32) -> AvroResult<()> {
    match found {
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(AvroError::new(format!(
            "_VERSION {found}, but only {expected} is known"
        ))),
        None => Err(AvroError::new("the required field _VERSION is missing")),
    }
}

pub(super) fn decode_kind(kind: Option<i32>) -> AvroResult<FileKind> {
    match required(kind, "_KIND")? {
        0 => Ok(FileKind::Add),
        1 => Ok(FileKind::Delete),
        other => Err(AvroError::new(format!(
            "_KIND {other} is neither 0 (add) nor 1 (delete)"
        ))),
    }
}

pub(super) fn encode_kind(kind: FileKind) -> i32 {
    match kind {
        FileKind::Add => 0,
        FileKind::Delete => 1,
    }
}

pub(super) fn decode_row(value: Value<'_, '_, '_>) -> AvroResult<BinaryRow> {
    Ok(BinaryRow::from_serialized(value.bytes()?.to_vec())?)
}

pub(super) fn decode_stats(value: Value<'_, '_, '_>) -> AvroResult<SimpleStats> {
    let (mut min_values, mut max_values, mut null_counts) = (None, None, None);
    value.record(|name, value| {
        match name {
            "_MIN_VALUES" => min_values = Some(decode_row(value)?),
            "_MAX_VALUES" => max_values = Some(decode_row(value)?),
            "_NULL_COUNTS" => null_counts = value.optional(|value| value.array(|item| item.optional(Value::long)))?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok(SimpleStats {
        min_values: required(min_values, "_MIN_VALUES")?,
        max_values: required(max_values, "_MAX_VALUES")?,
        null_counts: null_counts.unwrap_or_default(),
    })
}

pub(super) fn encode_stats(stats: &SimpleStats, row: &mut Encoder) {
    row.bytes(&stats.min_values.to_serialized());
    row.bytes(&stats.max_values.to_serialized());
    row.optional(Some(&stats.null_counts), |row, counts| {
        row.array(counts, |row, count| row.optional(*count, Encoder::long));
    });
}

fn strings(value: Value<'_, '_, '_>) -> AvroResult<Vec<String>> {
    value.array(|item| item.string())
}

fn decode_file(value: Value<'_, '_, '_>) -> AvroResult<DataFileMeta> {
    let (mut file_name, mut file_size, mut row_count, mut schema_id, mut level) = (None, None, None, None, None);
    let (mut min_key, mut max_key, mut key_stats, mut value_stats) = (None, None, None, None);
    let (mut min_sequence_number, mut max_sequence_number, mut extra_files) = (None, None, None);
    let (mut creation_time_ms, mut delete_row_count, mut embedded_index, mut file_source) = (None, None, None, None);
    let (mut value_stats_cols, mut external_path, mut first_row_id, mut write_cols) = (None, None, None, None);
    value.record(|name, value| {
        match name {
            "_FILE_NAME" => file_name = Some(value.string()?),
            "_FILE_SIZE" => file_size = Some(value.long()?),
            "_ROW_COUNT" => row_count = Some(value.long()?),
            "_MIN_KEY" => min_key = Some(decode_row(value)?),
            "_MAX_KEY" => max_key = Some(decode_row(value)?),
            "_KEY_STATS" => key_stats = Some(decode_stats(value)?),
            "_VALUE_STATS" => value_stats = Some(decode_stats(value)?),
            "_MIN_SEQUENCE_NUMBER" => min_sequence_number = Some(value.long()?),
            "_MAX_SEQUENCE_NUMBER" => max_sequence_number = Some(value.long()?),
            "_SCHEMA_ID" => schema_id = Some(value.long()?),
            "_LEVEL" => level = Some(value.int()?),
            "_EXTRA_FILES" => extra_files = Some(strings(value)?),
            "_CREATION_TIME" => creation_time_ms = value.optional(Value::long)?,
            "_DELETE_ROW_COUNT" => delete_row_count = value.optional(Value::long)?,
            "_EMBEDDED_FILE_INDEX" => embedded_index = value.optional(|value| Ok(value.bytes()?.to_vec()))?,
            "_FILE_SOURCE" => file_source = value.optional(decode_file_source)?,
            "_VALUE_STATS_COLS" => value_stats_cols = value.optional(strings)?,
            "_EXTERNAL_PATH" => external_path = value.optional(Value::string)?,
            "_FIRST_ROW_ID" => first_row_id = value.optional(Value::long)?,
            "_WRITE_COLS" => write_cols = value.optional(strings)?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok(DataFileMeta {
        file_name: required(file_name, "_FILE_NAME")?,
        file_size: required(file_size, "_FILE_SIZE")?,
        row_count: required(row_count, "_ROW_COUNT")?,
        min_key: required(min_key, "_MIN_KEY")?,
        max_key: required(max_key, "_MAX_KEY")?,
        key_stats: required(key_stats, "_KEY_STATS")?,
        value_stats: required(value_stats, "_VALUE_STATS")?,
        min_sequence_number: required(min_sequence_number, "_MIN_SEQUENCE_NUMBER")?,
        max_sequence_number: required(max_sequence_number, "_MAX_SEQUENCE_NUMBER")?,
        schema_id: required(schema_id, "_SCHEMA_ID")?,
        level: required(level, "_LEVEL")?,
        extra_files: required(extra_files, "_EXTRA_FILES")?,
        creation_time_ms,
        delete_row_count,
        embedded_index,
        file_source,
        value_stats_cols,
        external_path,
        first_row_id,
        write_cols,
    })
}

fn decode_file_source(value: Value<'_, '_, '_>) -> AvroResult<FileSource> {
    let byte = value.int()?;
    i8::try_from(byte)
        .ok()
        .and_then(FileSource::from_byte)
        .ok_or_else(|| AvroError::new(format!("{byte} is neither 0 (append) nor 1 (compact)")))
}

fn encode_file(file: &DataFileMeta, row: &mut Encoder) {
    row.string(&file.file_name);
    row.long(file.file_size);
    row.long(file.row_count);
    row.bytes(&file.min_key.to_serialized());
    row.bytes(&file.max_key.to_serialized());
    encode_stats(&file.key_stats, row);
    encode_stats(&file.value_stats, row);
    row.long(file.min_sequence_number);
    row.long(file.max_sequence_number);
    row.long(file.schema_id);
    row.int(file.level);
    encode_strings(row, &file.extra_files);
    row.optional(file.creation_time_ms, Encoder::long);
    row.optional(file.delete_row_count, Encoder::long);
    row.optional(file.embedded_index.as_deref(), Encoder::bytes);
    row.optional(file.file_source, |row, source| row.int(i32::from(source.to_byte())));
    row.optional(file.value_stats_cols.as_deref(), encode_strings);
    row.optional(file.external_path.as_deref(), Encoder::string);
    row.optional(file.first_row_id, Encoder::long);
    row.optional(file.write_cols.as_deref(), encode_strings);
}

fn encode_strings(row: &mut Encoder, strings: &[String]) {
    row.array(strings, |row, item| row.string(item));
}
