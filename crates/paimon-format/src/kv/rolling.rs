//! Files being written: rolled at the target size, described by their metadata.
//!
//! Source: `org.apache.paimon.io.RollingFileWriterImpl`, `org.apache.paimon.io.KeyValueDataFileWriter`.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use bytes::Bytes;

use crate::env::Env;
use crate::error::FormatError;
use crate::formats::{ColumnStats, Encoded, FileEncoder, StatsMode, simple_stats};
use crate::kv::file_settings::{FileUse, KvFileSettings};
use crate::kv::{
    BatchSink, KEY_ID_START, KEY_PREFIX, KvBatch, KvSchema, SEQUENCE_NUMBER, SEQUENCE_NUMBER_ID, VALUE_KIND,
    VALUE_KIND_ID, VALUE_OFFSET,
};
use crate::meta::{BucketPaths, DataFileMeta, DataFileNames, FileLocation, FileSource};
use crate::row::{BinaryRow, row_at};
use crate::storage::{FileRoots, StorageWriter};
use crate::types::{DataField, DataType, RowKind, TypeKind, arrow_schema};

/// The size is looked at when the records of all files of a sink are a multiple of this, as in Java.
const CHECK_RECORDS: u64 = 1000;
/// What a file can grow by beyond its rows: page headers, levels, dictionaries of short values.
const SIZE_SLACK_BYTES: u64 = 64 << 10;

/// What all sinks of a bucket share.
#[derive(Debug)]
pub(super) struct SinkParts {
    pub(super) roots: FileRoots,
    pub(super) env: Env,
    pub(super) paths: BucketPaths,
    pub(super) names: DataFileNames,
    pub(super) schema: Arc<KvSchema>,
    pub(super) settings: Arc<KvFileSettings>,
}

impl SinkParts {
    /// Removes a file that nobody will name.
    async fn delete(&self, place: FileLocation) {
        if let Err(error) = self.roots.delete(place.clone()).await {
            tracing::warn!(?place, %error, "an aborted file could not be deleted; the orphan check finds it");
        }
    }
}

/// The columns of a file in their order: `_KEY_` columns unless thin, sequence number, kind, values.
///
/// Source: `org.apache.paimon.KeyValue#schema`, `org.apache.paimon.table.SpecialFields`.
pub fn physical_fields(schema: &KvSchema, thin: bool) -> Vec<DataField> {
    let keys = schema.key_fields().filter(|_| !thin).map(|field| {
        let data_type = DataType::not_null(field.data_type.kind.clone());
        DataField::new(
            KEY_ID_START + field.id,
            format!("{KEY_PREFIX}{}", field.name),
            data_type,
        )
    });
    let system = [
        DataField::new(
            SEQUENCE_NUMBER_ID,
            SEQUENCE_NUMBER,
            DataType::not_null(TypeKind::BigInt),
        ),
        DataField::new(VALUE_KIND_ID, VALUE_KIND, DataType::not_null(TypeKind::TinyInt)),
    ];
    keys.chain(system).chain(schema.fields.iter().cloned()).collect()
}

/// Writes the files of one level.
pub(super) struct RollingSink {
    parts: Arc<SinkParts>,
    file_use: FileUse,
    level: i32,
    source: FileSource,
    fields: Arc<[DataField]>,
    /// Their Arrow form; an error is told at the first write.
    arrow: Result<SchemaRef, FormatError>,
    key_types: Vec<DataType>,
    /// Records of all files.
    records: u64,
    open: Option<OpenFile>,
    done: Vec<DataFileMeta>,
}

/// A file that is not ended.
struct OpenFile {
    name: String,
    place: FileLocation,
    writer: Box<dyn StorageWriter>,
    /// On the CPU pool while `None`.
    encoder: Option<Box<dyn FileEncoder>>,
    size: u64,
    rows: u64,
    deletes: i64,
    min_sequence: i64,
    max_sequence: i64,
    min_key: BinaryRow,
    max_key: BinaryRow,
}

