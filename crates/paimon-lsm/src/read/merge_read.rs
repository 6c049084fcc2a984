//! Reads of one bucket's files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, Int8Array, RecordBatch};
use arrow_select::filter::{filter, filter_record_batch};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use futures::{future, stream};
use paimon_format::FormatError;
use paimon_format::dv::DeletionVector;
use paimon_format::env::Env;
use paimon_format::kv::{KeyRange, KvBatch, KvFiles, KvSchema};
use paimon_format::meta::DataFileMeta;
use paimon_format::predicate::Predicate;
use paimon_merge::engine::MergeEngine;

use super::ReadProjection;
use super::filter::key_range;
use crate::LsmError;
use crate::compact::pipeline::{MergeJob, MergePipeline, PipelineSettings};
use crate::levels::{Section, SortedRun};

/// Rows that a read gives.
#[derive(Clone, Debug)]
pub struct ReadBatch {
    /// The columns asked for, in the order asked for.
    pub columns: RecordBatch,
    /// The byte of each row's [`RowKind`](paimon_format::types::RowKind).
    pub kinds: Int8Array,
}

/// How the files of a bucket are read: as a table (merged, deletes gone), raw, or as changes.
///
/// Row positions that deletion vectors hide are given by file name; those rows are never seen by anything else.
///
/// Source: `org.apache.paimon.operation.MergeFileSplitRead`, `org.apache.paimon.operation.RawFileSplitRead`.
#[derive(Clone, Debug)]
pub struct MergeRead {
    env: Env,
    files: Arc<dyn KvFiles>,
    table: Arc<KvSchema>,
    engine: Arc<dyn MergeEngine>,
    wanted: Vec<usize>,
    filter: Option<Arc<Predicate>>,
    deleted: HashMap<String, Arc<DeletionVector>>,
    settings: PipelineSettings,
}

/// What is done with rows between file and reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// Retracts are dropped.
    Table,
    /// All kinds come out.
    Changes,
}

impl MergeRead {
    /// A read of all columns of the table. Where compactions look old rows up, the engine is that of
    /// [`LookupMergeFunction::wrap`](paimon_merge::changelog::LookupMergeFunction::wrap).
    pub fn new(env: Env, files: Arc<dyn KvFiles>, table: Arc<KvSchema>, engine: Arc<dyn MergeEngine>) -> Self {
        Self {
            wanted: (0..table.fields.len()).collect(),
            env,
            files,
            table,
            engine,
            filter: None,
            deleted: HashMap::new(),
            settings: PipelineSettings::default(),
        }
    }

    /// Only these columns: positions in the table's fields, in output order.
    pub fn with_projection(mut self, columns: Vec<usize>) -> Self {
        self.wanted = columns;
        self
    }

    /// Only rows that match. The columns it looks at need not be among those asked for. Applied to merged rows; what it says about the key
    /// also prunes what is read, and all of it where rows are not merged.
    pub fn with_filter(mut self, filter: Predicate) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Row positions that deletion vectors hide, by file name.
    pub fn with_deleted(mut self, deleted: HashMap<String, Arc<DeletionVector>>) -> Self {
        self.deleted = deleted;
        self
    }

    /// With other limits.
    pub fn with_settings(mut self, settings: PipelineSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The table's rows: every key once, merged, in key order, deleted ones gone. Kinds are those of the versions that survived: +I or
    /// +U.
    ///
    /// Errors (in the stream): those of the files; `Invalid` for a column that the table does not have.
    pub fn merged(&self, sections: Vec<Section>) -> BoxStream<'static, Result<ReadBatch, LsmError>> {
        let mut asked = self.wanted.clone();
        asked.extend(self.filtered_columns());
        asked.extend(&self.table.key);
        asked.sort_unstable();
        asked.dedup();
        self.read(sections, Rows::Table, self.engine.needs(&asked))
    }

    /// The rows of files that need no merging (no key twice among all of them), one file after another, retracts dropped.
    ///
    /// Errors as [`merged`](Self::merged).
    pub fn raw(&self, files: Vec<Arc<DataFileMeta>>) -> BoxStream<'static, Result<ReadBatch, LsmError>> {
        self.read(one_by_one(files), Rows::Table, self.filtered_columns())
    }

    /// The records of files as they are, one file after another, every kind: new level-0 files or changelog files as changes.
    ///
    /// Errors as [`merged`](Self::merged).
    pub fn changes(&self, files: Vec<Arc<DataFileMeta>>) -> BoxStream<'static, Result<ReadBatch, LsmError>> {
        self.read(one_by_one(files), Rows::Changes, self.filtered_columns())
    }

    fn read(
        &self,
        sections: Vec<Section>,
        rows: Rows,
        needed: Vec<usize>,
    ) -> BoxStream<'static, Result<ReadBatch, LsmError>> {
        let checked = self
            .filter
            .as_ref()
            .map_or(Ok(()), |filter| filter.check(&self.table.fields));
        let projection = checked
            .map_err(LsmError::from)
            .and_then(|()| ReadProjection::new(&self.table, &self.wanted, &needed));
        let projection = match projection {
            Ok(projection) => projection,
            Err(error) => return stream::once(future::ready(Err(error))).boxed(),
        };
        let job = MergeJob {
            sections,
            drop_delete: rows == Rows::Table,
            expired_before: None,
            deleted: self.deleted.clone(),
            keys: self
                .filter
                .as_ref()
                .map_or_else(KeyRange::default, |filter| key_range(filter, &self.table)),
            filter: self.filter.clone(),
            ..MergeJob::default()
        };
        let merged = MergePipeline::new(
            self.env.clone(),
            Arc::clone(&self.files),
            Arc::clone(projection.read_schema()),
            Arc::clone(&self.engine),
        )
        .with_settings(self.settings.clone())
        .merge(job);
        let (env, filter) = (self.env.clone(), self.filter.clone());
        merged
            .and_then(move |batch| {
                let (env, filter, projection) = (env.clone(), filter.clone(), projection.clone());
                async move {
                    match filter {
                        Some(filter) => env.cpu(move || filtered(&batch, &projection, &filter)).await?,
                        None => whole(&batch, &projection),
                    }
                }
            })
            .try_filter(|batch| future::ready(!batch.kinds.is_empty()))
            .boxed()
    }
}

impl MergeRead {
    /// Positions of the columns that the filter looks at.
    fn filtered_columns(&self) -> Vec<usize> {
        let names = self.filter.iter().flat_map(|filter| filter.columns());
        names.filter_map(|name| self.table.position(name)).collect()
    }
}

/// Sections of one file each: nothing is merged.
fn one_by_one(files: Vec<Arc<DataFileMeta>>) -> Vec<Section> {
    files
        .into_iter()
        .map(|file| vec![SortedRun::from_single(file)])
        .collect()
}

fn whole(batch: &KvBatch, projection: &ReadProjection) -> Result<ReadBatch, LsmError> {
    Ok(ReadBatch {
        columns: projection.project(batch)?,
        kinds: Int8Array::new(batch.kinds().to_vec().into(), None),
    })
}

fn filtered(batch: &KvBatch, projection: &ReadProjection, condition: &Predicate) -> Result<ReadBatch, LsmError> {
    let keep = condition.evaluate(&batch.columns)?;
    let all = whole(batch, projection)?;
    let failed = |error| FormatError::internal(format!("filtering a batch: {error}"));
    let kinds = filter(&all.kinds, &keep).map_err(failed)?;
    Ok(ReadBatch {
        columns: filter_record_batch(&all.columns, &keep).map_err(failed)?,
        kinds: kinds.to_data().into(),
    })
}
