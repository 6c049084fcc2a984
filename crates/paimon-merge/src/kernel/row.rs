//! Any row-by-row merge function as an engine.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch};
use paimon_format::FormatError;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels};
use paimon_format::options::Options;
use paimon_format::types::{Datum, RowKind, TypeKind, array_from_datums};

use super::versions::Versions;
use super::{MergeKernel, MergedRows};
use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::engine::{INSERT_ONLY, MergeEngine, MergeEngineFactory, Promises, refuse_retracts};
use crate::plan::{KeyGroups, RowRef};

/// The simple way to write an engine: one call a key. [`RowEngine`] makes it usable everywhere.
///
/// It is called only for keys with several versions, see the contract of engines in the [crate's documentation](crate). A key with more
/// versions than a block has keys is merged in steps, each result being the oldest version of the next step: that must not change
/// anything, by that contract.
pub trait MergeFunction: Send {
    /// What the versions of one key become. State may be kept between calls only to save work.
    fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError>;
}

/// What the versions of a key become.
#[derive(Clone, Debug)]
pub enum Merged {
    /// One of them, unchanged (0 is the oldest). A retract, too: it is dropped later, when nothing older can exist.
    Version(usize),
    /// A new row: a value for each column of the schema read. It has the newest version's sequence number.
    Row(RowKind, Vec<Datum>),
    /// No trace, not even a retract.
    Nothing,
}

/// Makes a merge function for the columns read; they are those that were asked for and those that the engine named.
type MakeFunction = dyn Fn(&KvSchema, &Options) -> Result<Box<dyn MergeFunction>, MergeError> + Send + Sync;

/// A merge engine made of a [`MergeFunction`]: the factory to register under a name.
///
/// Cost: about five times a columnar kernel. Memory: the versions of a block.
///
/// ```
/// use paimon_merge::kernel::{MergeFunction, Merged, RowEngine, Versions, value_index};
/// use paimon_merge::engine::{Promises, Registry};
/// use paimon_merge::MergeError;
/// use paimon_format::types::TypeKind;
///
/// /// Keeps the version with the highest `score`; ties go to the newer. Insert-only: a delete between two runs could not be
/// /// remembered, so it would break associativity.
/// struct HighestScore { score: usize }
///
/// impl MergeFunction for HighestScore {
///     fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
///         let (mut best, mut best_score) = (0, None);
///         for (i, version) in versions.iter().enumerate() {
///             if version.kind().is_retract() {
///                 return Err(MergeError::retract("highest-score", &version));
///             }
///             let score = version.get::<i64>(self.score)?;
///             if score >= best_score {
///                 (best, best_score) = (i, score);
///             }
///         }
///         Ok(Merged::Version(best))
///     }
/// }
///
/// let engine = RowEngine::new("highest-score", Promises::insert_only(), ["score"], |schema, _options| {
///     Ok(Box::new(HighestScore { score: value_index(schema, "score", &TypeKind::BigInt)? }))
/// });
/// let mut registry = Registry::default();
/// registry.engine(engine); // now `merge-engine = highest-score` in a table's options
/// ```
#[derive(Clone)]
pub struct RowEngine {
    name: String,
    promises: Promises,
    needs: Vec<String>,
    make: Arc<MakeFunction>,
}

impl fmt::Debug for RowEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowEngine")
            .field("name", &self.name)
            .field("promises", &self.promises)
            .field("needs", &self.needs)
            .finish_non_exhaustive()
    }
}

impl RowEngine {
    /// An engine by its name. `needs` are columns that every merge looks at, whatever is asked for. `make` is called for the table's
    /// schema when a table is created or opened, to refuse wrong options, and for each task.
    pub fn new<N: Into<String>>(
        name: impl Into<String>,
        promises: Promises,
        needs: impl IntoIterator<Item = N>,
        make: impl Fn(&KvSchema, &Options) -> Result<Box<dyn MergeFunction>, MergeError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            promises,
            needs: needs.into_iter().map(Into::into).collect(),
            make: Arc::new(make),
        }
    }
}

