//! One bucket's files, tree and merge, put together from the table's options.

use std::sync::Arc;

use arrow_array::{Int8Array, RecordBatch};
use async_trait::async_trait;
use paimon_format::FormatError;
use paimon_format::dv::{BucketDvMaintainer, DeletionVectorsIndexFile};
use paimon_format::env::{Budget, Env, StopSignal};
use paimon_format::kv::{KvFileSettings, KvFiles, KvSchema, PartitionValue, SchemaSource, TableKvFiles};
use paimon_format::meta::{BucketPaths, DataFileMeta, IndexFileMeta, IndexFileNames, POSTPONE_BUCKET};
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, Datum, RowKind, array_from_datums};
use paimon_lookup::{BucketRemoteLookups, LookupFileCache, LookupLevels, LookupSettings};
use paimon_lsm::compact::{MergeTreeCompactManager, MergeTreeCompactRewriter, RecordLevelExpire};
use paimon_lsm::levels::{KeyOrder, Section};
use paimon_lsm::lookup::LookupSource;
use paimon_lsm::pick::PickRule;
use paimon_lsm::read::MergeRead;
use paimon_lsm::write::{MergeTreeWriter, WriteSettings, WriterState, last_full_ms};
use paimon_manifest::scan::BucketFiles;
use paimon_manifest::schema::SchemaStore;
use paimon_merge::changelog::{LookupMergeFunction, LookupNeed};
use paimon_merge::engine::MergeEngine;

use crate::error::{Error, Result};
use crate::levels::BucketLevels;
use crate::options::DeletionVectorSettings;
use crate::postpone::{PostponeBucketWriter, PostponedFiles};
use crate::table::Table;
use crate::write::row_kinds;

/// What all buckets of one use of a table share.
#[derive(Clone, Debug)]
pub(crate) struct BucketStores {
    table: Table,
    schema: Arc<KvSchema>,
    keys: KeyOrder,
    engine: Arc<dyn MergeEngine>,
    settings: WriteSettings,
    expire: Option<RecordLevelExpire>,
    files: Arc<KvFileSettings>,
    schemas: Arc<dyn SchemaSource>,
    vectors: Option<DeletionVectorSettings>,
    index_names: Arc<IndexFileNames>,
    /// `None`: compactions do not look old rows up.
    lookups: Option<Lookups>,
    stop: StopSignal,
}

/// How old rows are looked up in all buckets of one use of a table.
#[derive(Clone, Debug)]
struct Lookups {
    settings: LookupSettings,
    cache: LookupFileCache,
    need: LookupNeed,
}

impl BucketStores {
    /// Errors: `Unsupported`, `Invalid`, naming the option or column.
    pub(crate) fn new(table: &Table) -> Result<Self> {
        let schema = Arc::new(table.schema().kv_schema()?);
        let options = table.options();
        let engine = table.merge_engine()?;
        let settings = WriteSettings::from_options(options, engine.promises())?;
        let lookup = settings.compact.lookup;
        let lookups = if lookup.need_lookup() {
            let settings = LookupSettings::from_options(options)?;
            Some(Lookups {
                cache: LookupFileCache::new(table.context().env().clone(), &settings),
                settings,
                need: lookup.need(engine.promises().newest_wins && schema.sequence.is_none()),
            })
        } else {
            None
        };
        Ok(Self {
            keys: KeyOrder::new(&schema)?,
            settings,
            lookups,
            engine,
            expire: RecordLevelExpire::from_options(options, &schema)?,
            files: Arc::new(KvFileSettings::from_options(options)?),
            schemas: Arc::new(StoredSchemas(table.schemas().clone())),
            vectors: DeletionVectorSettings::from_options(options)?,
            index_names: Arc::new(IndexFileNames::new(Arc::clone(&table.context().env().ids))),
            schema,
            table: table.clone(),
            stop: StopSignal::never(),
        })
    }

    /// Lets go of what is cached for look-ups and was not used for long. Those of the same table would do it; this is for when there are none.
    pub(crate) fn remove_idle_lookups(&self) {
        if let Some(lookups) = &self.lookups {
            lookups.cache.remove_idle();
        }
    }

    /// Writers do not wait long for compactions once it is time to stop.
    pub(crate) fn stop_on(mut self, stop: StopSignal) -> Self {
        self.stop = stop;
        self
    }

    /// Follows another version of the reference's picker.
    pub(crate) fn with_pick_rule(mut self, rule: PickRule) -> Self {
        self.settings.compact.strategy.universal.rule = rule;
        self
    }

    /// For writers that replace what is there: what their compactions find is told in no changelog.
    pub(crate) fn ignoring_previous_files(mut self) -> Self {
        self.settings.compact.ignore_previous_files = true;
        self
    }

    /// How buckets are written and compacted.
    pub(crate) fn settings(&self) -> &WriteSettings {
        &self.settings
    }

