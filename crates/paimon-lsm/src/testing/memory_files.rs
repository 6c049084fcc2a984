//! Data files that live in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use paimon_format::FormatError;
use paimon_format::kv::{
    BatchSink, FileFormat, KeyCodec, KvBatch, KvFiles, KvSchema, KvStream, ReadSpec, RowLevels, VALUE_OFFSET,
};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_format::row::row_at;
use paimon_format::storage::StorageError;
use paimon_format::types::DataType;

use super::file;

/// The files of one bucket, kept in memory: for tests of whatever reads or writes through [`KvFiles`]. Clones share the files.
///
/// Reads honour the schema asked for (by column name), hidden positions and the number of rows a batch; rows that do not pass the filter
/// never come, as if statistics told of each; record-level expire and key ranges are not applied. A file's size is its number of rows.
#[derive(Clone, Debug)]
pub struct MemoryKvFiles {
    schema: Arc<KvSchema>,
    /// Sinks begin a new file after so many rows.
    roll_rows: usize,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Vec<RecordBatch>>,
    made: usize,
    opened: Vec<String>,
}

impl MemoryKvFiles {
    /// No files. `schema` is the table's.
    pub fn new(schema: Arc<KvSchema>) -> Self {
        Self {
            schema,
            roll_rows: 1 << 20,
            state: Arc::default(),
        }
    }

    /// Sinks begin a new file when one has this many rows.
    pub fn with_roll_rows(mut self, rows: usize) -> Self {
        self.roll_rows = rows;
        self
    }

    /// Adds a file with these records, keys not descending.
    ///
    /// Errors: `Internal` when the batches have other columns than the table.
    pub fn add(&self, level: i32, batches: &[KvBatch]) -> Result<Arc<DataFileMeta>, FormatError> {
        let source = match level {
            0 => FileSource::Append,
            _ => FileSource::Compact,
        };
        let mut state = self.state();
        state.made += 1;
        let name = format!("data-{:04}.parquet", state.made);
        let meta = self.meta(&name, level, source, batches)?;
        let columns = batches.iter().map(|batch| batch.columns.clone()).collect();
        state.files.insert(name, columns);
        Ok(Arc::new(meta))
    }

    /// The names of all files that are there.
    pub fn names(&self) -> Vec<String> {
        self.state().files.keys().cloned().collect()
    }

