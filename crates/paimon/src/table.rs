//! A table.

use std::sync::Arc;

use paimon_format::ErrorKind;
use paimon_format::dv::DeletionVectorsIndexFile;
use paimon_format::kv::{KvFileSettings, KvFiles};
use paimon_format::meta::{HashIndexFile, IndexFileNames, PathSettings, TablePaths};
use paimon_format::options::{Options, TableUse, check_options};
use paimon_format::row::BinaryRow;
use paimon_format::storage::{FileRoots, Storage};
use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_lsm::compact::pipeline::MIN_MERGE_BYTES;
use paimon_lsm::metrics::CompactionMetrics;
use paimon_manifest::commit::CommitSettings;
use paimon_manifest::manifest::ManifestSettings;
use paimon_manifest::scan::SplitSettings;
use paimon_manifest::schema::{SchemaBuilder, SchemaStore, TableSchema};
use paimon_manifest::snapshot::{ConsumerStore, Snapshot, SnapshotStore, TimeTravel};
use paimon_merge::engine::MergeEngine;

use crate::assign::{BucketAssigner, hash_index_file};
use crate::bucket::BucketStores;
use crate::changelog::ChangelogBuilder;
use crate::compact::CompactBuilder;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::options::{self, DeletionVectorSettings, RowSettings};
use crate::read::ReadBuilder;
use crate::write::WriteBuilder;

/// A table at one schema version, with the options of this use. Cheap to clone.
///
/// Opening looks at the schema only; whether its features are supported is checked by what needs them, so that the metadata of
/// any table can be looked at.
#[derive(Clone, Debug)]
pub struct Table {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    location: String,
    storage: Arc<dyn Storage>,
    context: Context,
    schema: Arc<TableSchema>,
    options: Options,
    /// The schema as it is stored, with its own options alone.
    stored: Arc<TableSchema>,
    /// Those of `options` that this use set.
    dynamic: Options,
    schemas: SchemaStore,
    snapshots: SnapshotStore,
    paths: TablePaths,
    /// Shared by all uses of this value.
    compaction_metrics: CompactionMetrics,
}

impl Table {
    /// Opens the table whose directory is at a path or URL. `options` hold for this use, on top of the schema's; storage
    /// settings among them (`s3.…`) are left out, as they belong to the [`Context`].
    ///
    /// Errors: `NotFound` when there is no table; `Unsupported` for one without primary key; `Invalid` naming an option;
    /// `Corrupt` naming the schema file.
    pub async fn open(location: &str, options: Options, context: &Context) -> Result<Self> {
        let location = trim_location(location);
        let storage = context.storages().open(location).await?;
        let schemas = SchemaStore::new(Arc::clone(&storage));
        let Some(schema) = schemas.latest().await? else {
            return Err(Error::not_found(format!(
                "{location} is no Paimon table: there is no schema/schema-<n> in it"
            )));
        };
        let metrics = compaction_metrics(location, context);
        Self::new(location, storage, context.clone(), schemas, schema, &options, metrics)
    }

    /// Makes a table at a path or URL, and opens it.
    ///
    /// Errors: `Invalid` for a schema or option that cannot be right, or when there is a table already; `Unsupported` naming an
    /// option or type that this engine could not write. Nothing is made then.
    pub async fn create(location: &str, schema: SchemaBuilder, context: &Context) -> Result<Self> {
        let location = trim_location(location);
        let schema = Arc::new(schema.build(context.env().clock.now_ms())?);
        let storage = context.storages().open(location).await?;
        let schemas = SchemaStore::new(Arc::clone(&storage));
        let metrics = compaction_metrics(location, context);
        let none = Options::new();
        let table = Self::new(location, storage, context.clone(), schemas, schema, &none, metrics)?;
        table.check_writable()?;
        // Listing first: a table whose schema 0 is gone is a table all the same.
        let there = table.inner.schemas.latest().await?.is_some();
        if there || !table.inner.schemas.create(&table.inner.schema).await? {
            return Err(Error::invalid(format!("{location}: there is a table already")));
        }
        Ok(table)
    }

    /// Whether there is a table at a path or URL.
    pub async fn exists(location: &str, context: &Context) -> Result<bool> {
        let storage = context.storages().open(trim_location(location)).await?;
        Ok(!SchemaStore::new(storage).list_ids().await?.is_empty())
    }