    /// Refuses rows that the merge engine would refuse once they are in a file: no compaction or read of their bucket would succeed any
    /// more. Errors: `Invalid`, naming the engine, the kind and what would allow it, or the column whose function cannot read a value.
    pub(crate) fn check_rows(&self, rows: &RecordBatch, kinds: &Int8Array) -> Result<()> {
        Ok(self.engine.check_rows(rows, &row_kinds(kinds)?)?)
    }

    /// As [`check_rows`](Self::check_rows), for one row with a value for each column of the table.
    pub(crate) fn check_row(&self, kind: RowKind, row: &[Datum]) -> Result<()> {
        if !self.engine.may_refuse(kind) {
            return Ok(());
        }
        let columns = self.schema.fields.iter().zip(row).map(|(field, value)| {
            // A -D may have nothing but its key.
            let mut field = field.clone();
            field.data_type.nullable = true;
            let column = array_from_datums(&field, [value])?;
            Ok((field.name, column, true))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_from_iter_with_nullable(columns)?;
        Ok(self.engine.check_rows(&rows, &[kind])?)
    }

    /// Files in sections that do not overlap.
    pub(crate) fn sections(&self, files: &[Arc<DataFileMeta>]) -> Result<Vec<Section>> {
        Ok(self.keys.sections(files)?)
    }

    /// A writer that goes on where the bucket's files end, and numbers its records from above theirs, or from `first_sequence` on if that is
    /// more.
    pub(crate) async fn writer(
        &self,
        partition: &BinaryRow,
        bucket: i32,
        live: Option<&BucketFiles>,
        buffers: Budget,
        first_sequence: i64,
    ) -> Result<MergeTreeWriter> {
        let files = live.map(|live| live.files.clone()).unwrap_or_default();
        let vectors = if self.settings.write_only {
            None
        } else {
            let index_files = live.map(BucketFiles::deletion_index_files).unwrap_or_default();
            self.vectors(partition, bucket, &index_files, &files).await?
        };
        let kv_files = self.kv_files(partition, bucket)?;
        let lookup = self.lookup(&kv_files, partition, bucket)?;
        let mut state = WriterState::restored(files);
        state.next_sequence = state.next_sequence.max(first_sequence);
        let builder = MergeTreeWriter::builder(Arc::clone(&self.schema), kv_files)
            .engine(Arc::clone(&self.engine))
            .settings(self.settings.clone())
            .env(self.env())
            .buffer_budget(buffers)
            .stop_on(self.stop.clone())
            .state(state)
            .expire(self.expire.clone())
            .lookup(lookup)
            .reporter(
                self.table
                    .compaction_metrics()
                    .passing_reporter(&self.name(partition, bucket)?),
            )
            .deletion_vectors(vectors);
        Ok(builder.build()?)
    }

    /// Where compactions of a bucket look old rows up; `None`: they do not.
    fn lookup(
        &self,
        files: &Arc<dyn KvFiles>,
        partition: &BinaryRow,
        bucket: i32,
    ) -> Result<Option<Arc<dyn LookupSource>>> {
        let Some(lookups) = &self.lookups else {
            return Ok(None);
        };
        let remote = BucketRemoteLookups::new(self.table.file_roots(), self.table.paths().bucket(partition, bucket)?);
        let levels = LookupLevels::builder(
            self.env(),
            Arc::clone(files),
            Arc::clone(&self.schema),
            lookups.cache.clone(),
        );
        let levels = levels
            .settings(lookups.settings.clone())
            .expire(self.expire.clone())
            .schemas(Arc::clone(&self.schemas))
            .remote(Arc::new(remote), lookups.need);
        Ok(Some(Arc::new(levels.build()?)))
    }

    /// The deletion vectors of a bucket with these files; `None`: a table without.
    ///
    /// Errors: `Invalid` when a bucket has vectors and the table's options say that it has none.
    pub(crate) async fn vectors(
        &self,
        partition: &BinaryRow,
        bucket: i32,
        index_files: &[Arc<IndexFileMeta>],
        files: &[Arc<DataFileMeta>],
    ) -> Result<Option<BucketDvMaintainer>> {
        if self.vectors.is_none() {
            return match index_files {
                [] => Ok(None),
                _ => Err(forgotten_vectors(
                    self.table.paths().bucket(partition, bucket)?.directory(),
                )),
            };
        }
        let index = self.deletion_vectors(partition, bucket)?;
        Ok(Some(BucketDvMaintainer::restore(index, index_files, files).await?))
    }

    /// What picks and runs the compactions of a bucket. Errors as [`vectors`](Self::vectors).
    pub(crate) fn compactor(&self, bucket: &BucketLevels) -> Result<MergeTreeCompactManager> {
        if self.vectors.is_none() && !bucket.deletion_index_files().is_empty() {
            return Err(forgotten_vectors(bucket.name()));
        }
        let settings = self.settings.compact.clone();
        let last_full_ms = last_full_ms(&bucket.levels().all_files(), settings.num_levels - 1, &self.env());
        let manager = MergeTreeCompactManager::new(
            bucket.levels().clone(),
            settings.strategy.strategy(last_full_ms),
            settings,
            self.rewriter(bucket.partition.row(), bucket.bucket)?,
            self.env(),
        );
        Ok(match bucket.vectors() {
            Some(vectors) => manager.with_deletion_vectors(vectors.clone()),
            None => manager,
        })
    }

    /// What runs compactions of a bucket: needs no tree.
    pub(crate) fn rewriter(&self, partition: &BinaryRow, bucket: i32) -> Result<Arc<MergeTreeCompactRewriter>> {
        let kv_files = self.kv_files(partition, bucket)?;
        let lookup = self.lookup(&kv_files, partition, bucket)?;
        let rewriter = MergeTreeCompactRewriter::new(
            self.env(),
            kv_files,
            Arc::clone(&self.schema),
            Arc::clone(&self.engine),
            self.settings.compact.clone(),
            self.expire.clone(),
            lookup,
        )?;
        let reporter = self.table.compaction_metrics().reporter(&self.name(partition, bucket)?);
        Ok(Arc::new(rewriter.with_reporter(reporter)))
    }

    /// A bucket's directory, relative to the table.
    fn name(&self, partition: &BinaryRow, bucket: i32) -> Result<String> {
        Ok(self.table.paths().bucket(partition, bucket)?.directory().to_owned())
    }

    /// The table that they are of.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// A merged or raw read of a bucket's files.
    pub(crate) fn merge_read(&self, partition: &BinaryRow, bucket: i32) -> Result<MergeRead> {
        let files = self.kv_files(partition, bucket)?;
        let engine = match self.settings.compact.lookup.need_lookup() {
            true => LookupMergeFunction::wrap(Arc::clone(&self.engine)),
            false => Arc::clone(&self.engine),
        };
        Ok(MergeRead::new(self.env(), files, Arc::clone(&self.schema), engine))
    }

    /// Reads and writes the deletion vectors of a bucket.
    pub(crate) fn deletion_vectors(&self, partition: &BinaryRow, bucket: i32) -> Result<DeletionVectorsIndexFile> {
        let table = &self.table;
        Ok(DeletionVectorsIndexFile::new(
            table.file_roots(),
            table.paths().bucket(partition, bucket)?,
            Arc::clone(&self.index_names),
            self.vectors.map(|vectors| vectors.kind).unwrap_or_default(),
        ))
    }

    fn env(&self) -> Env {
        self.table.context().env().clone()
    }

    /// A writer of a partition's rows that have no bucket yet.
    pub(crate) fn postponed(
        &self,
        partition: &BinaryRow,
        postponed: &PostponedFiles,
        buffers: Budget,
    ) -> Result<PostponeBucketWriter> {
        let paths = postponed.paths.bucket(partition, POSTPONE_BUCKET)?;
        let files = self.files_at(paths, &postponed.settings, partition)?;
        PostponeBucketWriter::new(Arc::clone(&self.schema), files, buffers)
    }

    /// The files of a bucket: one value a writer, as new files are named by it.
    pub(crate) fn kv_files(&self, partition: &BinaryRow, bucket: i32) -> Result<Arc<dyn KvFiles>> {
        self.files_at(self.table.paths().bucket(partition, bucket)?, &self.files, partition)
    }

    fn files_at(
        &self,
        paths: BucketPaths,
        settings: &Arc<KvFileSettings>,
        partition: &BinaryRow,
    ) -> Result<Arc<dyn KvFiles>> {
        let table = &self.table;
        let fields = table.partition_fields();
        let mut values = Vec::with_capacity(fields.len());
        for (position, field) in fields.iter().enumerate() {
            values.push(PartitionValue {
                field_id: field.id,
                value: partition.get(position, &field.data_type)?,
            });
        }
        let files = TableKvFiles::builder(
            Arc::clone(table.storage()),
            table.context().env().clone(),
            Arc::clone(&self.schema),
            paths,
        );
        let files = files
            .settings(Arc::clone(settings))
            .partition(values)
            .schemas(Arc::clone(&self.schemas))
            .external(Arc::clone(table.context().storages()));
        Ok(Arc::new(files.build()))
    }
}

/// The error of a bucket with deletion vectors in a table whose options say that there are none: who compacts without them brings
/// deleted rows back.
fn forgotten_vectors(bucket: &str) -> Error {
    Error::invalid(format!(
        "{bucket}: option 'deletion-vectors.enabled' = 'false': the bucket has deletion vectors; compact it fully with 'true' first"
    ))
}

/// The columns of the versions in a table's schema folder.
#[derive(Debug)]
struct StoredSchemas(SchemaStore);

#[async_trait]
impl SchemaSource for StoredSchemas {
    async fn fields(&self, schema_id: i64) -> Result<Arc<[DataField]>, FormatError> {
        let schema = self.0.get(schema_id).await.map_err(|error| match error {
            paimon_manifest::ManifestError::Format(error) => error,
            error => FormatError::corrupt(format!("schema/schema-{schema_id}"), error),
        })?;
        Ok(schema.fields.as_slice().into())
    }
}