impl MergeEngineFactory for RowEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(
        &self,
        schema: &KvSchema,
        options: &Options,
        _aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError> {
        let needs = self
            .needs
            .iter()
            .map(|column| {
                schema
                    .position(column)
                    .ok_or_else(|| MergeError::Invalid(format!("merge engine {} needs a column {column}", self.name)))
            })
            .collect::<Result<Vec<_>, _>>()?;
        (self.make)(schema, options)?;
        Ok(Arc::new(RowMergeEngine {
            engine: self.clone(),
            needs,
            options: options.clone(),
        }))
    }
}

/// A [`RowEngine`] with a table's options.
#[derive(Debug)]
struct RowMergeEngine {
    engine: RowEngine,
    needs: Vec<usize>,
    options: Options,
}

impl MergeEngine for RowMergeEngine {
    fn promises(&self) -> Promises {
        self.engine.promises
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        let mut needs: Vec<usize> = wanted.iter().chain(&self.needs).copied().collect();
        needs.sort_unstable();
        needs.dedup();
        needs
    }

    fn check_rows(&self, _rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        match self.engine.promises.accepts_retract {
            true => Ok(()),
            false => refuse_retracts(&self.engine.name, INSERT_ONLY, kinds),
        }
    }

    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        let function = (self.engine.make)(read, &self.options)?;
        Ok(Box::new(RowKernel::new(
            self.engine.name.clone(),
            function,
            Arc::clone(read),
        )?))
    }
}

/// The position of a value column that must have a type.
///
/// Errors: `Invalid` when there is no such column, or its type is another.
pub fn value_index(schema: &KvSchema, name: &str, kind: &TypeKind) -> Result<usize, MergeError> {
    let position = schema.position(name);
    let Some((position, field)) = position.and_then(|position| Some((position, schema.fields.get(position)?))) else {
        return Err(MergeError::Invalid(format!("there is no column {name}")));
    };
    if field.data_type.kind != *kind {
        return Err(MergeError::Invalid(format!(
            "column {name} must be {kind:?}, but is {:?}",
            field.data_type.kind
        )));
    }
    Ok(position)
}

/// Calls a [`MergeFunction`] for each group of a block.
pub struct RowKernel {
    name: String,
    function: Box<dyn MergeFunction>,
    schema: Arc<KvSchema>,
    codec: KeyCodec,
    /// What an open group has become so far: one row, copied. `None`: it is nothing yet.
    carried: Option<KvBatch>,
}

/// A row that a function computed, or one that its batch does not survive.
struct MadeRow {
    sequence_number: i64,
    kind: RowKind,
    level: i32,
    values: Vec<Datum>,
}

impl RowKernel {
    /// A kernel for batches of `schema`. `name` is used in messages.
    ///
    /// Errors: `Unsupported` when a key column's type cannot be normalized.
    pub fn new(name: String, function: Box<dyn MergeFunction>, schema: Arc<KvSchema>) -> Result<Self, MergeError> {
        Ok(Self {
            name,
            function,
            codec: KeyCodec::new(&schema)?,
            schema,
            carried: None,
        })
    }

    /// Merges a group with what was carried of its earlier blocks. Its survivor is made, so that the batches of those can go.
    fn merge_carried(&mut self, sources: &[KvBatch], rows: &[RowRef]) -> Result<Option<MadeRow>, MergeError> {
        let mut all = Vec::with_capacity(sources.len() + 1);
        let mut at = Vec::with_capacity(rows.len() + 1);
        if let Some(carried) = self.carried.take() {
            at.push(RowRef { batch: 0, row: 0 });
            all.push(carried);
        }
        let before = all.len() as u32;
        all.extend_from_slice(sources);
        at.extend(rows.iter().map(|at| RowRef {
            batch: at.batch + before,
            row: at.row,
        }));
        let versions = Versions::new(&all, &at);
        // A version alone is not merged.
        let merged = match versions.len() {
            1 => Merged::Version(0),
            _ => self.function.merge(&versions)?,
        };
        match merged {
            Merged::Nothing => Ok(None),
            Merged::Row(kind, values) => self.made(&versions, kind, values).map(Some),
            Merged::Version(version) => {
                let version = versions
                    .get(version)
                    .ok_or_else(|| self.no_version(version, versions.len()))?;
                Ok(Some(MadeRow {
                    sequence_number: version.sequence_number(),
                    kind: version.kind(),
                    level: version.level(),
                    values: version.values()?,
                }))
            }
        }
    }