impl RollingSink {
    pub(super) fn new(parts: Arc<SinkParts>, file_use: FileUse, level: i32, source: FileSource) -> Self {
        let fields: Arc<[DataField]> = physical_fields(&parts.schema, parts.settings.thin).into();
        Self {
            arrow: arrow_schema(&fields).map(Arc::new),
            key_types: parts.schema.key_fields().map(|field| field.data_type.clone()).collect(),
            parts,
            file_use,
            level,
            source,
            fields,
            records: 0,
            open: None,
            done: Vec::new(),
        }
    }

    /// The physical columns of a batch. Nothing is copied.
    fn physical(&self, batch: &KvBatch) -> Result<RecordBatch, FormatError> {
        let schema: SchemaRef = match &self.arrow {
            Ok(schema) => Arc::clone(schema),
            Err(error) => return Err(FormatError::unsupported(error)),
        };
        let keys = key_columns(batch).filter(|_| !self.parts.settings.thin);
        let columns: Vec<ArrayRef> = keys.chain(batch.columns.columns().iter()).map(Arc::clone).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(FormatError::invalid)
    }

    /// Appends all rows of a batch to the files.
    async fn append(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
        let physical = self.physical(batch)?;
        let bytes = physical
            .columns()
            .iter()
            .map(|column| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX));
        let bytes = bytes.fold(0_u64, |sum, bytes| sum.saturating_add(bytes as u64));
        let row_bytes = bytes.div_ceil(batch.len().max(1) as u64);
        let mut offset = 0;
        while offset < batch.len() {
            let target = self.parts.settings.target_file_bytes;
            let row_limit = self
                .parts
                .settings
                .target_file_rows
                .filter(|_| self.source == FileSource::Append);
            let row_limit = row_limit.filter(|_| self.file_use == FileUse::Data);
            if self.open.is_none() {
                self.create().await?;
            }
            let (size, file_rows) = self.open.as_ref().map_or((0, 0), |file| (file.size, file.rows));
            let left = (batch.len() - offset) as u64;
            // Far from the target no check can find it reached: then rows go in one piece, else up to the next check.
            let far = size
                .saturating_add(left.saturating_mul(row_bytes))
                .saturating_add(SIZE_SLACK_BYTES)
                < target;
            let mut rows = if far {
                left
            } else {
                left.min(CHECK_RECORDS - self.records % CHECK_RECORDS)
            };
            if let Some(limit) = row_limit {
                rows = rows.min(limit.saturating_sub(file_rows).max(1));
            }
            let piece = offset..offset + rows as usize;
            self.append_piece(batch, &physical, piece.clone()).await?;
            offset = piece.end;
            self.records += rows;
            let full = self.open.as_ref().is_some_and(|file| {
                row_limit.is_some_and(|limit| file.rows >= limit)
                    || (self.records.is_multiple_of(CHECK_RECORDS) && file.size >= target)
            });
            if full {
                self.end_file().await?;
            }
        }
        Ok(())
    }

    async fn create(&mut self) -> Result<(), FormatError> {
        let ids = &self.parts.env.ids;
        let marker = || {
            *ids.uuid()
                .replace('-', "")
                .as_bytes()
                .first_chunk::<16>()
                .unwrap_or(&[0; 16])
        };
        let encoder = self
            .parts
            .settings
            .encoder(self.file_use, self.level, &self.fields, marker)?;
        let format = self.parts.settings.file_format(self.file_use, self.level).to_string();
        let compression = self.parts.settings.file_compression(self.file_use, self.level);
        let name = match self.file_use {
            FileUse::Data => self.parts.names.data_file(&format, compression),
            FileUse::Changelog => self.parts.names.changelog_file(&format, compression),
        };
        let place = self.parts.names.place(&name);
        let (storage, path) = self.parts.roots.locate(place.clone()).await?;
        let writer = storage.create(&path).await?;
        self.open = Some(OpenFile {
            name,
            place,
            writer,
            encoder: Some(encoder),
            size: 0,
            rows: 0,
            deletes: 0,
            min_sequence: i64::MAX,
            max_sequence: i64::MIN,
            min_key: BinaryRow::empty(),
            max_key: BinaryRow::empty(),
        });
        Ok(())
    }

    /// Appends some rows to the open file.
    async fn append_piece(
        &mut self,
        batch: &KvBatch,
        physical: &RecordBatch,
        rows: std::ops::Range<usize>,
    ) -> Result<(), FormatError> {
        let keys: Vec<ArrayRef> = key_columns(batch).map(Arc::clone).collect();
        let Some(file) = &mut self.open else {
            return Err(FormatError::internal("no file is open"));
        };
        if file.rows == 0 {
            file.min_key = row_at(&keys, &self.key_types, rows.start)?;
        }
        file.max_key = row_at(&keys, &self.key_types, rows.end - 1)?;
        for &sequence in batch.sequence_numbers().get(rows.clone()).unwrap_or_default() {
            file.min_sequence = file.min_sequence.min(sequence);
            file.max_sequence = file.max_sequence.max(sequence);
        }
        let kinds = batch.kinds().get(rows.clone()).unwrap_or_default();
        let deletes = kinds
            .iter()
            .filter(|&&kind| RowKind::from_byte(kind).is_some_and(RowKind::is_retract));
        file.deletes += deletes.count() as i64;
        file.rows += rows.len() as u64;
        let piece = physical.slice(rows.start, rows.len());
        let mut encoder = file
            .encoder
            .take()
            .ok_or_else(|| FormatError::internal("a sink that failed was used again"))?;
        let work = move || {
            let bytes = encoder.write(&piece).and_then(|()| encoder.take());
            (encoder, bytes)
        };
        let (encoder, bytes) = self.parts.env.cpu(work).await?;
        let bytes = bytes?;
        file.size = encoder.size();
        file.encoder = Some(encoder);
        if !bytes.is_empty() {
            file.writer.write(bytes).await?;
        }
        Ok(())
    }

    /// Ends the open file, if there is one.
    async fn end_file(&mut self) -> Result<(), FormatError> {
        let Some(mut file) = self.open.take() else {
            return Ok(());
        };
        let ended = match file.encoder.take() {
            Some(encoder) => self
                .parts
                .env
                .cpu(move || encoder.finish())
                .await
                .and_then(|encoded| encoded),
            None => Err(FormatError::internal("a sink that failed was finished")),
        };
        let Encoded { bytes, stats } = match ended {
            Ok(encoded) => encoded,
            Err(error) => {
                file.writer.abort().await;
                return Err(error);
            }
        };
        let size = match upload(file.writer, bytes).await {
            Ok(size) => size,
            Err(error) => {
                // Unknown whether it is there.
                self.parts.delete(file.place).await;
                return Err(error);
            }
        };
        let meta = FileFacts {
            name: file.name,
            external_path: match file.place {
                FileLocation::Table(_) => None,
                FileLocation::External(path) => Some(path),
            },
            size,
            rows: file.rows,
            deletes: file.deletes,
            sequence: (file.min_sequence, file.max_sequence),
            keys: (file.min_key, file.max_key),
        };
        let meta = self.meta(meta, stats)?;
        self.done.push(meta);
        Ok(())
    }

    fn meta(&self, facts: FileFacts, stats: Vec<ColumnStats>) -> Result<DataFileMeta, FormatError> {
        let schema = &self.parts.schema;
        let is_key = |field: &DataField| schema.key_fields().any(|key| key.id == field.id);
        let modes = self
            .parts
            .settings
            .stats_modes(self.file_use, self.level, &self.fields, is_key);
        let kept = stats
            .into_iter()
            .zip(modes)
            .map(|(stats, mode): (_, StatsMode)| mode.keep(stats));
        let kept: Vec<(&DataField, ColumnStats)> = self.fields.iter().zip(kept).collect();
        let keys: Vec<(&DataField, &ColumnStats)> = schema
            .key_fields()
            .filter_map(|key| {
                let id = if self.parts.settings.thin {
                    key.id
                } else {
                    KEY_ID_START + key.id
                };
                kept.iter()
                    .find(|(field, _)| field.id == id)
                    .map(|(field, stats)| (*field, stats))
            })
            .collect();
        let first_value = self.fields.len() - schema.fields.len();
        let values = kept.iter().skip(first_value).map(|(field, stats)| (*field, stats));
        let dense = self.parts.settings.stats.dense;
        let covered: Vec<(&DataField, &ColumnStats)> = values.filter(|(_, stats)| !dense || !stats.is_none()).collect();
        let all_covered = covered.len() == schema.fields.len();
        let clock = &self.parts.env.clock;
        let now = clock.now_ms();
        Ok(DataFileMeta {
            file_name: facts.name,
            file_size: i64::try_from(facts.size).map_err(FormatError::internal)?,
            row_count: i64::try_from(facts.rows).map_err(FormatError::internal)?,
            min_key: facts.keys.0,
            max_key: facts.keys.1,
            key_stats: simple_stats(keys.iter().map(|(field, stats)| (&field.data_type, *stats)))?,
            value_stats: simple_stats(covered.iter().map(|(field, stats)| (&field.data_type, *stats)))?,
            min_sequence_number: facts.sequence.0,
            max_sequence_number: facts.sequence.1,
            schema_id: schema.schema_id,
            level: self.level,
            extra_files: Vec::new(),
            creation_time_ms: Some(now + clock.local_offset_ms(now)),
            delete_row_count: Some(facts.deletes),
            embedded_index: None,
            file_source: Some(self.source),
            value_stats_cols: (!all_covered).then(|| covered.iter().map(|(field, _)| field.name.clone()).collect()),
            external_path: facts.external_path,
            first_row_id: None,
            write_cols: None,
        })
    }

    /// Removes all files.
    async fn clear(&mut self) {
        if let Some(file) = self.open.take() {
            file.writer.abort().await;
        }
        for file in std::mem::take(&mut self.done) {
            self.parts.delete(self.parts.paths.data_file(&file)).await;
        }
    }
}