    /// The names of the files opened so far, in order.
    pub fn opened(&self) -> Vec<String> {
        self.state().opened.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meta(
        &self,
        name: &str,
        level: i32,
        source: FileSource,
        batches: &[KvBatch],
    ) -> Result<DataFileMeta, FormatError> {
        let types: Vec<DataType> = self.schema.key_fields().map(|field| field.data_type.clone()).collect();
        let key = |batch: Option<&KvBatch>, last: bool| {
            let batch = batch.ok_or_else(|| FormatError::internal("a file without rows"))?;
            let columns: Vec<_> = self
                .schema
                .key
                .iter()
                .filter_map(|&column| batch.values().get(column))
                .map(Arc::clone)
                .collect();
            row_at(&columns, &types, if last { batch.len() - 1 } else { 0 })
        };
        let rows: usize = batches.iter().map(KvBatch::len).sum();
        let sequences = || batches.iter().flat_map(|batch| batch.sequence_numbers());
        let retracts = |batch: &KvBatch| (0..batch.len()).filter(|&row| batch.kind(row).is_retract()).count();
        Ok(DataFileMeta {
            row_count: rows as i64,
            min_key: key(batches.first(), false)?,
            max_key: key(batches.last(), true)?,
            min_sequence_number: sequences().min().copied().unwrap_or(-1),
            max_sequence_number: sequences().max().copied().unwrap_or(-1),
            delete_row_count: Some(batches.iter().map(retracts).sum::<usize>() as i64),
            file_source: Some(source),
            ..file(name, level, rows as i64)
        })
    }

    fn read(&self, meta: &DataFileMeta, spec: &ReadSpec) -> Result<Vec<KvBatch>, FormatError> {
        let mut state = self.state();
        state.opened.push(meta.file_name.clone());
        let file = state.files.get(&meta.file_name);
        let batches = file.ok_or_else(|| StorageError::not_found(&meta.file_name))?;
        let codec = KeyCodec::new(&spec.schema)?;
        let columns: Vec<usize> = (0..VALUE_OFFSET)
            .chain(
                spec.schema
                    .fields
                    .iter()
                    .filter_map(|field| Some(self.schema.position(&field.name)? + VALUE_OFFSET)),
            )
            .collect();
        let mut first = 0;
        let mut read = Vec::new();
        for batch in batches {
            let rows = batch.num_rows() as u64;
            let passes = spec.filter.as_ref().map(|filter| filter.evaluate(batch)).transpose()?;
            let is_wanted = |row: u64| {
                let deleted = spec.deleted.as_ref().is_some_and(|deleted| deleted.contains(row));
                let passes = passes
                    .as_ref()
                    .is_none_or(|passes| passes.value((row - first) as usize));
                !deleted && passes
            };
            let kept: Vec<u64> = (first..first + rows).filter(|&row| is_wanted(row)).collect();
            let mask: BooleanArray = (first..first + rows).map(|row| Some(is_wanted(row))).collect();
            first += rows;
            let projected = batch
                .project(&columns)
                .and_then(|batch| filter_record_batch(&batch, &mask));
            let projected = projected.map_err(FormatError::internal)?;
            let mut all = KvBatch::new(&spec.schema, projected, &codec, RowLevels::All(meta.level))?;
            all.positions = spec.positions.then(|| kept.into());
            let step = spec.batch.rows.max(1);
            read.extend(
                (0..all.len())
                    .step_by(step)
                    .map(|start| all.slice(start, step.min(all.len() - start))),
            );
        }
        Ok(read)
    }
}

#[async_trait]
impl KvFiles for MemoryKvFiles {
    fn open(&self, file: &DataFileMeta, read: ReadSpec) -> KvStream {
        let (files, file) = (self.clone(), file.clone());
        stream::once(async move { files.read(&file, &read) })
            .flat_map(|batches| match batches {
                Ok(batches) => stream::iter(batches.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(error) => stream::iter(vec![Err(error)]),
            })
            .boxed()
    }

    fn format(&self, _level: i32) -> FileFormat {
        FileFormat::Parquet
    }

    fn data_sink(&self, level: i32, _source: FileSource) -> Box<dyn BatchSink> {
        Box::new(MemorySink {
            files: self.clone(),
            level,
            open: Vec::new(),
            finished: Vec::new(),
        })
    }

    fn changelog_sink(&self, level: i32) -> Box<dyn BatchSink> {
        self.data_sink(level, FileSource::Append)
    }

    async fn delete(&self, file: &DataFileMeta) -> Result<(), FormatError> {
        let mut state = self.state();
        for name in std::iter::once(&file.file_name).chain(&file.extra_files) {
            state.files.remove(name);
        }
        Ok(())
    }

    async fn delete_extra(&self, _file: &DataFileMeta, name: &str) -> Result<(), FormatError> {
        self.state().files.remove(name);
        Ok(())
    }
}

/// Collects records into files.
struct MemorySink {
    files: MemoryKvFiles,
    level: i32,
    open: Vec<KvBatch>,
    finished: Vec<Arc<DataFileMeta>>,
}

impl MemorySink {
    fn roll(&mut self) -> Result<(), FormatError> {
        if !self.open.is_empty() {
            let open = std::mem::take(&mut self.open);
            self.finished.push(self.files.add(self.level, &open)?);
        }
        Ok(())
    }
}

#[async_trait]
impl BatchSink for MemorySink {
    async fn write(&mut self, batch: &KvBatch) -> Result<(), FormatError> {
        self.open.push(batch.clone());
        if self.open.iter().map(KvBatch::len).sum::<usize>() >= self.files.roll_rows {
            self.roll()?;
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<Vec<DataFileMeta>, FormatError> {
        self.roll()?;
        Ok(self.finished.iter().map(|file| file.as_ref().clone()).collect())
    }

    async fn abort(self: Box<Self>) {
        let mut state = self.files.state();
        for file in &self.finished {
            state.files.remove(&file.file_name);
        }
    }
}
