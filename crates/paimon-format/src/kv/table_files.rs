//! The built-in [`KvFiles`]: the files of one bucket of a table.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{StreamExt, stream};

use crate::env::Env;
use crate::error::FormatError;
use crate::formats::{FileScan, scan_file};
use crate::kv::evolve::{Evolution, PartitionValue, SchemaSource};
use crate::kv::file_settings::{FileUse, KvFileSettings};
use crate::kv::reading::BatchMaker;
use crate::kv::rolling::{RollingSink, SinkParts};
use crate::kv::{BatchSink, FileFormat, KeyCodec, KvFiles, KvSchema, KvStream, ReadSpec};
use crate::meta::{BucketPaths, DataFileMeta, FileSource, format_of_file};
use crate::storage::{FileRoots, Storage, StorageFactory};
use crate::types::DataField;

/// The files of one bucket, below a table's root.
///
/// Made by [`TableKvFiles::builder`]. All new files of one value share a UUID in their names and count up: one value a writer.
#[derive(Clone, Debug)]
pub struct TableKvFiles {
    parts: Arc<SinkParts>,
    partition: Arc<[PartitionValue]>,
    schemas: Option<Arc<dyn SchemaSource>>,
}

/// Collects what a [`TableKvFiles`] needs.
#[derive(Debug)]
pub struct TableKvFilesBuilder {
    storage: Arc<dyn Storage>,
    env: Env,
    schema: Arc<KvSchema>,
    paths: BucketPaths,
    settings: Arc<KvFileSettings>,
    partition: Arc<[PartitionValue]>,
    schemas: Option<Arc<dyn SchemaSource>>,
    external: Option<Arc<dyn StorageFactory>>,
}

impl TableKvFiles {
    /// For a bucket at `paths` below the root of `storage`, whose files are written with all columns of `schema` and with Paimon's
    /// default settings.
    pub fn builder(
        storage: Arc<dyn Storage>,
        env: Env,
        schema: Arc<KvSchema>,
        paths: BucketPaths,
    ) -> TableKvFilesBuilder {
        TableKvFilesBuilder {
            storage,
            env,
            schema,
            paths,
            settings: Arc::default(),
            partition: Arc::from([]),
            schemas: None,
            external: None,
        }
    }

    /// The columns of a file's schema version.
    async fn fields(&self, file: &DataFileMeta) -> Result<Arc<[DataField]>, FormatError> {
        if file.schema_id == self.parts.schema.schema_id {
            return Ok(self.parts.schema.fields.as_slice().into());
        }
        match &self.schemas {
            Some(schemas) => schemas.fields(file.schema_id).await,
            None => Err(FormatError::invalid(format!(
                "{}: written with schema {}, and there is no source of schemas but {}",
                file.file_name, file.schema_id, self.parts.schema.schema_id
            ))),
        }
    }

    async fn start(self, file: DataFileMeta, read: ReadSpec) -> Result<KvStream, FormatError> {
        let (storage, path) = self.parts.roots.locate(self.parts.paths.data_file(&file)).await?;
        let format = format_of_file(&file.file_name)?;
        let format = FileFormat::parse(format)
            .ok_or_else(|| FormatError::unsupported(format!("{path}: a data file of the format {format:?}")))?;
        let file_size = u64::try_from(file.file_size)
            .map_err(|_| FormatError::corrupt(&path, format!("its metadata has the size {}", file.file_size)))?;
        let sequence = match (self.parts.settings.snapshot_ordering, file.file_source) {
            (false, _) | (true, Some(FileSource::Compact)) => None,
            (true, Some(FileSource::Append)) => Some(file.min_sequence_number),
            (true, None) => {
                return Err(FormatError::unsupported(format!(
                    "{path}: its metadata does not say what made it, which option 'sequence.snapshot-ordering' needs"
                )));
            }
        };
        let fields = self.fields(&file).await?;
        let evolution = Evolution::new(&fields, &read.schema, &self.partition)?;
        let maker = BatchMaker {
            path: path.clone(),
            level: file.level,
            sequence,
            codec: KeyCodec::new(&read.schema)?,
            evolution,
            read,
        };
        let scan = FileScan {
            path,
            file_size,
            fields: maker.evolution.read.clone(),
            filter: maker.file_filter(),
            batch: maker.read.batch,
            window_bytes: maker.read.window_bytes,
            page_cache: maker.read.page_cache.clone(),
        };
        Ok(scan_file(format, storage, self.parts.env.clone(), scan, move |rows| {
            maker.make(&rows)
        }))
    }
}

impl TableKvFilesBuilder {
    /// How files are written.
    #[must_use]
    pub fn settings(mut self, settings: Arc<KvFileSettings>) -> Self {
        self.settings = settings;
        self
    }

    /// The values of the partition columns: they are not read from files.
    #[must_use]
    pub fn partition(mut self, values: impl Into<Arc<[PartitionValue]>>) -> Self {
        self.partition = values.into();
        self
    }

    /// Where the columns of older schema versions come from. Without it files of other versions are refused.
    #[must_use]
    pub fn schemas(mut self, schemas: Arc<dyn SchemaSource>) -> Self {
        self.schemas = Some(schemas);
        self
    }

    /// Opens files that are not below the table's root. Without it they are refused.
    #[must_use]
    pub fn external(mut self, factory: Arc<dyn StorageFactory>) -> Self {
        self.external = Some(factory);
        self
    }

    /// The bucket's files. Nothing is read or written.
    pub fn build(self) -> TableKvFiles {
        let names = self.paths.new_names(self.env.ids.as_ref());
        let roots = FileRoots::new(self.storage);
        TableKvFiles {
            parts: Arc::new(SinkParts {
                roots: match self.external {
                    Some(factory) => roots.with_external(factory),
                    None => roots,
                },
                env: self.env,
                paths: self.paths,
                names,
                schema: self.schema,
                settings: self.settings,
            }),
            partition: self.partition,
            schemas: self.schemas,
        }
    }
}

#[async_trait]
impl KvFiles for TableKvFiles {
    fn open(&self, file: &DataFileMeta, read: ReadSpec) -> KvStream {
        let (this, file) = (self.clone(), file.clone());
        let rows = async move {
            match this.start(file, read).await {
                Ok(rows) => rows,
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        };
        stream::once(rows).flatten().boxed()
    }

    fn format(&self, level: i32) -> FileFormat {
        self.parts.settings.format(level)
    }

    fn data_sink(&self, level: i32, source: FileSource) -> Box<dyn BatchSink> {
        Box::new(RollingSink::new(Arc::clone(&self.parts), FileUse::Data, level, source))
    }

    fn changelog_sink(&self, level: i32) -> Box<dyn BatchSink> {
        Box::new(RollingSink::new(
            Arc::clone(&self.parts),
            FileUse::Changelog,
            level,
            FileSource::Append,
        ))
    }

    async fn delete(&self, file: &DataFileMeta) -> Result<(), FormatError> {
        self.parts.roots.delete(self.parts.paths.data_file(file)).await?;
        for name in &file.extra_files {
            self.delete_extra(file, name).await?;
        }
        Ok(())
    }

    async fn delete_extra(&self, file: &DataFileMeta, name: &str) -> Result<(), FormatError> {
        self.parts.roots.delete(self.parts.paths.extra_file(file, name)).await
    }
}