/// What is known of a file besides its statistics.
struct FileFacts {
    name: String,
    external_path: Option<String>,
    size: u64,
    rows: u64,
    deletes: i64,
    sequence: (i64, i64),
    keys: (BinaryRow, BinaryRow),
}

/// Writes the last bytes. Returns the file's size.
async fn upload(mut writer: Box<dyn StorageWriter>, bytes: Bytes) -> Result<u64, FormatError> {
    if !bytes.is_empty()
        && let Err(error) = writer.write(bytes).await
    {
        writer.abort().await;
        return Err(error.into());
    }
    Ok(writer.finish().await?)
}

/// The key columns of a batch, in key order.
fn key_columns(batch: &KvBatch) -> impl Iterator<Item = &ArrayRef> {
    batch
        .schema
        .key
        .iter()
        .filter_map(|&column| batch.columns.columns().get(column + VALUE_OFFSET))
}

#[async_trait]
impl BatchSink for RollingSink {
    async fn write(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
        self.append(batch).await
    }

    async fn finish(mut self: Box<Self>) -> Result<Vec<DataFileMeta>, FormatError> {
        match self.end_file().await {
            Ok(()) => Ok(std::mem::take(&mut self.done)),
            Err(error) => {
                self.clear().await;
                Err(error)
            }
        }
    }

    async fn abort(mut self: Box<Self>) {
        self.clear().await;
    }
}