    fn carry(&mut self, sources: &[KvBatch], rows: &[RowRef]) -> Result<(), MergeError> {
        if let Some(row) = self.merge_carried(sources, rows)? {
            let level = RowLevels::All(row.level);
            let columns = self.made_batch(&[row])?;
            self.carried = Some(KvBatch::new(&self.schema, columns, &self.codec, level)?);
        }
        Ok(())
    }

    fn made(&self, versions: &Versions<'_>, kind: RowKind, values: Vec<Datum>) -> Result<MadeRow, MergeError> {
        if values.len() != self.schema.fields.len() {
            return Err(MergeError::internal(format!(
                "merge engine {} made {} values for {} columns",
                self.name,
                values.len(),
                self.schema.fields.len()
            )));
        }
        let newest = versions.iter().next_back();
        Ok(MadeRow {
            sequence_number: newest.map_or(-1, |version| version.sequence_number()),
            kind,
            level: newest.map_or(-1, |version| version.level()),
            values,
        })
    }

    fn no_version(&self, version: usize, versions: usize) -> MergeError {
        MergeError::internal(format!(
            "merge engine {} chose version {version} of {versions}",
            self.name
        ))
    }

    fn made_batch(&self, rows: &[MadeRow]) -> Result<RecordBatch, MergeError> {
        let sequence_numbers: Int64Array = rows.iter().map(|row| Some(row.sequence_number)).collect();
        let kinds: Int8Array = rows.iter().map(|row| Some(row.kind as i8)).collect();
        let mut columns: Vec<ArrayRef> = vec![Arc::new(sequence_numbers), Arc::new(kinds)];
        for (column, field) in self.schema.fields.iter().enumerate() {
            columns.push(array_from_datums(
                field,
                rows.iter().filter_map(|row| row.values.get(column)),
            )?);
        }
        let made = RecordBatch::try_new(Arc::clone(&self.schema.arrow), columns);
        Ok(made.map_err(|error| FormatError::internal(format!("rows made by merge engine {}: {error}", self.name)))?)
    }
}

impl MergeKernel for RowKernel {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        let closed = groups.len() - usize::from(groups.open);
        let mut made = Vec::new();
        for (group, rows) in groups.iter().enumerate() {
            if group == closed {
                self.carry(groups.sources, rows)?;
                continue;
            }
            // Only the first group can be one that goes on.
            let row = if self.carried.is_none() {
                let versions = Versions::new(groups.sources, rows);
                match self.function.merge(&versions)? {
                    Merged::Nothing => None,
                    Merged::Row(kind, values) => Some(self.made(&versions, kind, values)?),
                    Merged::Version(version) => {
                        let row = *rows.get(version).ok_or_else(|| self.no_version(version, rows.len()))?;
                        let kind = versions.get(version).map_or(RowKind::Insert, |version| version.kind());
                        out.push(row, kind, group);
                        None
                    }
                }
            } else {
                self.merge_carried(groups.sources, rows)?
            };
            if let Some(row) = row {
                let at = RowRef {
                    batch: groups.sources.len() as u32,
                    row: made.len() as u32,
                };
                out.push(at, row.kind, group);
                made.push(row);
            }
        }
        if !made.is_empty() {
            out.made = Some(self.made_batch(&made)?);
        }
        Ok(())
    }
}