    fn new(
        location: &str,
        storage: Arc<dyn Storage>,
        context: Context,
        schemas: SchemaStore,
        stored: Arc<TableSchema>,
        dynamic: &Options,
        compaction_metrics: CompactionMetrics,
    ) -> Result<Self> {
        if stored.primary_keys.is_empty() {
            return Err(Error::unsupported(format!("{location} is a table without primary key")));
        }
        let options = options::with_dynamic_options(&stored.options, dynamic)?;
        let schema = if options == stored.options {
            Arc::clone(&stored)
        } else {
            Arc::new(TableSchema {
                options: options.clone(),
                ..TableSchema::clone(&stored)
            })
        };
        let dynamic = options::table_options(dynamic);
        let partition_fields = fields_of(&schema, &schema.partition_keys);
        let paths = TablePaths::new(PathSettings::from_options(partition_fields, &options)?);
        let snapshots = SnapshotStore::new(Arc::clone(&storage), context.env().clone());
        Ok(Self {
            inner: Arc::new(Inner {
                location: location.to_owned(),
                storage,
                context,
                schema,
                options,
                stored,
                dynamic,
                schemas,
                snapshots,
                paths,
                compaction_metrics,
            }),
        })
    }

    /// The same table with further options for this use. Errors: `Invalid` naming an option that cannot differ from the schema's.
    pub fn with_options(&self, options: &Options) -> Result<Self> {
        let mut dynamic = self.inner.dynamic.clone();
        for (key, value) in options.iter() {
            dynamic.set(key, value);
        }
        self.at(Arc::clone(&self.inner.stored), &dynamic)
    }

    /// The same table, with the options of this use, at its latest schema. Errors: as [`Table::open`].
    pub async fn refreshed(&self) -> Result<Self> {
        self.at(self.latest_schema().await?, &self.inner.dynamic)
    }

    /// The same table, with nothing taken for granted that was read of its schemas before. Errors: as [`Table::open`].
    pub(crate) fn forgetting_schemas(&self) -> Result<Self> {
        let schemas = SchemaStore::new(Arc::clone(self.storage()));
        self.with(schemas, Arc::clone(&self.inner.stored), &self.inner.dynamic)
    }

    /// Whether what this value reads is the table that `earlier` was, not another that was made where that one was dropped: the schema of
    /// `earlier` is still there, made at the same time. Cost: a read, unless that schema was read before.
    pub(crate) async fn is_still(&self, earlier: &Self) -> Result<bool> {
        let known = &earlier.inner.stored;
        match self.schema_by_id(known.id).await {
            Ok(schema) => Ok(schema == *known),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The latest schema, as it is stored. Errors: `NotFound` when there is none any more.
    pub(crate) async fn latest_schema(&self) -> Result<Arc<TableSchema>> {
        let latest = self.inner.schemas.latest().await?;
        latest.ok_or_else(|| Error::not_found(format!("{} is no table any more", self.location())))
    }

    /// The same table at an older or newer version of its schema. Errors: `NotFound`, `Corrupt`; else as [`Table::open`].
    pub(crate) async fn at_schema(&self, id: i64) -> Result<Self> {
        match self.inner.schema.id == id {
            true => Ok(self.clone()),
            false => self.at(self.schema_by_id(id).await?, &self.inner.dynamic),
        }
    }

    /// Its name in metrics and spans: `database.table` in a warehouse, else the last part of the location.
    pub(crate) fn metrics_name(&self) -> &str {
        self.inner.compaction_metrics.table()
    }

    /// What its compactions are measured by.
    pub(crate) fn compaction_metrics(&self) -> &CompactionMetrics {
        &self.inner.compaction_metrics
    }

    /// Those options that this use set.
    pub(crate) fn dynamic_options(&self) -> &Options {
        &self.inner.dynamic
    }

    /// The same table at a schema, with options for this use.
    pub(crate) fn at(&self, schema: Arc<TableSchema>, dynamic: &Options) -> Result<Self> {
        self.with(self.inner.schemas.clone(), schema, dynamic)
    }

    fn with(&self, schemas: SchemaStore, schema: Arc<TableSchema>, dynamic: &Options) -> Result<Self> {
        let inner = &self.inner;
        Self::new(
            &inner.location,
            Arc::clone(&inner.storage),
            inner.context.clone(),
            schemas,
            schema,
            dynamic,
            inner.compaction_metrics.clone(),
        )
    }

    /// Path or URL of its directory, without a slash at the end.
    pub fn location(&self) -> &str {
        &self.inner.location
    }

    /// The last part of the location.
    pub fn name(&self) -> &str {
        self.location().rsplit('/').next().unwrap_or_default()
    }

    /// The latest schema when it was opened. Its options are those of this use.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.inner.schema
    }

    /// A version of the schema. Errors: `NotFound`, `Corrupt`.
    pub async fn schema_by_id(&self, id: i64) -> Result<Arc<TableSchema>> {
        Ok(self.inner.schemas.get(id).await?)
    }

    /// The options of the schema, with those of this use.
    pub fn options(&self) -> &Options {
        &self.inner.options
    }

    /// What all tables of the process share.
    pub fn context(&self) -> &Context {
        &self.inner.context
    }

    /// The storage whose root is the table's directory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.inner.storage
    }

