//! The writer of rows that have no bucket.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, RecordBatchOptions};
use paimon_format::env::FileIds;
use paimon_format::kv::{BatchSink, KeyCodec, KvBatch, KvFileSettings, KvFiles, KvSchemaRef, RowLevels};
use paimon_format::meta::{CommitIncrement, DataIncrement, FileSource, PathSettings, TablePaths};
use paimon_format::types::RowKind;

use crate::error::{Error, Result};
use crate::table::Table;

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
/// Source: `org.apache.paimon.postpone.PostponeBucketWriter`.
pub(crate) struct PostponeBucketWriter {
    schema: KvSchemaRef,
    codec: KeyCodec,
    files: Arc<dyn KvFiles>,
    accepts_retract: bool,
    /// The file that is open.
    sink: Option<Box<dyn BatchSink>>,
}

impl PostponeBucketWriter {
    /// Writes files of this schema. `accepts_retract`: the merge engine will take -U and -D rows.
    pub(crate) fn new(schema: KvSchemaRef, files: Arc<dyn KvFiles>, accepts_retract: bool) -> Result<Self> {
        Ok(Self {
            codec: KeyCodec::new(&schema)?,
            schema,
            files,
            accepts_retract,
            sink: None,
        })
    }

    /// Takes rows with their kinds. Errors: `Invalid` for a kind that the merge engine would refuse later; nothing is taken then.
    pub(crate) async fn write(&mut self, values: &RecordBatch, kinds: &[RowKind]) -> Result<()> {
        if let Some(kind) = kinds.iter().find(|kind| kind.is_retract() && !self.accepts_retract) {
            return Err(Error::invalid(format!(
                "the table's merge engine does not merge {} rows",
                kind.short_string()
            )));
        }
        let sequence: ArrayRef = Arc::new(Int64Array::from_value(UNKNOWN_SEQUENCE, values.num_rows()));
        let kinds: ArrayRef = Arc::new(Int8Array::from_iter_values(kinds.iter().map(|&kind| kind as i8)));
        let columns = [sequence, kinds]
            .into_iter()
            .chain(values.columns().iter().map(Arc::clone));
        let options = RecordBatchOptions::new().with_row_count(Some(values.num_rows()));
        let columns = columns.collect();
        let columns = RecordBatch::try_new_with_options(Arc::clone(&self.schema.arrow), columns, &options)?;
        let batch = KvBatch::new(&self.schema, columns, &self.codec, RowLevels::All(0))?;
        let files = &self.files;
        let sink = self.sink.get_or_insert_with(|| files.data_sink(0, FileSource::Append));
        Ok(sink.write(&batch).await?)
    }

    /// Ends the file and hands out what was written since the last call.
    pub(crate) async fn prepare_commit(&mut self) -> Result<CommitIncrement> {
        let new_files = match self.sink.take() {
            Some(sink) => sink.finish().await?,
            None => Vec::new(),
        };
        Ok(CommitIncrement {
            data: DataIncrement {
                new_files: new_files.into_iter().map(Arc::new).collect(),
                ..DataIncrement::default()
            },
            ..CommitIncrement::default()
        })
    }

    /// Removes what was not handed out.
    pub(crate) async fn close(self) {
        if let Some(sink) = self.sink {
            sink.abort().await;
        }
    }
}

impl std::fmt::Debug for PostponeBucketWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostponeBucketWriter")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}
