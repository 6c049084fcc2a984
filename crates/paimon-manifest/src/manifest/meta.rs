//! One line of a manifest list: what is known about a manifest without opening it.

use std::collections::HashSet;

use paimon_format::meta::SimpleStats;
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataType, Datum};

use super::avro::{AvroResult, Encoder, Value, required};
use super::entry::{FileKind, ManifestEntry, check_version, decode_stats, encode_stats};
use crate::error::Result;

const VERSION: i32 = 2;

/// A manifest as manifest lists describe it.
///
/// Source: `org.apache.paimon.manifest.ManifestFileMeta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFileMeta {
    /// Name only; it lies in `manifest/`.
    pub file_name: String,
    /// Exact size in bytes.
    pub file_size: i64,
    /// Entries that add files. Readers skip a manifest by it.
    pub num_added_files: i64,
    /// Entries that remove files. Readers skip a manifest by it.
    pub num_deleted_files: i64,
    /// Bounds of the partition columns.
    pub partition_stats: SimpleStats,
    /// The largest schema id of the entries.
    pub schema_id: i64,
    /// Smallest bucket; `None`: unknown, as in the next three.
    pub min_bucket: Option<i32>,
    /// Largest bucket.
    pub max_bucket: Option<i32>,
    /// Smallest level.
    pub min_level: Option<i32>,
    /// Largest level.
    pub max_level: Option<i32>,
    /// Row tracking: carried along.
    pub min_row_id: Option<i64>,
    /// Row tracking: carried along.
    pub max_row_id: Option<i64>,
}