    /// Where its files lie, those outside of its directory too.
    pub(crate) fn file_roots(&self) -> FileRoots {
        FileRoots::new(Arc::clone(self.storage())).with_external(Arc::clone(self.context().storages()))
    }

    /// All schema versions.
    pub fn schemas(&self) -> &SchemaStore {
        &self.inner.schemas
    }

    /// Snapshots and tags.
    pub fn snapshot_store(&self) -> &SnapshotStore {
        &self.inner.snapshots
    }

    /// The newest snapshots, newest first, at most `limit`. One that expires meanwhile ends the list.
    pub async fn snapshots(&self, limit: usize) -> Result<Vec<Snapshot>> {
        let mut snapshots = Vec::new();
        let Some(latest) = self.inner.snapshots.latest_id().await? else {
            return Ok(snapshots);
        };
        for id in (1..=latest).rev().take(limit) {
            match self.inner.snapshots.find(id).await? {
                Some(snapshot) => snapshots.push(snapshot),
                None => break,
            }
        }
        Ok(snapshots)
    }

    /// Starts a read.
    pub fn read_builder(&self) -> ReadBuilder {
        ReadBuilder::new(self.clone())
    }

    /// Starts a read of changes: a stream that follows the table, or what changed between two states.
    pub fn changelog_builder(&self) -> ChangelogBuilder {
        ChangelogBuilder::new(self.clone())
    }

    /// How far named readers of changes have come.
    pub fn consumers(&self) -> ConsumerStore {
        ConsumerStore::new(self.inner.snapshots.clone())
    }

    /// Starts a write.
    pub fn write_builder(&self) -> WriteBuilder {
        WriteBuilder::new(self.clone())
    }

    /// Starts a compaction.
    pub fn compact_builder(&self) -> CompactBuilder {
        CompactBuilder::new(self.clone())
    }

    /// The files of a bucket, to read or make them one by one; new ones are named by this value.
    ///
    /// Errors: `Unsupported` or `Invalid`, naming the option or column; `Corrupt` when the row is no partition of the table.
    pub fn kv_files(&self, partition: &BinaryRow, bucket: i32) -> Result<Arc<dyn KvFiles>> {
        BucketStores::new(self)?.kv_files(partition, bucket)
    }

    /// The index files of a bucket's deletion vectors; new ones are named by this value. Errors as [`kv_files`](Self::kv_files).
    pub fn deletion_vectors(&self, partition: &BinaryRow, bucket: i32) -> Result<DeletionVectorsIndexFile> {
        BucketStores::new(self)?.deletion_vectors(partition, bucket)
    }

    /// The index files of the keys of a dynamic bucket; new ones are named by this value.
    ///
    /// Errors: `Corrupt` or `Invalid` when the row is no partition of the table.
    pub fn hash_index(&self, partition: &BinaryRow, bucket: i32) -> Result<HashIndexFile> {
        let names = Arc::new(IndexFileNames::new(Arc::clone(&self.context().env().ids)));
        hash_index_file(self, &names, partition, bucket)
    }

    /// Where its files lie.
    pub(crate) fn paths(&self) -> &TablePaths {
        &self.inner.paths
    }

    /// The partition columns, in the order of the path.
    pub(crate) fn partition_fields(&self) -> Vec<DataField> {
        fields_of(self.schema(), &self.schema().partition_keys)
    }

