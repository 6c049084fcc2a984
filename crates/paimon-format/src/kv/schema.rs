//! The columns of a bucket's records.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::types::DataField;

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
    /// User-defined sequence, if any.
    pub sequence: Option<SequenceOrder>,
    /// `_SEQUENCE_NUMBER`, `_VALUE_KIND`, then `fields`, as Arrow.
    pub arrow: SchemaRef,
}

impl KvSchema {
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
