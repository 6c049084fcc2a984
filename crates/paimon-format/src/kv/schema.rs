//! The columns of a bucket's records.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};

use crate::error::FormatError;
use crate::types::{DataField, arrow_field, with_id};

/// The column that holds a record's sequence number: Int64, not null.
pub const SEQUENCE_NUMBER: &str = "_SEQUENCE_NUMBER";
/// The column that holds the byte of a record's [`RowKind`](crate::types::RowKind): Int8, not null.
pub const VALUE_KIND: &str = "_VALUE_KIND";
/// What the names of a file's key columns start with.
pub const KEY_PREFIX: &str = "_KEY_";
/// The field id of `_SEQUENCE_NUMBER`. Source: `org.apache.paimon.table.SpecialFields`.
pub const SEQUENCE_NUMBER_ID: i32 = i32::MAX - 1;
/// The field id of `_VALUE_KIND`.
pub const VALUE_KIND_ID: i32 = i32::MAX - 2;
/// The field id of a `_KEY_` column is this plus the id of its column; a table's own ids stay below.
pub const KEY_ID_START: i32 = i32::MAX / 2;
/// How many columns of a batch stand before the value columns: sequence number and kind.
pub const VALUE_OFFSET: usize = 2;

/// How user-defined sequence columns order the versions of a key. Nulls come first in both directions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SequenceOrder {
    /// Positions in [`KvSchema::fields`], first column first.
    pub columns: Vec<usize>,
    /// `sequence.field.sort-order = descending`: the smaller value wins.
    pub descending: bool,
}

/// The columns of a bucket's records: a table schema, or the part of it that a read needs.
///
/// A [`crate::kv::KvBatch`] of this schema has the columns `_SEQUENCE_NUMBER` (Int64), `_VALUE_KIND` (Int8), then `fields` in
/// order. A read always keeps the key columns and the sequence columns, however few columns were asked for; they are
/// projected away after merging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvSchema {
    /// The table schema's id.
    pub schema_id: i64,
    /// Value columns, in table order.
    pub fields: Vec<DataField>,
    /// Positions in `fields` of the trimmed primary key, in primary-key order.
    pub key: Vec<usize>,
    /// Positions in `fields` of the primary key's partition columns: all records of a bucket have the same values there.
    pub partition: Vec<usize>,
    /// User-defined sequence, if any.
    pub sequence: Option<SequenceOrder>,
    /// `_SEQUENCE_NUMBER`, `_VALUE_KIND`, then `fields`, as Arrow.
    pub arrow: SchemaRef,
}

impl KvSchema {
    /// A schema from a table's fields, the positions of its trimmed primary key, and its sequence fields.
    ///
    /// Errors: `Invalid` when a position is out of range or given twice, the key is empty, two columns have one name, or a name is
    /// reserved; `Unsupported` when a column has a type without an Arrow form, or a key or sequence column has a nested type.
    /// All name the column.
    pub fn new(
        schema_id: i64,
        fields: Vec<DataField>,
        key: Vec<usize>,
        sequence: Option<SequenceOrder>,
    ) -> Result<Self, FormatError> {
        let mut names = HashSet::new();
        for field in &fields {
            let name = field.name.as_str();
            if name == SEQUENCE_NUMBER || name == VALUE_KIND || name.starts_with(KEY_PREFIX) {
                return Err(FormatError::invalid(format!("the column name {name} is reserved")));
            }
            if !names.insert(name) {
                return Err(FormatError::invalid(format!("two columns are named {name}")));
            }
        }
        if key.is_empty() {
            return Err(FormatError::invalid(
                "the primary key has no column besides the partition columns",
            ));
        }
        check_order_columns("the primary key", &fields, &key)?;
        if let Some(sequence) = &sequence {
            check_order_columns("the sequence fields", &fields, &sequence.columns)?;
        }
        let mut arrow = vec![
            with_id(Field::new(SEQUENCE_NUMBER, ArrowType::Int64, false), SEQUENCE_NUMBER_ID),
            with_id(Field::new(VALUE_KIND, ArrowType::Int8, false), VALUE_KIND_ID),
        ];
        for field in &fields {
            arrow.push(arrow_field(field)?);
        }
        Ok(Self {
            schema_id,
            fields,
            key,
            partition: Vec::new(),
            sequence,
            arrow: Arc::new(Schema::new(arrow)),
        })
    }

