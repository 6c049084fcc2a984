//! One bucket's files, tree and merge, put together from the table's options.

use std::sync::Arc;

use async_trait::async_trait;
use paimon_format::FormatError;
use paimon_format::kv::{KvFileSettings, KvFiles, KvSchema, PartitionValue, SchemaSource, TableKvFiles};
use paimon_format::row::BinaryRow;
use paimon_format::types::DataField;
use paimon_manifest::SchemaStore;
use paimon_merge::engine::MergeEngine;

use crate::error::Result;
use crate::table::Table;

/// What all buckets of one use of a table share.
#[derive(Clone, Debug)]
pub(crate) struct BucketStores {
    table: Table,
    schema: Arc<KvSchema>,
    engine: Arc<dyn MergeEngine>,
    files: Arc<KvFileSettings>,
    schemas: Arc<dyn SchemaSource>,
}

impl BucketStores {
    /// Errors: `Unsupported`, `Invalid`, naming the option or column.
    pub(crate) fn new(table: &Table) -> Result<Self> {
        Ok(Self {
            schema: table.kv_schema()?,
            engine: table.merge_engine()?,
            files: Arc::new(KvFileSettings::from_options(table.options())?),
            schemas: Arc::new(StoredSchemas(table.schemas().clone())),
            table: table.clone(),
        })
    }

    /// The columns of records.
    pub(crate) fn schema(&self) -> &Arc<KvSchema> {
        &self.schema
    }

    /// The table's merge engine.
    pub(crate) fn engine(&self) -> &Arc<dyn MergeEngine> {
        &self.engine
    }

    /// The files of a bucket: one value a writer, as new files are named by it.
    pub(crate) fn kv_files(&self, partition: &BinaryRow, bucket: i32) -> Result<Arc<dyn KvFiles>> {
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
            table.paths().bucket(partition, bucket)?,
        );
        let files = files
            .settings(Arc::clone(&self.files))
            .partition(values)
            .schemas(Arc::clone(&self.schemas))
            .external(Arc::clone(table.context().storages()));
        Ok(Arc::new(files.build()))
    }
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
