//! What follows from a schema: the merge tree's key, the bucket key, the columns of records.

use paimon_format::kv::{KvSchema, SequenceOrder};
use paimon_format::row::KeyComparator;
use paimon_format::types::{DataField, DataType};

use super::table_schema::TableSchema;
use crate::error::{ManifestError, Result};

const BUCKET_KEY: &str = "bucket-key";
const SEQUENCE_FIELD: &str = "sequence.field";
const SEQUENCE_SORT_ORDER: &str = "sequence.field.sort-order";

impl TableSchema {
    /// Positions of the trimmed primary key: the primary key without partition columns, in primary-key order. It is the key of
    /// every bucket's merge tree.
    ///
    /// Errors: `Unsupported` without a primary key; `Invalid` when nothing is left.
    pub fn trimmed_primary_key(&self) -> Result<Vec<usize>> {
        if self.primary_keys.is_empty() {
            return Err(ManifestError::Unsupported("a table without primary key".to_string()));
        }
        let trimmed: Vec<usize> = self
            .primary_keys
            .iter()
            .filter(|key| !self.partition_keys.contains(key))
            .filter_map(|key| self.position(key))
            .collect();
        if trimmed.is_empty() {
            return Err(ManifestError::invalid(format!(
                "the primary key ({}) has no column besides the partition columns: a partition could hold only one row",
                self.primary_keys.join(", ")
            )));
        }
        Ok(trimmed)
    }

    /// Positions of the columns whose hash chooses the bucket: `bucket-key`, else the trimmed primary key.
    ///
    /// Errors: `Invalid`, naming the column: not of the primary key, a partition column, or of a nested type.
    pub fn bucket_key(&self) -> Result<Vec<usize>> {
        let Some(text) = self.options.get(BUCKET_KEY) else {
            return self.trimmed_primary_key();
        };
        // Blanks are part of the names, as in Java.
        text.split(',')
            .map(|name| {
                let wrong = |why: &str| Err(ManifestError::invalid(format!("{BUCKET_KEY}: column {name:?} {why}")));
                let Some(position) = self.position(name) else {
                    return wrong("is not a column of the table");
                };
                if self.partition_keys.iter().any(|key| key == name) {
                    return wrong("is a partition column");
                }
                if !self.primary_keys.iter().any(|key| key == name) {
                    return wrong("is not part of the primary key");
                }
                if self
                    .fields
                    .get(position)
                    .is_none_or(|field| !field.data_type.kind.is_flat())
                {
                    return wrong("has a nested type");
                }
                Ok(position)
            })
            .collect()
    }

    /// Positions of the partition columns, in the order of the path.
    pub fn partition_positions(&self) -> Vec<usize> {
        self.partition_keys
            .iter()
            .filter_map(|key| self.position(key))
            .collect()
    }

    /// The partition columns, in the order of the path.
    pub fn partition_fields(&self) -> Vec<DataField> {
        self.fields_at(&self.partition_positions())
    }

    /// Types of the partition columns.
    pub fn partition_types(&self) -> Vec<DataType> {
        self.types(&self.partition_positions())
    }

    /// The columns at these positions.
    pub fn fields_at(&self, positions: &[usize]) -> Vec<DataField> {
        positions
            .iter()
            .filter_map(|&position| self.fields.get(position).cloned())
            .collect()
    }

    fn types(&self, positions: &[usize]) -> Vec<DataType> {
        self.fields_at(positions)
            .into_iter()
            .map(|field| field.data_type)
            .collect()
    }

    /// Whether a key may move from one partition to another: the primary key does not hold all partition columns.
    pub fn cross_partition_update(&self) -> bool {
        !self.primary_keys.is_empty() && self.partition_keys.iter().any(|key| !self.primary_keys.contains(key))
    }

    /// The order of trimmed primary keys. Errors as [`trimmed_primary_key`](Self::trimmed_primary_key).
    pub fn key_comparator(&self) -> Result<KeyComparator> {
        Ok(KeyComparator::new(self.types(&self.trimmed_primary_key()?))?)
    }

    /// The user-defined sequence: `sequence.field` and its order.
    ///
    /// Errors: `Invalid`, naming the option and the column.
    pub fn sequence_order(&self) -> Result<Option<SequenceOrder>> {
        let Some(text) = self.options.get(SEQUENCE_FIELD) else {
            return Ok(None);
        };
        let columns = text
            .split(',')
            .map(str::trim)
            .map(|name| {
                self.position(name).ok_or_else(|| {
                    ManifestError::invalid(format!("{SEQUENCE_FIELD}: {name:?} is not a column of the table"))
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let is_repeated = |(at, column): (usize, &usize)| {
            columns
                .iter()
                .take(at)
                .any(|before| before == column)
                .then_some(*column)
        };
        if let Some(repeated) = columns.iter().enumerate().find_map(is_repeated) {
            let name = self.fields.get(repeated).map_or("", |field| field.name.as_str());
            return Err(ManifestError::invalid(format!(
                "{SEQUENCE_FIELD}: {name:?} is named more than once"
            )));
        }
        if self.cross_partition_update() {
            return Err(ManifestError::invalid(format!(
                "{SEQUENCE_FIELD} does not go with a primary key that has not all partition columns: a key that moves to another partition \
                 is deleted in the old one, whatever its sequence"
            )));
        }
        let descending = match self.options.get(SEQUENCE_SORT_ORDER) {
            None | Some("ascending") => false,
            Some("descending") => true,
            Some(other) => {
                return Err(ManifestError::invalid(format!(
                    "{SEQUENCE_SORT_ORDER}: {other:?} is neither ascending nor descending"
                )));
            }
        };
        Ok(Some(SequenceOrder { columns, descending }))
    }

    /// The columns of a bucket's records.
    ///
    /// Errors: `Invalid`, `Unsupported`, naming the column.
    pub fn kv_schema(&self) -> Result<KvSchema> {
        let in_key = |key: &&String| self.primary_keys.contains(key);
        let partition = self.partition_keys.iter().filter(in_key);
        Ok(KvSchema::new(
            self.id,
            self.fields.clone(),
            self.trimmed_primary_key()?,
            self.sequence_order()?,
        )?
        .with_partition(partition.filter_map(|key| self.position(key)).collect())?)
    }
}
