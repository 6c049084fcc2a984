//! The writer of rows that have no bucket.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use paimon_format::env::{Budget, FileIds};
use paimon_format::kv::{KvFileSettings, KvFiles, KvSchemaRef};
use paimon_format::meta::{CommitIncrement, DataFileMeta, DataIncrement, FileSource, PathSettings, TablePaths};
use paimon_format::types::RowKind;
use paimon_lsm::write::{RecordBuffer, Records};

use crate::error::{Error, Result};
use crate::table::Table;

/// Rows that small batches are gathered to: few, as many partitions may be written at a time.
const BATCH_ROWS: usize = 1024;
/// Rows are numbered when they get a bucket. Source: `org.apache.paimon.KeyValue#UNKNOWN_SEQUENCE`.
const UNKNOWN_SEQUENCE: i64 = -1;

/// How one job writes rows that have no bucket: in Avro if it can hold them, without statistics, under names from which the files of one writer
/// can be told: `data--u-<commit user>-s-<number of the writer>-w-<UUID>-<n>.avro`.
///
/// Source: `org.apache.paimon.postpone.PostponeBucketFileStoreWrite`.
#[derive(Clone, Debug)]
pub(crate) struct PostponedFiles {
    pub(crate) paths: TablePaths,
    pub(crate) settings: Arc<KvFileSettings>,
}

impl PostponedFiles {
    /// For a writer of this commit user. Errors: `Invalid`, `Unsupported`, naming the option.
    pub(crate) fn new(table: &Table, user: &str, ids: &dyn FileIds) -> Result<Self> {
        let mut options = table.options().clone();
        let prefix = options.string("data-file.prefix").unwrap_or_else(|| "data-".to_owned());
        let writer = ids.jitter(i32::MAX as u64);
        options.set("data-file.prefix", format!("{prefix}-u-{user}-s-{writer}-w-"));
        let mut avro = options.clone();
        avro.set("file.format", "avro");
        avro.set("metadata.stats-mode", "none");
        let in_avro = KvFileSettings::from_options(&avro)?;
        let settings = match in_avro.check(&table.schema().fields) {
            Ok(()) => in_avro,
            Err(_) => KvFileSettings::from_options(&options)?,
        };
        let paths = PathSettings::from_options(table.partition_fields(), &options)?;
        Ok(Self {
            paths: TablePaths::new(paths),
            settings: Arc::new(settings),
        })
    }
}

/// Appends rows to files, in the order in which they come. Nothing is merged, sorted or numbered.
///
/// Rows wait in memory until a commit, or until the budget that all writers of the table share is used up: then they become a file of their
/// own, which is closed, so that a partition that is not written to just now holds no memory.
///
/// Source: `org.apache.paimon.postpone.PostponeBucketWriter`.
#[derive(Debug)]
pub(crate) struct PostponeBucketWriter {
    buffer: RecordBuffer,
    files: Arc<dyn KvFiles>,
    /// Files that no commit has got.
    written: Vec<Arc<DataFileMeta>>,
    /// A flush failed or was dropped half-way: rows are lost, nothing may be committed any more.
    broken: bool,
}

impl PostponeBucketWriter {
    /// Writes files of this schema.
    ///
    /// Errors: `Unsupported` when a key column's type has no order.
    pub(crate) fn new(schema: KvSchemaRef, files: Arc<dyn KvFiles>, buffers: Budget) -> Result<Self> {
        Ok(Self {
            buffer: RecordBuffer::new(schema, buffers, BATCH_ROWS)?,
            files,
            written: Vec::new(),
            broken: false,
        })
    }

    /// Takes rows with their kinds. Errors: those of [`flush_memory`](Self::flush_memory).
    pub(crate) async fn write(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<()> {
        self.check()?;
        let sequence = Int64Array::from_value(UNKNOWN_SEQUENCE, values.num_rows());
        match self.buffer.push(values, kinds, sequence)? {
            true => Ok(()),
            false => self.flush_memory().await,
        }
    }

    /// Bytes of rows that wait in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.buffer.memory_bytes()
    }

    /// Writes the rows that wait in memory to a file, or to several.
    ///
    /// Errors: those of writing. The rows are lost then, and every further call but [`close`](Self::close) fails.
    pub(crate) async fn flush_memory(&mut self) -> Result<()> {
        self.check()?;
        self.broken = true;
        let Records { batches, reserved } = self.buffer.take()?;
        let mut sink = self.files.data_sink(0, FileSource::Append);
        for batch in batches {
            if let Err(error) = sink.write(&batch).await {
                sink.abort().await;
                return Err(error.into());
            }
        }
        self.written.extend(sink.finish().await?.into_iter().map(Arc::new));
        drop(reserved);
        self.broken = false;
        Ok(())
    }

    /// Hands out what was flushed since the last call. Errors: `Invalid` after a flush that failed.
    pub(crate) fn drain_increment(&mut self) -> Result<CommitIncrement> {
        self.check()?;
        Ok(CommitIncrement {
            data: DataIncrement {
                new_files: std::mem::take(&mut self.written),
                ..DataIncrement::default()
            },
            ..CommitIncrement::default()
        })
    }

    fn check(&self) -> Result<()> {
        match self.broken {
            false => Ok(()),
            true => Err(Error::invalid(
                "rows were lost when a file could not be written: abort this writer, and write again from the last commit",
            )),
        }
    }

    /// Removes what was not handed out.
    pub(crate) async fn close(self) {
        for file in self.written {
            if let Err(error) = self.files.delete(&file).await {
                tracing::warn!(file = file.file_name, %error, "an unused file could not be deleted");
            }
        }
    }
}
