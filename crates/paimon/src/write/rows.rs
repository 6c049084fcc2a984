//! What happens to rows before they reach a bucket: columns in table order, nulls checked, defaults filled, kinds decided.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Int8Array, RecordBatch, RecordBatchOptions, Scalar, new_null_array};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::{filter, filter_record_batch};
use arrow_select::zip::zip;
use paimon_format::types::{DataField, Datum, RowKind, array_from_datums, arrow_schema, check_limits, conform};

use crate::error::{Error, Result};
use crate::options::RowSettings;
use crate::table::Table;

/// The column of an input batch that may hold row kinds as bytes (see [`RowKind`]).
pub const VALUE_KIND_COLUMN: &str = "_VALUE_KIND";

/// Input rows, ready for their bucket.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// The table's columns, in table order.
    pub(crate) rows: RecordBatch,
    /// A kind a row.
    pub(crate) kinds: Int8Array,
}

/// Makes input rows ready for their bucket.
///
/// Source: `org.apache.paimon.table.sink.TableWriteImpl`, `org.apache.paimon.utils.RowKindFilter`.
#[derive(Clone, Debug)]
pub(crate) struct RowPreparation {
    /// The table's columns.
    pub(crate) arrow: SchemaRef,
    /// The same with Paimon's types, whose limits the rows keep.
    limits: Vec<DataField>,
    /// A one-row array for each column that has a default value.
    defaults: Vec<Option<ArrayRef>>,
    /// Position of `rowkind.field`.
    kind_column: Option<usize>,
    /// `ignore-delete`: -D and -U rows are dropped.
    ignore_delete: bool,
    /// `ignore-update-before`: -U rows are dropped.
    ignore_update_before: bool,
}

impl RowPreparation {
    /// For the columns of a table. Errors: `Invalid`, naming the column, for a default value that is none of its type.
    pub(crate) fn new(table: &Table, settings: &RowSettings) -> Result<Self> {
        let schema = table.schema();
        let mut defaults = Vec::with_capacity(schema.fields.len());
        for field in &schema.fields {
            defaults.push(match &field.default_value {
                None => None,
                Some(text) => {
                    let value = Datum::parse(text, &field.data_type).map_err(|error| {
                        Error::invalid(format!("the default value of column {}: {error}", field.name))
                    })?;
                    Some(array_from_datums(field, [&value])?)
                }
            });
        }
        Ok(Self {
            arrow: Arc::new(arrow_schema(&schema.fields)?),
            limits: schema.fields.clone(),
            defaults,
            kind_column: settings
                .row_kind_field
                .as_deref()
                .and_then(|name| schema.position(name)),
            ignore_delete: settings.ignore_delete,
            ignore_update_before: settings.ignore_update_before,
        })
    }

    /// Columns are matched by name; a missing one is null or its default. `kinds` defaults to the column `_VALUE_KIND`, or +I
    /// without one; `rowkind.field` goes before both.
    ///
    /// Errors: `Invalid` naming the column: unknown, of another type, a value that its type does not have, null where the table says NOT
    /// NULL, not a row kind.
    pub(crate) fn prepare(&self, batch: &RecordBatch, kinds: Option<&Int8Array>) -> Result<Prepared> {
        let rows = self.conform(batch)?;
        check_limits(&rows, &self.limits)?;
        let kinds = self.kinds(batch, &rows, kinds)?;
        self.filter(Prepared { rows, kinds })
    }

