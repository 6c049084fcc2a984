//! Changes as typed rows, and rows as columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Int8Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field as ArrowField, Schema};
use paimon::TableSchema;
use paimon::format::FormatError;
use paimon::format::types::{DataField, DataType, Datum, MAX_LENGTH, RowKind, TypeKind, array_from_datums};

use crate::error::RecordError;
use crate::format::{Change, Field, Image};
use crate::value::decode;

/// A row with its kind; a value a column of the table.
pub(crate) type TypedRow = (RowKind, Vec<Datum>);

/// Makes rows of a table's types out of changes.
#[derive(Debug)]
pub(crate) struct RowTyper {
    fields: Vec<DataField>,
    positions: HashMap<String, usize>,
    /// Positions of the primary key.
    key: Vec<usize>,
}

/// The rows of one record.
#[derive(Debug, Default)]
pub(crate) struct RecordRows {
    pub(crate) rows: Vec<TypedRow>,
    /// Columns that the table does not have, or not of the type that the source declares.
    pub(crate) columns: Vec<(String, DataType)>,
}

impl RecordRows {
    fn declare(&mut self, name: &str, declared: DataType) {
        if !self.columns.iter().any(|(known, _)| known == name) {
            self.columns.push((name.to_owned(), declared));
        }
    }
}

impl RowTyper {
    pub(crate) fn new(schema: &TableSchema) -> Self {
        let positions = schema.fields.iter().enumerate();
        Self {
            positions: positions
                .map(|(position, field)| (field.name.clone(), position))
                .collect(),
            key: schema
                .primary_keys
                .iter()
                .filter_map(|name| schema.position(name))
                .collect(),
            fields: schema.fields.clone(),
        }
    }

    pub(crate) fn fields(&self) -> &[DataField] {
        &self.fields
    }

    /// Adds the rows of a change: an update whose key stays is -U and +U, one whose key changes is -D and +I, one without the old row +U
    /// alone.
    ///
    /// Errors: the column, what was found and expected.
    pub(crate) fn add(&self, change: &Change<'_>, record: &mut RecordRows) -> Result<(), RecordError> {
        match change {
            Change::Row(kind, image) => {
                let row = self.row(image, record)?;
                record.rows.push((*kind, row));
            }
            Change::Update { before: None, after } => {
                let row = self.row(after, record)?;
                record.rows.push((RowKind::UpdateAfter, row));
            }
            Change::Update {
                before: Some(before),
                after,
            } => {
                let (before, after) = (self.row(before, record)?, self.row(after, record)?);
                let same_key = self
                    .key
                    .iter()
                    .all(|&position| before.get(position) == after.get(position));
                let (old, new) = match same_key {
                    true => (RowKind::UpdateBefore, RowKind::UpdateAfter),
                    false => (RowKind::Delete, RowKind::Insert),
                };
                record.rows.push((old, before));
                record.rows.push((new, after));
            }
        }
        Ok(())
    }

    fn declare(&self, field: &Field<'_>, record: &mut RecordRows) {
        let column = self.positions.get(field.name).and_then(|&at| self.fields.get(at));
        match (&field.source.declared, column) {
            (Some(declared), Some(column)) if declared.kind == column.data_type.kind => {}
            (Some(declared), _) => record.declare(field.name, declared.clone()),
            (None, Some(_)) => {}
            // Text, as in the reference, where the format has no types.
            (None, None) => record.declare(field.name, DataType::nullable(TypeKind::VarChar(MAX_LENGTH))),
        }
    }

    fn row(&self, image: &Image<'_>, record: &mut RecordRows) -> Result<Vec<Datum>, RecordError> {
        // All of them first: a value that does not fit may fit the type that is declared.
        for field in image {
            self.declare(field, record);
        }
        let mut row = vec![Datum::Null; self.fields.len()];
        for field in image {
            let column = self.positions.get(field.name);
            if let Some((column, value)) = column.and_then(|&at| self.fields.get(at).zip(row.get_mut(at))) {
                *value = decode(field.value, &column.data_type, &field.source.encoding)
                    .map_err(|error| error.in_column(field.name))?;
                check_nested(column, value)?;
            }
        }
        let missing = self
            .fields
            .iter()
            .zip(&row)
            .find(|(field, value)| !field.data_type.nullable && value.is_null());
        match missing {
            None => Ok(row),
            Some((field, _)) => Err(RecordError::new("NOT NULL, but there is no value").in_column(&field.name)),
        }
    }
}

/// What lies inside of a value may come as JSON in a text, which says less of nulls and ranges than the type: what a batch cannot hold is
/// found while the record is known.
fn check_nested(column: &DataField, value: &Datum) -> Result<(), RecordError> {
    match value {
        Datum::Array(_) | Datum::Map(_) | Datum::Row(_) => match array_from_datums(column, [value]) {
            Ok(_) => Ok(()),
            Err(error) => Err(RecordError::new(error)),
        },
        _ => Ok(()),
    }
}

/// Rows that wait to be written, by column.
#[derive(Debug)]
pub(crate) struct RowBatch {
    columns: Vec<Vec<Datum>>,
    kinds: Vec<i8>,
    /// Bytes of the records that they came from.
    bytes: usize,
}

impl RowBatch {
    pub(crate) fn new(columns: usize) -> Self {
        Self {
            columns: vec![Vec::new(); columns],
            kinds: Vec::new(),
            bytes: 0,
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.kinds.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the rows of one record of so many bytes.
    pub(crate) fn push(&mut self, rows: Vec<TypedRow>, bytes: usize) {
        self.bytes += bytes * rows.len();
        for (kind, row) in rows {
            self.kinds.push(kind as i8);
            for (column, value) in self.columns.iter_mut().zip(row) {
                column.push(value);
            }
        }
    }

    /// Takes the rows out, in the table's Arrow types.
    pub(crate) fn take(&mut self, fields: &[DataField]) -> Result<(RecordBatch, Int8Array), FormatError> {
        let full = std::mem::replace(self, Self::new(self.columns.len()));
        let mut arrays = Vec::with_capacity(fields.len());
        let mut arrow_fields = Vec::with_capacity(fields.len());
        for (field, values) in fields.iter().zip(&full.columns) {
            let array = array_from_datums(field, values)?;
            arrow_fields.push(ArrowField::new(&field.name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(full.kinds.len()));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(arrow_fields)), arrays, &options)
            .map_err(FormatError::internal)?;
        Ok((batch, Int8Array::from(full.kinds)))
    }
}