impl ManifestFileMeta {
    /// Decodes a row of a manifest list.
    pub(super) fn decode(row: Value<'_, '_, '_>) -> AvroResult<Self> {
        let (mut version, mut file_name, mut file_size, mut schema_id) = (None, None, None, None);
        let (mut num_added_files, mut num_deleted_files, mut partition_stats) = (None, None, None);
        let (mut min_bucket, mut max_bucket, mut min_level, mut max_level) = (None, None, None, None);
        let (mut min_row_id, mut max_row_id) = (None, None);
        row.record(|name, value| {
            match name {
                "_VERSION" => version = Some(value.int()?),
                "_FILE_NAME" => file_name = Some(value.string()?),
                "_FILE_SIZE" => file_size = Some(value.long()?),
                "_NUM_ADDED_FILES" => num_added_files = Some(value.long()?),
                "_NUM_DELETED_FILES" => num_deleted_files = Some(value.long()?),
                "_PARTITION_STATS" => partition_stats = Some(decode_stats(value)?),
                "_SCHEMA_ID" => schema_id = Some(value.long()?),
                "_MIN_BUCKET" => min_bucket = value.optional(Value::int)?,
                "_MAX_BUCKET" => max_bucket = value.optional(Value::int)?,
                "_MIN_LEVEL" => min_level = value.optional(Value::int)?,
                "_MAX_LEVEL" => max_level = value.optional(Value::int)?,
                "_MIN_ROW_ID" => min_row_id = value.optional(Value::long)?,
                "_MAX_ROW_ID" => max_row_id = value.optional(Value::long)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        check_version(version, VERSION)?;
        Ok(Self {
            file_name: required(file_name, "_FILE_NAME")?,
            file_size: required(file_size, "_FILE_SIZE")?,
            num_added_files: required(num_added_files, "_NUM_ADDED_FILES")?,
            num_deleted_files: required(num_deleted_files, "_NUM_DELETED_FILES")?,
            partition_stats: required(partition_stats, "_PARTITION_STATS")?,
            schema_id: required(schema_id, "_SCHEMA_ID")?,
            min_bucket,
            max_bucket,
            min_level,
            max_level,
            min_row_id,
            max_row_id,
        })
    }

    /// Whether one of the partitions may have entries in it, judged by the bounds of its partition columns.
    ///
    /// Errors: `Corrupt` when a partition is not of these types.
    pub fn may_contain_partitions<'a>(
        &self,
        partitions: impl IntoIterator<Item = &'a BinaryRow>,
        types: &[DataType],
    ) -> Result<bool> {
        let stats = &self.partition_stats;
        if stats.min_values.arity() != types.len() || stats.max_values.arity() != types.len() {
            return Ok(true);
        }
        let min_values = stats.min_values.to_datums(types)?;
        let max_values = stats.max_values.to_datums(types)?;
        let inside = |column: usize, value: &Datum| match (value, min_values.get(column), max_values.get(column)) {
            (Datum::Null, ..) => stats.null_counts.get(column).copied().flatten() != Some(0),
            (_, Some(Datum::Null) | None, _) | (_, _, Some(Datum::Null) | None) => true,
            (value, Some(min), Some(max)) => min <= value && value <= max,
        };
        for partition in partitions {
            let partition = partition.to_datums(types)?;
            if partition
                .iter()
                .enumerate()
                .all(|(column, value)| inside(column, value))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Encodes a row of a manifest list.
    pub(super) fn encode(&self, row: &mut Encoder) {
        row.int(VERSION);
        row.string(&self.file_name);
        row.long(self.file_size);
        row.long(self.num_added_files);
        row.long(self.num_deleted_files);
        encode_stats(&self.partition_stats, row);
        row.long(self.schema_id);
        row.optional(self.min_bucket, Encoder::int);
        row.optional(self.max_bucket, Encoder::int);
        row.optional(self.min_level, Encoder::int);
        row.optional(self.max_level, Encoder::int);
        row.optional(self.min_row_id, Encoder::long);
        row.optional(self.max_row_id, Encoder::long);
    }
}

/// Gathers what a manifest list says about a manifest while its entries are written.
#[derive(Debug, Default)]
pub(super) struct ManifestSummary {
    added: i64,
    deleted: i64,
    schema_id: i64,
    buckets: Bounds<i32>,
    levels: Bounds<i32>,
    row_ids: Bounds<i64>,
    partitions: HashSet<BinaryRow>,
}

impl ManifestSummary {
    pub(super) fn add(&mut self, entry: &ManifestEntry) {
        match entry.kind {
            FileKind::Add => self.added += 1,
            FileKind::Delete => self.deleted += 1,
        }
        self.schema_id = self.schema_id.max(entry.file.schema_id);
        self.buckets.add(entry.bucket);
        self.levels.add(entry.file.level);
        if let Some(first) = entry.file.first_row_id {
            self.row_ids.add(first);
            self.row_ids.add(first.saturating_add(entry.file.row_count - 1));
        }
        if !self.partitions.contains(&entry.partition) {
            self.partitions.insert(entry.partition.clone());
        }
    }

    /// Errors: `Corrupt` when a partition is not of these types.
    pub(super) fn finish(
        self,
        file_name: String,
        file_size: i64,
        partition_types: &[DataType],
    ) -> Result<ManifestFileMeta> {
        Ok(ManifestFileMeta {
            file_name,
            file_size,
            num_added_files: self.added,
            num_deleted_files: self.deleted,
            partition_stats: partition_stats(&self.partitions, partition_types)?,
            schema_id: self.schema_id,
            min_bucket: self.buckets.min(),
            max_bucket: self.buckets.max(),
            min_level: self.levels.min(),
            max_level: self.levels.max(),
            min_row_id: self.row_ids.min(),
            max_row_id: self.row_ids.max(),
        })
    }
}

/// Full bounds of the partition columns; bounds of a column that is null everywhere are null.
fn partition_stats(partitions: &HashSet<BinaryRow>, types: &[DataType]) -> Result<SimpleStats> {
    let rows = partitions
        .iter()
        .map(|partition| partition.to_datums(types))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut min_values, mut max_values, mut null_counts) = (Vec::new(), Vec::new(), Vec::new());
    for column in 0..types.len() {
        let values = || rows.iter().filter_map(|row| row.get(column));
        let known = || values().filter(|value| !matches!(value, Datum::Null));
        min_values.push(known().min().cloned().unwrap_or(Datum::Null));
        max_values.push(known().max().cloned().unwrap_or(Datum::Null));
        null_counts.push(Some((values().count() - known().count()) as i64));
    }
    Ok(SimpleStats {
        min_values: BinaryRow::from_datums(&min_values, types)?,
        max_values: BinaryRow::from_datums(&max_values, types)?,
        null_counts,
    })
}

#[derive(Clone, Copy, Debug)]
struct Bounds<T> {
    range: Option<(T, T)>,
}

impl<T> Default for Bounds<T> {
    fn default() -> Self {
        Self { range: None }
    }
}

impl<T: Ord + Copy> Bounds<T> {
    fn add(&mut self, value: T) {
        let (min, max) = self.range.unwrap_or((value, value));
        self.range = Some((min.min(value), max.max(value)));
    }

    fn min(&self) -> Option<T> {
        self.range.map(|(min, _)| min)
    }

    fn max(&self) -> Option<T> {
        self.range.map(|(_, max)| max)
    }
}
