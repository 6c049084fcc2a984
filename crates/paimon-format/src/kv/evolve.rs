//! A file's columns made into those of the schema that reads it.
//!
//! Columns are matched by field id: a renamed column is found, an added one is null, a dropped one is not read, a widened one is cast.
//! Partition columns are not read at all: their values are the bucket's. Source: `org.apache.paimon.schema.SchemaEvolutionUtil`,
//! `org.apache.paimon.utils.FormatReaderMapping`.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt64Array, new_null_array};
use arrow_select::take::take;
use async_trait::async_trait;

use crate::error::FormatError;
use crate::kv::{KvSchema, SEQUENCE_NUMBER, SEQUENCE_NUMBER_ID, VALUE_KIND, VALUE_KIND_ID, VALUE_OFFSET};
use crate::types::{Cast, DataField, DataType, Datum, TypeKind, array_from_datums};

/// Where the columns of older schema versions come from: the table's `schema/schema-<id>` files.
#[async_trait]
pub trait SchemaSource: Debug + Send + Sync {
    /// All columns of a schema version, in its order. Asked once a file of another version than the reader's.
    ///
    /// Errors: `NotFound` when there is no such version.
    async fn fields(&self, schema_id: i64) -> Result<Arc<[DataField]>, FormatError>;
}

/// The value of a partition column in all rows of a bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionValue {
    /// The column's field id.
    pub field_id: i32,
    /// The value.
    pub value: Datum,
}

/// How the rows of files of one schema version become rows of the schema wanted.
#[derive(Debug)]
pub(super) struct Evolution {
    /// Columns to read, as the file has them: sequence number, kind, values.
    pub(super) read: Vec<DataField>,
    /// One a value column wanted.
    sources: Vec<Source>,
    schema: Arc<KvSchema>,
}

#[derive(Debug)]
enum Source {
    /// Column of [`Evolution::read`], as it is.
    Same(usize),
    /// Column of [`Evolution::read`], of another type.
    Cast(usize, Box<Cast>),
    /// Not in the file.
    Null,
    /// One value, as an array of length 1.
    Constant(ArrayRef),
}

impl Evolution {
    /// Errors: `Unsupported` names a column of a type that the file's does not become.
    pub(super) fn new(
        file_fields: &[DataField],
        schema: &Arc<KvSchema>,
        partition: &[PartitionValue],
    ) -> Result<Self, FormatError> {
        let mut read = vec![
            DataField::new(
                SEQUENCE_NUMBER_ID,
                SEQUENCE_NUMBER,
                DataType::not_null(TypeKind::BigInt),
            ),
            DataField::new(VALUE_KIND_ID, VALUE_KIND, DataType::not_null(TypeKind::TinyInt)),
        ];
        let mut sources = Vec::with_capacity(schema.fields.len());
        for field in &schema.fields {
            if let Some(partition) = partition.iter().find(|value| value.field_id == field.id) {
                sources.push(Source::Constant(array_from_datums(field, [&partition.value])?));
                continue;
            }
            let Some(found) = file_fields.iter().find(|found| found.id == field.id) else {
                sources.push(Source::Null);
                continue;
            };
            let source = if found.data_type.kind == field.data_type.kind {
                Source::Same(read.len())
            } else {
                Source::Cast(read.len(), Box::new(Cast::new(&found.data_type, field)?))
            };
            sources.push(source);
            read.push(found.clone());
        }
        Ok(Self {
            read,
            sources,
            schema: Arc::clone(schema),
        })
    }

    /// The column of [`Evolution::read`] that holds a value column unchanged, so that the file's statistics are about it.
    pub(super) fn unchanged(&self, column: usize) -> Option<usize> {
        match self.sources.get(column) {
            Some(Source::Same(read)) => Some(*read),
            _ => None,
        }
    }

    /// The columns wanted, of the columns read. The error does not name the file.
    pub(super) fn apply(&self, read: &RecordBatch) -> Result<RecordBatch, FormatError> {
        let rows = read.num_rows();
        let mut columns: Vec<ArrayRef> = read.columns().iter().take(VALUE_OFFSET).map(Arc::clone).collect();
        for source in &self.sources {
            let column = match source {
                Source::Same(index) => read_column(read, *index)?,
                Source::Cast(index, cast) => cast.apply(&read_column(read, *index)?)?,
                Source::Null => new_null_array(self.schema.arrow.field(columns.len()).data_type(), rows),
                Source::Constant(value) => {
                    let repeated = UInt64Array::from(vec![0; rows]);
                    take(value, &repeated, None).map_err(FormatError::internal)?
                }
            };
            columns.push(column);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema.arrow), columns, &options)
            .map_err(FormatError::invalid)
    }
}

fn read_column(read: &RecordBatch, index: usize) -> Result<ArrayRef, FormatError> {
    let column = read.columns().get(index).map(Arc::clone);
    column.ok_or_else(|| FormatError::internal(format!("no column {index} was read")))
}
