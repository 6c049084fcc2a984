//! Which files cannot hold a row that is wanted.
//!
//! Versions of a key may lie in several files, and a filter sees merged rows only. So conditions on keys decide about each file, but
//! conditions on values decide about files only where none overlaps another; where they overlap, about all together, and only if
//! the merged row is one of the rows that were written.

use std::collections::BTreeMap;
use std::sync::Arc;

use paimon_format::meta::{DataFileMeta, SimpleStats};
use paimon_format::predicate::{ColumnStatistics, Predicate};
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, Datum};

use crate::error::Result;
use crate::table::Table;

/// A filter, taken apart by what it can decide.
///
/// Source: `org.apache.paimon.operation.KeyValueFileStoreScan`.
#[derive(Debug)]
pub(super) struct Pruning {
    partition: Option<Predicate>,
    key: Option<Predicate>,
    values: Option<Predicate>,
    key_fields: Vec<DataField>,
    fields: Vec<DataField>,
    schema_id: i64,
    newest_wins: bool,
}

impl Pruning {
    pub(super) fn new(table: &Table, filter: Option<&Predicate>) -> Result<Self> {
        let schema = table.schema();
        let key_fields: Vec<DataField> = schema
            .trimmed_primary_key()?
            .iter()
            .filter_map(|&position| schema.fields.get(position))
            .cloned()
            .collect();
        let is_partition = |name: &str| schema.partition_keys.iter().any(|key| key == name);
        let is_key = |name: &str| key_fields.iter().any(|field| field.name == name);
        let is_value = |name: &str| !is_partition(name);
        let project = |keep: &dyn Fn(&str) -> bool| filter.and_then(|filter| filter.project(keep));
        Ok(Self {
            partition: project(&is_partition),
            key: project(&is_key),
            values: project(&is_value),
            fields: schema.fields.clone(),
            schema_id: schema.id,
            newest_wins: table.merge_engine()?.promises().newest_wins,
            key_fields,
        })
    }

    /// Whether rows of a partition may be wanted; its values by column name.
    pub(super) fn wants_partition(&self, values: &[(&str, Datum)]) -> Result<bool> {
        match &self.partition {
            None => Ok(true),
            Some(filter) => {
                let value = |name: &str| values.iter().find(|(column, _)| *column == name).map(|(_, value)| value);
                Ok(filter.evaluate_row(&value)?)
            }
        }
    }

    /// The files of a bucket that may hold a row that is wanted.
    ///
    /// Errors: `Corrupt` for statistics that are not those of the table's columns.
    pub(super) fn files(&self, mut files: Vec<Arc<DataFileMeta>>) -> Result<Vec<Arc<DataFileMeta>>> {
        if let Some(filter) = &self.key {
            files = keep(files, |file| self.may_match_keys(filter, file))?;
        }
        let Some(filter) = &self.values else {
            return Ok(files);
        };
        let first_level = files.first().map_or(0, |file| file.level);
        let apart = files.len() == 1 || (first_level > 0 && files.iter().all(|file| file.level == first_level));
        if apart {
            return keep(files, |file| self.may_match_values(filter, file));
        }
        if self.newest_wins {
            for file in &files {
                if self.may_match_values(filter, file)? {
                    return Ok(files);
                }
            }
            files.clear();
        }
        Ok(files)
    }

    fn may_match_keys(&self, filter: &Predicate, file: &DataFileMeta) -> Result<bool> {
        let columns: Vec<&DataField> = self.key_fields.iter().collect();
        matches(filter, file, &file.key_stats, &columns)
    }

    fn may_match_values(&self, filter: &Predicate, file: &DataFileMeta) -> Result<bool> {
        // Columns of another schema version may have had other names and types.
        if file.schema_id != self.schema_id {
            return Ok(true);
        }
        let columns: Option<Vec<&DataField>> = match &file.value_stats_cols {
            None => Some(self.fields.iter().collect()),
            Some(names) => {
                let field = |name: &String| self.fields.iter().find(|field| field.name == *name);
                names.iter().map(field).collect()
            }
        };
        match columns {
            Some(columns) => matches(filter, file, &file.value_stats, &columns),
            None => Ok(true),
        }
    }
}

fn keep(
    files: Vec<Arc<DataFileMeta>>,
    wanted: impl Fn(&DataFileMeta) -> Result<bool>,
) -> Result<Vec<Arc<DataFileMeta>>> {
    let mut kept = Vec::with_capacity(files.len());
    for file in files {
        if wanted(&file)? {
            kept.push(file);
        }
    }
    Ok(kept)
}

/// Whether a row of the file may pass; statistics of other columns than these are not there.
fn matches(filter: &Predicate, file: &DataFileMeta, stats: &SimpleStats, columns: &[&DataField]) -> Result<bool> {
    // Tables without statistics have rows of no fields.
    let known = |row: &BinaryRow| row.arity() == columns.len();
    if !known(&stats.min_values) || !known(&stats.max_values) {
        return Ok(true);
    }
    let mut by_name = BTreeMap::new();
    for (position, field) in columns.iter().enumerate() {
        let null_count = stats.null_counts.get(position).copied().flatten();
        let statistics = ColumnStatistics {
            min: Some(stats.min_values.get(position, &field.data_type)?),
            max: Some(stats.max_values.get(position, &field.data_type)?),
            null_count: null_count.and_then(|count| u64::try_from(count).ok()),
        };
        by_name.insert(field.name.as_str(), statistics);
    }
    let rows = u64::try_from(file.row_count).unwrap_or(0);
    Ok(filter.may_match(rows, &|name| by_name.get(name)))
}