    /// The same columns, of which those at `positions` are the primary key's partition columns.
    ///
    /// Errors: `Invalid` when a position is out of range.
    pub fn with_partition(self, positions: Vec<usize>) -> Result<Self, FormatError> {
        match positions.iter().find(|&&position| position >= self.fields.len()) {
            Some(&position) => Err(out_of_range("the partition columns", position, &self.fields)),
            None => Ok(Self {
                partition: positions,
                ..self
            }),
        }
    }

    /// Whether the column at a position belongs to the primary key, its partition columns included.
    pub fn is_primary_key(&self, position: usize) -> bool {
        self.key.contains(&position) || self.partition.contains(&position)
    }

    /// The part of this schema that holds the columns at `positions`, the key and the sequence columns, in table order.
    ///
    /// Errors: `Invalid` when a position is out of range.
    pub fn project(&self, positions: &[usize]) -> Result<Self, FormatError> {
        let mut kept = vec![false; self.fields.len()];
        let sequence_columns = self.sequence.iter().flat_map(|sequence| &sequence.columns);
        for &position in positions.iter().chain(&self.key).chain(sequence_columns) {
            match kept.get_mut(position) {
                Some(kept) => *kept = true,
                None => return Err(out_of_range("the projection", position, &self.fields)),
            }
        }
        let mut new_positions = Vec::with_capacity(kept.len());
        let mut fields = Vec::new();
        for (field, kept) in self.fields.iter().zip(&kept) {
            new_positions.push(fields.len());
            if *kept {
                fields.push(field.clone());
            }
        }
        let renumber = |old: &[usize]| old.iter().filter_map(|&old| new_positions.get(old).copied()).collect();
        let is_kept = |position: &usize| kept.get(*position).copied().unwrap_or(false);
        let partition: Vec<usize> = self.partition.iter().copied().filter(is_kept).collect();
        Self::new(
            self.schema_id,
            fields,
            renumber(&self.key),
            self.sequence.as_ref().map(|sequence| SequenceOrder {
                columns: renumber(&sequence.columns),
                descending: sequence.descending,
            }),
        )?
        .with_partition(renumber(&partition))
    }

    /// The key's fields, in primary-key order.
    pub fn key_fields(&self) -> impl Iterator<Item = &DataField> {
        self.key.iter().filter_map(|&position| self.fields.get(position))
    }

    /// The position of a value column by name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

/// Shared by all batches of a read or a writer.
pub type KvSchemaRef = Arc<KvSchema>;

fn check_order_columns(what: &str, fields: &[DataField], positions: &[usize]) -> Result<(), FormatError> {
    for (i, &position) in positions.iter().enumerate() {
        let Some(field) = fields.get(position) else {
            return Err(out_of_range(what, position, fields));
        };
        if positions.iter().take(i).any(|&earlier| earlier == position) {
            return Err(FormatError::invalid(format!(
                "{what} names column {} twice",
                field.name
            )));
        }
        if !field.data_type.kind.is_flat() {
            return Err(FormatError::unsupported(format!(
                "{what}: column {} has type {}, which has no order",
                field.name, field.data_type
            )));
        }
    }
    Ok(())
}

fn out_of_range(what: &str, position: usize, fields: &[DataField]) -> FormatError {
    FormatError::invalid(format!(
        "{what}: no column at position {position}, there are {} columns",
        fields.len()
    ))
}

#[cfg(test)]
mod tests;
