//! From splits to batches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use paimon_format::dv::DeletionVector;
use paimon_format::meta::DataFileMeta;
use paimon_format::predicate::Predicate;
use paimon_format::row::BinaryRow;
use paimon_format::types::arrow_schema;
use paimon_lsm::levels::Section;
use paimon_lsm::read::MergeRead;
use paimon_manifest::scan::DataSplit;

use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::read::{ReadBuilder, read_ahead};
use crate::table::Table;

/// Batches in the order of splits and, within a split, of keys.
pub type RowStream = BoxStream<'static, Result<RecordBatch>>;

/// Splits that are read ahead when the caller does not say.
const DEFAULT_PARALLELISM: usize = 4;

/// Reads splits.
///
/// Source: `org.apache.paimon.table.source.TableRead`.
#[derive(Clone, Debug)]
pub struct TableRead {
    read: ReadBuilder,
    parallelism: usize,
}

/// What all splits of a read share.
#[derive(Debug)]
pub(crate) struct SplitReader {
    stores: BucketStores,
    /// Of the batches that come out.
    schema: SchemaRef,
    read: ReadBuilder,
}

impl TableRead {
    pub(super) fn new(read: ReadBuilder) -> Self {
        Self {
            read,
            parallelism: DEFAULT_PARALLELISM,
        }
    }

    /// How many splits are read side by side, at least 1; 4 when not set.
    #[must_use]
    pub fn parallelism(self, splits: usize) -> Self {
        Self {
            parallelism: splits.max(1),
            ..self
        }
    }

    /// The Arrow schema of the batches.
    ///
    /// Errors: `Unsupported` naming a column whose type has no Arrow form.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(arrow_schema(self.read.fields())?))
    }

    /// The rows of these splits. Reading starts with the first poll; dropping the stream ends it. Memory is bounded: a split that is
    /// read ahead holds a batch or two until they are wanted.
    ///
    /// Errors (in the stream, which ends there): `NotFound` when the snapshot has expired meanwhile; `Corrupt`, `Unsupported` and
    /// `Unavailable`, naming the file.
    pub fn stream(&self, splits: Vec<DataSplit>) -> Result<RowStream> {
        self.read.table.check_readable()?;
        let stores = BucketStores::new(&self.read.table)?;
        let reader = Arc::new(SplitReader::new(&self.read, stores, self.schema()?)?);
        let runtime = Arc::clone(&self.read.table.context().env().runtime);
        let streams = splits.into_iter();
        let streams = streams.map(move |split| stream::once(Arc::clone(&reader).rows(split)).try_flatten().boxed());
        let rows = read_ahead(runtime, streams, self.parallelism);
        Ok(match self.read.limit {
            Some(limit) => limited(rows, limit),
            None => rows,
        })
    }
}

impl SplitReader {
    pub(crate) fn new(read: &ReadBuilder, stores: BucketStores, schema: SchemaRef) -> Result<Self> {
        if let Some(predicate) = &read.filter {
            predicate.check(&read.table.schema().fields)?;
        }
        Ok(Self {
            stores,
            schema,
            read: read.clone(),
        })
    }

    /// Reads all columns and rows of a table's splits.
    pub(crate) fn of_all_columns(table: &Table) -> Result<Self> {
        let read = ReadBuilder::new(table.clone());
        let schema = Arc::new(arrow_schema(read.fields())?);
        Self::new(&read, BucketStores::new(table)?, schema)
    }

    /// The rows of a split that the caller wants.
    pub(crate) async fn rows(self: Arc<Self>, split: DataSplit) -> Result<RowStream> {
        let name = self.bucket_name(&split.partition, split.bucket)?;
        let deleted = self.deleted(&split).await.map_err(|error| error.in_bucket(&name))?;
        let read = self.merge_read(&split.partition, split.bucket)?.with_deleted(deleted);
        let rows = if split.raw_convertible {
            read.raw(split.files)
        } else {
            read.merged(self.sections(&split.files)?)
        };
        let schema = self.schema();
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| Error::from(error).in_bucket(&name))?;
            Ok(batch.columns.with_schema(Arc::clone(&schema))?)
        });
        Ok(rows.boxed())
    }

    /// The deletion vectors of a split's files.
    async fn deleted(&self, split: &DataSplit) -> Result<HashMap<String, Arc<DeletionVector>>> {
        let files: HashSet<&str> = split.files.iter().map(|file| file.file_name.as_str()).collect();
        let index = self.stores.deletion_vectors(&split.partition, split.bucket)?;
        let mut deleted = HashMap::new();
        for index_file in split.deletion_index_files() {
            deleted.extend(index.read(&index_file, |name| files.contains(name)).await?);
        }
        Ok(deleted)
    }

    /// A read of a bucket's files with the columns and the filter of the caller.
    pub(crate) fn merge_read(&self, partition: &BinaryRow, bucket: i32) -> Result<MergeRead> {
        let read = self.stores.merge_read(partition, bucket)?;
        let read = read.with_projection(self.read.columns.to_vec());
        Ok(match &self.read.filter {
            Some(predicate) => read.with_filter(Predicate::clone(predicate)),
            None => read,
        })
    }

    /// Files in sections that do not overlap.
    pub(crate) fn sections(&self, files: &[Arc<DataFileMeta>]) -> Result<Vec<Section>> {
        self.stores.sections(files)
    }

    /// The schema of the batches that come out.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The bucket's directory, for messages.
    pub(crate) fn bucket_name(&self, partition: &BinaryRow, bucket: i32) -> Result<String> {
        let paths = self.read.table.paths().bucket(partition, bucket)?;
        Ok(paths.directory().to_owned())
    }
}

/// The first rows of a stream.
fn limited(rows: RowStream, limit: usize) -> RowStream {
    stream::unfold((rows, limit), |(mut rows, left)| async move {
        if left == 0 {
            return None;
        }
        match rows.next().await? {
            Err(error) => Some((Err(error), (rows, 0))),
            Ok(batch) => {
                let batch = batch.slice(0, batch.num_rows().min(left));
                let left = left - batch.num_rows();
                Some((Ok(batch), (rows, left)))
            }
        }
    })
    .boxed()
}
