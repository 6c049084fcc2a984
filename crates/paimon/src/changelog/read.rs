//! From files to batches of rows with kinds.

use std::sync::Arc;

use arrow_array::{Int8Array, RecordBatch};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, future, stream};
use paimon_format::types::{RowKind, arrow_schema};
use paimon_manifest::scan::{FollowUp, LevelRange};

use super::StreamPosition;
use super::plan::{ChangeSplit, ChangedFiles, FileMeaning};
use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::read::{ReadBuilder, SplitReader, read_ahead};
use crate::table::Table;

/// Plans and reads changes of one table.
#[derive(Clone, Debug)]
pub(super) struct ChangesReader {
    pub(super) read: ReadBuilder,
    pub(super) follow_up: FollowUp,
    /// What a stream sees of the snapshot it starts with.
    pub(super) first_levels: LevelRange,
    splits: Arc<SplitReader>,
    pub(super) parallelism: usize,
}

/// Rows of one split.
#[derive(Clone, Debug)]
pub(super) struct SplitRows {
    /// Its place in the plan.
    pub(super) split: usize,
    pub(super) columns: RecordBatch,
    pub(super) kinds: Int8Array,
}

impl SplitRows {
    pub(super) fn new(split: usize, (columns, kinds): (RecordBatch, Int8Array)) -> Self {
        Self { split, columns, kinds }
    }

    /// Without the first rows.
    fn skip(self, rows: usize) -> Self {
        let left = self.kinds.len() - rows;
        Self {
            columns: self.columns.slice(rows, left),
            kinds: self.kinds.slice(rows, left),
            ..self
        }
    }
}

impl ChangesReader {
    pub(super) fn new(read: &ReadBuilder, parallelism: usize) -> Result<Self> {
        let table = &read.table;
        table.check_readable()?;
        let follow_up = FollowUp::from_options(table.options())?;
        let stores = BucketStores::new(table)?;
        let first_levels = follow_up.first_levels(stores.settings().compact.num_levels - 1);
        let schema = Arc::new(arrow_schema(read.fields())?);
        Ok(Self {
            splits: Arc::new(SplitReader::new(read, stores, schema)?),
            read: read.clone(),
            follow_up,
            first_levels,
            parallelism,
        })
    }

    pub(super) fn table(&self) -> &Table {
        &self.read.table
    }

    /// The rows of a plan from a position in it on, in the order of its splits. Some splits are read ahead.
    pub(super) fn rows(
        &self,
        plan: Vec<ChangeSplit>,
        position: &StreamPosition,
    ) -> BoxStream<'static, Result<SplitRows>> {
        let (first, reader) = (position.splits, Arc::clone(&self.splits));
        let splits = plan.into_iter().enumerate().skip(first);
        let splits = splits.map(move |(number, split)| {
            let rows = stream::once(Arc::clone(&reader).changes(split)).try_flatten();
            rows.map_ok(move |rows| SplitRows::new(number, rows)).boxed()
        });
        let runtime = Arc::clone(&self.table().context().env().runtime);
        let mut done = position.rows;
        read_ahead(runtime, splits, self.parallelism)
            .try_filter_map(move |rows| {
                // Rows of later splits come only when those of the first are through.
                let here = match rows.split == first {
                    true => rows.kinds.len().min(usize::try_from(done).unwrap_or(usize::MAX)),
                    false => 0,
                };
                done -= here as u64;
                let rows = rows.skip(here);
                future::ready(Ok((!rows.kinds.is_empty()).then_some(rows)))
            })
            .boxed()
    }
}

impl SplitReader {
    /// The rows of a split with their kinds.
    async fn changes(
        self: Arc<Self>,
        split: ChangeSplit,
    ) -> Result<BoxStream<'static, Result<(RecordBatch, Int8Array)>>> {
        match split {
            ChangeSplit::Rows(split) => Ok(all_of(self.rows(split).await?, RowKind::Insert)),
            ChangeSplit::Files(ChangedFiles {
                partition,
                bucket,
                files,
                meaning,
            }) => {
                let read = self.merge_read(&partition, bucket)?;
                let stream = match meaning {
                    FileMeaning::Changes => read.changes(files),
                    FileMeaning::Gone | FileMeaning::Come => read.merged(self.sections(&files)?),
                };
                let (name, schema) = (self.bucket_name(&partition, bucket)?, self.schema());
                let rows = stream.map(move |batch| {
                    let batch = batch.map_err(|error| Error::from(error).in_bucket(&name))?;
                    Ok((batch.columns.with_schema(Arc::clone(&schema))?, batch.kinds))
                });
                Ok(match meaning {
                    FileMeaning::Changes => rows.boxed(),
                    FileMeaning::Gone => all_of(rows.map_ok(|(columns, _)| columns).boxed(), RowKind::Delete),
                    FileMeaning::Come => all_of(rows.map_ok(|(columns, _)| columns).boxed(), RowKind::Insert),
                })
            }
        }
    }
}

/// All rows with one kind: what kind a merged row was written with says nothing to a reader that did not have it.
fn all_of(
    rows: BoxStream<'static, Result<RecordBatch>>,
    kind: RowKind,
) -> BoxStream<'static, Result<(RecordBatch, Int8Array)>> {
    rows.map_ok(move |columns| {
        let kinds = Int8Array::from_value(kind as i8, columns.num_rows());
        (columns, kinds)
    })
    .boxed()
}
