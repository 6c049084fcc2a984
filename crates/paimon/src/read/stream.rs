//! From splits to batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use futures::channel::mpsc;
use futures::stream::BoxStream;
use futures::{SinkExt, StreamExt, stream};
use paimon_format::predicate::Predicate;
use paimon_format::types::arrow_schema;
use paimon_lsm::LsmError;
use paimon_lsm::read::RowFilter;
use paimon_manifest::scan::DataSplit;

use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::read::ReadBuilder;
use crate::read::keys::key_range;

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
struct SplitReader {
    stores: BucketStores,
    filter: Option<Arc<dyn RowFilter>>,
    /// Of the batches that come out.
    schema: SchemaRef,
    read: ReadBuilder,
}

/// A predicate as the merge tree's reader wants it.
#[derive(Debug)]
struct PredicateFilter {
    predicate: Arc<Predicate>,
    columns: Vec<usize>,
    schema: SchemaRef,
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
        let reader = Arc::new(SplitReader::new(&self.read, self.schema()?)?);
        let starts = stream::iter(splits).map(move |split| {
            let reader = Arc::clone(&reader);
            async move { reader.start(split) }
        });
        let rows = starts.buffered(self.parallelism).flatten().boxed();
        Ok(match self.read.limit {
            Some(limit) => limited(rows, limit),
            None => rows,
        })
    }
}

impl SplitReader {
    fn new(read: &ReadBuilder, schema: SchemaRef) -> Result<Self> {
        let filter = match &read.filter {
            None => None,
            Some(predicate) => {
                predicate.check(&read.table.schema().fields)?;
                Some(Arc::new(PredicateFilter::new(read, predicate)?) as Arc<dyn RowFilter>)
            }
        };
        Ok(Self {
            stores: BucketStores::new(&read.table)?,
            filter,
            schema,
            read: read.clone(),
        })
    }

    /// Starts to read a split in the background.
    fn start(self: Arc<Self>, split: DataSplit) -> RowStream {
        let (mut sender, receiver) = mpsc::channel(0);
        let runtime = Arc::clone(&self.read.table.context().env().runtime);
        runtime.spawn(Box::pin(async move {
            let mut rows = match self.rows(split) {
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

    /// The rows of a split that the caller wants.
    fn rows(self: &Arc<Self>, split: DataSplit) -> Result<RowStream> {
        let name = self
            .read
            .table
            .paths()
            .bucket(&split.partition, split.bucket)?
            .directory()
            .to_owned();
        let mut read = self.stores.merge_read(&split.partition, split.bucket)?;
        read = read.with_projection(self.read.columns.to_vec());
        if let Some(filter) = &self.filter {
            read = read.with_filter(Arc::clone(filter));
        }
        if let Some(predicate) = &self.read.filter {
            read = read.with_keys(key_range(predicate, self.stores.schema()));
        }
        let rows = if split.raw_convertible {
            read.raw(split.files)
        } else {
            read.merged(self.stores.sections(&split.files)?)
        };
        let schema = Arc::clone(&self.schema);
        let rows = rows.map(move |batch| {
            let batch = batch.map_err(|error| Error::from(error).in_bucket(&name))?;
            Ok(batch.columns.with_schema(Arc::clone(&schema))?)
        });
        Ok(rows.boxed())
    }
}

impl PredicateFilter {
    fn new(read: &ReadBuilder, predicate: &Arc<Predicate>) -> Result<Self> {
        let table = read.table.schema();
        let columns: Vec<usize> = predicate
            .columns()
            .into_iter()
            .filter_map(|name| table.position(name))
            .collect();
        let fields: Vec<_> = columns
            .iter()
            .filter_map(|&column| table.fields.get(column))
            .cloned()
            .collect();
        Ok(Self {
            predicate: Arc::clone(predicate),
            columns,
            schema: Arc::new(arrow_schema(&fields)?),
        })
    }
}

impl RowFilter for PredicateFilter {
    fn columns(&self) -> &[usize] {
        &self.columns
    }

    fn keep(&self, columns: &[ArrayRef]) -> Result<BooleanArray, LsmError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        // Names are the table's; types may be nullable in older files' columns.
        let fields = self.schema.fields().iter().zip(columns);
        let fields = fields.map(|(field, column)| {
            field
                .as_ref()
                .clone()
                .with_data_type(column.data_type().clone())
                .with_nullable(true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new_with_options(schema, columns.to_vec(), &options)
            .map_err(|error| LsmError::Internal(format!("columns of a filter: {error}")))?;
        Ok(self.predicate.evaluate(&batch)?)
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
