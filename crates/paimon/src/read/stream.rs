//! From splits to batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use futures::channel::mpsc;
use futures::stream::BoxStream;
use futures::{SinkExt, StreamExt, stream};
use paimon_format::kv::KvSchema;
use paimon_format::types::arrow_schema;

use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::read::{ReadBuilder, Split};

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

/// How the rows of a split become those that the caller wants.
#[derive(Debug)]
struct Shape {
    stores: BucketStores,
    /// Columns that are read: those that come out, those that the filter tests, keys and sequence.
    columns: Arc<KvSchema>,
    /// Positions in `columns` of those that come out.
    output: Vec<usize>,
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
    /// read ahead holds two batches until they are wanted.
    ///
    /// Errors (in the stream, which ends there): `NotFound` when the snapshot has expired meanwhile; `Corrupt`, `Unsupported` and
    /// `Unavailable`, naming the file.
    pub fn stream(&self, splits: Vec<Split>) -> Result<RowStream> {
        let table = &self.read.table;
        table.check_readable()?;
        let shape = Arc::new(Shape::new(&self.read, self.schema()?)?);
        let starts = stream::iter(splits).map(move |split| {
            let shape = Arc::clone(&shape);
            async move { shape.start(split) }
        });
        let rows = starts.buffered(self.parallelism).flatten();
        Ok(match self.read.limit {
            Some(limit) => limited(rows.boxed(), limit),
            None => rows.boxed(),
        })
    }
}

impl Shape {
    fn new(read: &ReadBuilder, schema: SchemaRef) -> Result<Self> {
        let stores = BucketStores::new(&read.table)?;
        let all = stores.schema();
        let mut wanted: Vec<usize> = read.columns.to_vec();
        if let Some(filter) = &read.filter {
            wanted.extend(filter.columns().into_iter().filter_map(|name| all.position(name)));
        }
        wanted.sort_unstable();
        wanted.dedup();
        let needed = stores.engine().needs(&wanted);
        let columns = Arc::new(all.project(&needed)?);
        let position = |field: &paimon_format::types::DataField| {
            columns
                .position(&field.name)
                .ok_or_else(|| Error::internal(format!("column {} is not read", field.name)))
        };
        Ok(Self {
            output: read.fields().iter().map(position).collect::<Result<_>>()?,
            columns,
            stores,
            schema,
            read: read.clone(),
        })
    }

    /// Starts to read a split in the background.
    fn start(self: Arc<Self>, split: Split) -> BoxStream<'static, Result<RecordBatch>> {
        let (mut sender, receiver) = mpsc::channel(1);
        let runtime = Arc::clone(&self.read.table.context().env().runtime);
        runtime.spawn(Box::pin(async move {
            let mut rows = match self.rows(&split) {
                Ok(rows) => rows,
                Err(error) => stream::iter([Err(error)]).boxed(),
            };
            while let Some(batch) = rows.next().await {
                let failed = batch.is_err();
                // Nobody listens any more: the read was given up.
                if sender.send(batch).await.is_err() || failed {
                    return;
                }
            }
        }));
        receiver.boxed()
    }

    /// The merged rows of a split that pass the filter, in the shape that the caller wants.
    fn rows(self: &Arc<Self>, split: &Split) -> Result<RowStream> {
        let paths = self.read.table.paths().bucket(&split.partition, split.bucket)?;
        let bucket = paths.directory().to_owned();
        let rows = self.stores.merged_rows(split, &self.columns, self.read.filter.as_deref())?;
        let shape = Arc::clone(self);
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| Error::from(error).in_bucket(&bucket))?;
            shape.finish(&batch)
        });
        Ok(rows.filter(|batch| futures::future::ready(!matches!(batch, Ok(batch) if batch.num_rows() == 0))).boxed())
    }

    /// The filter, then the projection.
    fn finish(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.read.filter {
            None => batch.clone(),
            Some(filter) => filter_record_batch(batch, &filter.evaluate(batch)?)?,
        };
        let projected = batch.project(&self.output)?;
        Ok(projected.with_schema(Arc::clone(&self.schema))?)
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