    /// The types of the trimmed primary key.
    pub(crate) fn key_types(&self) -> Result<Vec<DataType>> {
        Ok(self.types_of(&self.schema().trimmed_primary_key()?))
    }

    /// The types of columns, by position.
    pub(crate) fn types_of(&self, positions: &[usize]) -> Vec<DataType> {
        let fields = self.schema().fields_at(positions);
        fields.into_iter().map(|field| field.data_type).collect()
    }

    /// The merge engine that the options name. Errors: `Invalid`, `Unsupported`, naming the option.
    pub(crate) fn merge_engine(&self) -> Result<Arc<dyn MergeEngine>> {
        let schema = self.schema().kv_schema()?;
        let engine = self.context().registry().for_options(&schema, self.options())?;
        options::check_same_lookup(&self.inner.stored.options, self.options(), engine.promises())?;
        Ok(engine)
    }

    /// Whether rows can be read as Java reads them. Errors: `Unsupported` or `Invalid`, naming the option.
    pub(crate) fn check_readable(&self) -> Result<()> {
        check_options(self.options(), TableUse::Read)?;
        self.merge_engine()?;
        SplitSettings::from_options(self.options(), false)?;
        DeletionVectorSettings::from_options(self.options())?;
        Ok(())
    }

    /// Whether rows can be written as Java writes them. Errors: `Unsupported` or `Invalid`, naming the option.
    pub(crate) fn check_writable(&self) -> Result<()> {
        check_options(self.options(), TableUse::Write)?;
        let promises = self.merge_engine()?.promises();
        options::check_changelog(self.options(), promises, &self.schema().kv_schema()?)?;
        options::check_snapshot_ordering(self.options(), &self.inner.dynamic)?;
        let settings = RowSettings::from_options(self.options())?;
        if let Some(name) = &settings.row_kind_field {
            let wrong = match self.schema().field(name).map(|field| &field.data_type.kind) {
                None => "the table has no such column".to_owned(),
                Some(TypeKind::Char(_) | TypeKind::VarChar(_)) => String::new(),
                Some(other) => format!("it holds {other}, and must hold text"),
            };
            if !wrong.is_empty() {
                return Err(Error::invalid(format!("option 'rowkind.field' = '{name}': {wrong}")));
            }
        }
        ManifestSettings::from_options(self.options())?;
        CommitSettings::from_options(self.options())?;
        self.paths().check_partition_columns()?;
        BucketStores::new(self)?;
        BucketAssigner::new(self, false)?;
        KvFileSettings::from_options(self.options())?.check(&self.schema().fields)?;
        Ok(())
    }

    /// Whether there is memory enough for compactions, if this use of the table makes some. Errors: `Invalid` naming what is needed.
    pub(crate) fn check_memory(&self) -> Result<()> {
        let total = self.context().env().memory.total();
        if total >= MIN_MERGE_BYTES || self.options().bool("write-only")?.unwrap_or(false) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the memory budget is {total} bytes: compactions need at least {MIN_MERGE_BYTES} (write-only writers need none of it)"
        )))
    }

    /// `partition.default-name`: how a null in a partition is written by people.
    pub(crate) fn default_partition_name(&self) -> String {
        self.options()
            .string("partition.default-name")
            .unwrap_or_else(|| "__DEFAULT_PARTITION__".to_owned())
    }

    /// The snapshot that a read without a wish of its own sees.
    pub(crate) fn default_time_travel(&self) -> Result<TimeTravel> {
        Ok(options::time_travel(self.options(), &*self.context().env().clock)?)
    }
}

fn fields_of(schema: &TableSchema, names: &[String]) -> Vec<DataField> {
    names.iter().filter_map(|name| schema.field(name)).cloned().collect()
}

fn compaction_metrics(location: &str, context: &Context) -> CompactionMetrics {
    CompactionMetrics::new(&metrics_name(location), Arc::clone(&context.env().clock))
}

fn metrics_name(location: &str) -> String {
    let mut parts = location.rsplit('/');
    let table = parts.next().unwrap_or_default();
    match parts.next().and_then(|parent| parent.strip_suffix(".db")) {
        Some(database) if !database.is_empty() => format!("{database}.{table}"),
        _ => table.to_owned(),
    }
}

/// Without slashes at the end, which would make the name empty; `/` itself stays.
fn trim_location(location: &str) -> &str {
    match location.trim_end_matches('/') {
        "" => location,
        trimmed => trimmed,
    }
}
