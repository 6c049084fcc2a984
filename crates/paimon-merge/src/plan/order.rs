//! The order of the versions of one key.

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_buffer::ScalarBuffer;
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::SortOptions;
use paimon_format::FormatError;
use paimon_format::kv::{KvBatch, KvSchema, RowLevels, VALUE_OFFSET};
use paimon_format::types::canonical_nan;

use crate::MergeError;

/// Orders versions of a key, oldest first: user-defined sequence (nulls first in both directions), then sequence number. Ties, which
/// only uncoordinated writers make, are broken by level: the deeper version is the older one.
///
/// Source: `org.apache.paimon.utils.UserDefinedSeqComparator`, `org.apache.paimon.mergetree.compact.SortMergeReader`.
#[derive(Debug, Default)]
pub struct VersionOrder {
    user: Option<UserSequence>,
}

#[derive(Debug)]
struct UserSequence {
    converter: RowConverter,
    /// Positions among a batch's columns.
    columns: Vec<usize>,
}

/// What [`VersionOrder`] compares of the rows of one batch.
#[derive(Debug)]
pub struct Versioned {
    user: Option<Rows>,
    sequence: ScalarBuffer<i64>,
    levels: RowLevels,
}

impl VersionOrder {
    /// The order that a schema's sequence fields demand.
    ///
    /// Errors: `Unsupported` for sequence fields that have no order.
    pub fn new(schema: &KvSchema) -> Result<Self, MergeError> {
        let Some(sequence) = &schema.sequence else {
            return Ok(Self::default());
        };
        let options = SortOptions {
            descending: sequence.descending,
            nulls_first: true,
        };
        let columns: Vec<usize> = sequence.columns.iter().map(|column| column + VALUE_OFFSET).collect();
        let fields = columns
            .iter()
            .map(|&column| {
                let field = schema.arrow.fields().get(column).ok_or_else(|| {
                    FormatError::internal(format!("sequence column {column} is not among the columns read"))
                })?;
                Ok(SortField::new_with_options(field.data_type().clone(), options))
            })
            .collect::<Result<Vec<_>, FormatError>>()?;
        let converter = RowConverter::new(fields)
            .map_err(|error| FormatError::unsupported(format!("sequence.field of a type without an order: {error}")))?;
        Ok(Self {
            user: Some(UserSequence { converter, columns }),
        })
    }

    /// Prepares the rows of a batch for [`Versioned::compare`]. Copies the user-defined sequence columns, if any.
    pub fn prepare(&self, batch: &KvBatch) -> Result<Versioned, MergeError> {
        let user = self
            .user
            .as_ref()
            .map(|user| {
                let columns: Vec<ArrayRef> = user
                    .columns
                    .iter()
                    .filter_map(|&column| batch.columns.columns().get(column))
                    .map(canonical_nan)
                    .collect();
                user.converter
                    .convert_columns(&columns)
                    .map_err(|error| FormatError::internal(format!("sequence columns: {error}")))
            })
            .transpose()?;
        Ok(Versioned {
            user,
            sequence: batch.columns.column(0).as_primitive::<Int64Type>().values().clone(),
            levels: batch.levels.clone(),
        })
    }
}

impl Versioned {
    /// Compares two versions of one key. `Equal` when nothing tells them apart.
    pub fn compare(&self, row: usize, other: &Self, other_row: usize) -> Ordering {
        let user = match (&self.user, &other.user) {
            (Some(mine), Some(others)) => mine.row(row).cmp(&others.row(other_row)),
            _ => Ordering::Equal,
        };
        user.then_with(|| self.sequence[row].cmp(&other.sequence[other_row]))
            .then_with(|| other.level(other_row).cmp(&self.level(row)))
    }

    /// The level of a row.
    pub fn level(&self, row: usize) -> i32 {
        self.levels.get(row)
    }
}