    fn conform(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let given = batch.schema();
        let mut fields = Vec::with_capacity(self.arrow.fields().len());
        let mut columns = Vec::with_capacity(self.arrow.fields().len());
        for (field, column) in given.fields().iter().zip(batch.columns()) {
            if field.name() != VALUE_KIND_COLUMN {
                fields.push(Arc::clone(field));
                columns.push(Arc::clone(column));
            }
        }
        for field in self.arrow.fields() {
            if given.field_with_name(field.name()).is_err() {
                fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
                columns.push(new_null_array(field.data_type(), batch.num_rows()));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let complete = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        let conformed = conform(&complete, &self.arrow)?;
        self.fill_defaults(conformed)
    }

    fn fill_defaults(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let wanted = |(column, default): (&ArrayRef, &Option<ArrayRef>)| default.is_some() && column.null_count() > 0;
        if !batch.columns().iter().zip(&self.defaults).any(wanted) {
            return Ok(batch);
        }
        let columns = batch
            .columns()
            .iter()
            .zip(&self.defaults)
            .map(|(column, default)| match default {
                Some(default) if column.null_count() > 0 => fill(column, default),
                _ => Ok(Arc::clone(column)),
            });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
    }

    fn kinds(&self, input: &RecordBatch, rows: &RecordBatch, given: Option<&Int8Array>) -> Result<Int8Array> {
        if let Some(column) = self.kind_column {
            return kinds_from_text(rows, column);
        }
        let kinds = match (given, input.column_by_name(VALUE_KIND_COLUMN)) {
            (Some(kinds), _) => kinds.clone(),
            (None, Some(column)) => column
                .as_any()
                .downcast_ref::<Int8Array>()
                .ok_or_else(|| {
                    Error::invalid(format!(
                        "column {VALUE_KIND_COLUMN}: expected Int8, found {}",
                        column.data_type()
                    ))
                })?
                .clone(),
            (None, None) => Int8Array::from(vec![RowKind::Insert as i8; rows.num_rows()]),
        };
        if kinds.len() != rows.num_rows() {
            return Err(Error::invalid(format!(
                "{} kinds for {} rows",
                kinds.len(),
                rows.num_rows()
            )));
        }
        if let Some((row, kind)) = kinds
            .iter()
            .enumerate()
            .find(|(_, kind)| kind.and_then(RowKind::from_byte).is_none())
        {
            let kind = kind.map_or_else(|| "null".to_owned(), |kind| kind.to_string());
            return Err(Error::invalid(format!(
                "row {row}: {kind} is no row kind; expected 0 (+I), 1 (-U), 2 (+U) or 3 (-D)"
            )));
        }
        Ok(kinds)
    }

    /// The kind of one row, a value a column of the table, that is given this kind.
    ///
    /// Errors: `Invalid` when `rowkind.field` holds none.
    pub(crate) fn kind_of(&self, given: RowKind, row: &[Datum]) -> Result<RowKind> {
        let Some(column) = self.kind_column else {
            return Ok(given);
        };
        let default = self.defaults.get(column).and_then(Option::as_ref);
        let text = match (row.get(column), default) {
            (Some(Datum::String(text)), _) => Some(text.as_str()),
            (None | Some(Datum::Null), default) => default
                .and_then(|default| default.as_string_opt::<i32>())
                .map(|texts| texts.value(0)),
            // No STRING: not the row is wrong, but the option.
            (Some(_), _) => return Ok(given),
        };
        let kind = text.and_then(RowKind::from_short_string);
        kind.ok_or_else(|| no_kind(self.arrow.field(column).name(), "the value", text))
    }

    /// Whether rows of a kind are left out.
    pub(crate) fn drops(&self, kind: RowKind) -> bool {
        self.ignore_delete && kind.is_retract() || self.ignore_update_before && kind == RowKind::UpdateBefore
    }

    fn filter(&self, prepared: Prepared) -> Result<Prepared> {
        if !self.ignore_delete && !self.ignore_update_before {
            return Ok(prepared);
        }
        let kept = |kind: i8| !RowKind::from_byte(kind).is_some_and(|kind| self.drops(kind));
        let mut mask = BooleanBufferBuilder::new(prepared.kinds.len());
        prepared.kinds.values().iter().for_each(|&kind| mask.append(kept(kind)));
        let mask = BooleanArray::new(mask.finish(), None);
        if mask.true_count() == mask.len() {
            return Ok(prepared);
        }
        Ok(Prepared {
            rows: filter_record_batch(&prepared.rows, &mask)?,
            kinds: filter(&prepared.kinds, &mask)?.as_primitive().clone(),
        })
    }
}

/// The kinds of a part, which were checked with the rows.
pub(crate) fn row_kinds(kinds: &Int8Array) -> Result<Vec<RowKind>> {
    let kinds = kinds.values().iter().map(|&kind| RowKind::from_byte(kind));
    kinds
        .collect::<Option<_>>()
        .ok_or_else(|| Error::internal("a kind that is none"))
}

/// The default where the column is null.
fn fill(column: &ArrayRef, default: &ArrayRef) -> Result<ArrayRef> {
    let Some(nulls) = column.nulls() else {
        return Ok(Arc::clone(column));
    };
    let valid = BooleanArray::new(nulls.inner().clone(), None);
    Ok(zip(&valid, column, &Scalar::new(Arc::clone(default)))?)
}

fn kinds_from_text(rows: &RecordBatch, column: usize) -> Result<Int8Array> {
    let name = rows.schema_ref().field(column).name().clone();
    let texts = rows
        .column(column)
        .as_string_opt::<i32>()
        .ok_or_else(|| Error::invalid(format!("rowkind.field = {name}: the column is not a STRING")))?;
    let mut kinds = Vec::with_capacity(texts.len());
    for (row, text) in texts.iter().enumerate() {
        match text.and_then(RowKind::from_short_string) {
            Some(kind) => kinds.push(kind as i8),
            None => return Err(no_kind(&name, &format!("row {row}"), text)),
        }
    }
    Ok(Int8Array::from(kinds))
}

fn no_kind(column: &str, place: &str, text: Option<&str>) -> Error {
    let found = text.map_or_else(|| "null".to_owned(), |text| format!("{text:?}"));
    Error::invalid(format!(
        "column {column} (rowkind.field): {place} is {found}; expected +I, -U, +U or -D"
    ))
}
