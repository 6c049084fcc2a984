//! `merge-engine = aggregation`: every column has a function.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use paimon_format::kv::{KvSchema, VALUE_OFFSET};
use paimon_format::options::Options;
use paimon_format::types::RowKind;

use super::checks::{CheckedColumn, NoWayBack};
use super::columns::{ColumnMerge, Flat, MadeRows, Steps};
use super::functions::{check_columns, column_merge, function_name, own_function_name};
use super::{MergeEngine, MergeEngineFactory, Promises, flag, refused};
use crate::MergeError;
use crate::aggregate::{Aggregators, Step};
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::KeyGroups;

const NAME: &str = "aggregation";
const REMOVE_ON_DELETE: &str = "aggregation.remove-record-on-delete";

/// Makes [`Aggregation`] engines.
#[derive(Clone, Copy, Debug, Default)]
pub struct AggregationFactory;

/// Merges each column by its function: `fields.<column>.aggregate-function`, else `fields.default-aggregate-function`, else
/// `last_non_null_value`. Primary-key columns keep their value, `sequence.field` columns the newest one. -U and -D rows are taken back,
/// column by column, and the result is +I even if there is nothing else. With `aggregation.remove-record-on-delete` a -D removes what is
/// older, and later rows begin from nothing.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.AggregateMergeFunction`.
#[derive(Clone, Debug)]
pub struct Aggregation {
    options: Options,
    aggregators: Aggregators,
    remove_on_delete: bool,
    /// Why rows cannot be taken back, by columns that do not allow it.
    no_way_back: Vec<NoWayBack>,
    checked: Vec<CheckedColumn>,
}

impl MergeEngineFactory for AggregationFactory {
    fn name(&self) -> &str {
        NAME
    }

    fn create(
        &self,
        schema: &KvSchema,
        options: &Options,
        aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError> {
        check_columns(schema, options)?;
        for position in schema.sequence.iter().flat_map(|sequence| &sequence.columns) {
            let name = schema.fields.get(*position).map_or("", |field| field.name.as_str());
            if own_function_name(options, name).is_some() {
                return Err(MergeError::Invalid(format!(
                    "option 'fields.{name}.aggregate-function': {name} is a sequence field, it takes its last value"
                )));
            }
        }
        let mut engine = Aggregation {
            options: options.clone(),
            aggregators: aggregators.clone(),
            remove_on_delete: flag(options, REMOVE_ON_DELETE)?,
            no_way_back: Vec::new(),
            checked: Vec::new(),
        };
        let columns = engine.columns(schema)?.into_iter().zip(&schema.fields);
        for (position, (column, field)) in columns.enumerate() {
            let Some(column) = column else { continue };
            engine.no_way_back.extend(column.no_way_back());
            let check = column.value_check();
            engine
                .checked
                .extend(check.map(|check| CheckedColumn { position, check }));
            if column.ignores_retract() && engine.remove_on_delete {
                return Err(MergeError::Invalid(format!(
                    "options '{REMOVE_ON_DELETE}' and 'fields.{}.ignore-retract' contradict each other",
                    field.name
                )));
            }
        }
        Ok(Arc::new(engine))
    }
}

impl Aggregation {
    /// The first column that does not let rows of a kind be taken back. What a delete removes is not taken back column by column.
    fn no_way_back(&self, kind: RowKind) -> Option<&NoWayBack> {
        let removes = self.remove_on_delete && kind == RowKind::Delete;
        self.no_way_back.iter().find(|column| column.holds(kind) && !removes)
    }

    /// How each column is merged; `None`: it belongs to the primary key.
    fn columns(&self, schema: &KvSchema) -> Result<Vec<Option<ColumnMerge>>, MergeError> {
        let is_sequence = |position: usize| {
            let sequence = schema.sequence.as_ref();
            sequence.is_some_and(|sequence| sequence.columns.contains(&position))
        };
        let column = |(position, name): (usize, &str)| {
            if schema.is_primary_key(position) {
                return Ok(None);
            }
            let function = match is_sequence(position) {
                true => "last_value",
                false => function_name(&self.options, name).unwrap_or("last_non_null_value"),
            };
            column_merge(schema, position, function, &self.options, &self.aggregators).map(Some)
        };
        let names = schema.fields.iter().map(|field| field.name.as_str());
        names.enumerate().map(column).collect()
    }
}

impl MergeEngine for Aggregation {
    fn promises(&self) -> Promises {
        Promises {
            accepts_retract: self.no_way_back.iter().all(|column| column.deletes_only),
            deletes_need_older: self.remove_on_delete,
            ..Promises::default()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        wanted.to_vec()
    }

    fn may_refuse(&self, kind: RowKind) -> bool {
        match kind.is_add() {
            true => !self.checked.is_empty(),
            false => self.no_way_back(kind).is_some(),
        }
    }

    fn check_rows(&self, rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        for (row, &kind) in kinds.iter().enumerate() {
            if let Some(column) = self.no_way_back(kind) {
                return Err(refused(NAME, kind, &column.why));
            }
            // What is taken back is no value, or is refused.
            let mut checked = self.checked.iter().filter(|_| kind.is_add());
            checked.try_for_each(|column| column.check(rows, row))?;
        }
        Ok(())
    }

    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(Box::new(Kernel {
            columns: self.columns(read)?,
            schema: Arc::clone(read),
            remove_on_delete: self.remove_on_delete,
            carried: None,
        }))
    }
}

struct Kernel {
    schema: Arc<KvSchema>,
    columns: Vec<Option<ColumnMerge>>,
    remove_on_delete: bool,
    carried: Option<Carried>,
}

/// What an open group has become so far.
struct Carried {
    columns: Vec<ArrayRef>,
    /// Its last version is a delete that removed it.
    removed: bool,
}

impl MergeKernel for Kernel {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        let carried = self.carried.take();
        let was_removed = carried.as_ref().is_some_and(|carried| carried.removed);
        let flat = Flat::new(groups, carried.as_ref().map(|carried| carried.columns.as_slice()));
        let mut steps = Steps::default();
        let mut newest = Vec::with_capacity(groups.len());
        let mut removed = Vec::with_capacity(groups.len());
        for range in flat.ranges() {
            let removes = |version: u32| match flat.is_carried(version) {
                true => was_removed,
                false => self.remove_on_delete && flat.kind(version) == RowKind::Delete,
            };
            let last = range.end.saturating_sub(1);
            let removal = range.clone().rev().find(|&version| removes(version));
            let counted = removal.map_or(range.start, |removal| removal + 1)..range.end;
            for version in counted {
                if flat.is_carried(version) {
                    steps.continued = true;
                } else if flat.kind(version).is_retract() {
                    steps.push(version, Step::Retract);
                } else {
                    steps.push(version, Step::Add);
                }
            }
            steps.end_group();
            newest.push(last);
            removed.push(removal.filter(|&removal| removal == last));
        }
        let kind = |removal: &Option<u32>| match removal {
            Some(_) => RowKind::Delete,
            None => RowKind::Insert,
        };
        let kinds: Vec<RowKind> = removed.iter().take(flat.closed()).map(kind).collect();
        let is_removed = removed.last().is_some_and(Option::is_some);
        let mut made = MadeRows::new(&flat, &self.schema, newest, removed)?;
        for (position, column) in self.columns.iter_mut().enumerate() {
            match column {
                Some(column) => made.add_column(column.merge(&flat, position + VALUE_OFFSET, &steps)?)?,
                None => made.add_newest()?,
            }
        }
        self.carried = made.finish(&kinds, out)?.map(|columns| Carried {
            columns,
            removed: is_removed,
        });
        Ok(())
    }
}
