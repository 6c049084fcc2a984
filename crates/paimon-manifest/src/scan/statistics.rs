//! Filters against the statistics of files.

use std::collections::HashMap;

use paimon_format::meta::{DataFileMeta, SimpleStats};
use paimon_format::predicate::{ColumnStatistics, Predicate};
use paimon_format::types::DataField;

use crate::error::Result;
use crate::schema::TableSchema;

/// Statistics by column name; the fields are those that the statistics cover, in order. Statistics of another number of columns
/// say nothing.
///
/// Errors: `Corrupt` when the bounds are not of the fields' types.
pub(super) fn statistics_of<'a>(
    stats: &SimpleStats,
    fields: impl ExactSizeIterator<Item = &'a DataField>,
) -> Result<HashMap<String, ColumnStatistics>> {
    if stats.min_values.arity() != fields.len() || stats.max_values.arity() != fields.len() {
        return Ok(HashMap::new());
    }
    fields
        .enumerate()
        .map(|(column, field)| {
            let null_count = stats.null_counts.get(column).copied().flatten();
            let statistics = ColumnStatistics {
                min: Some(stats.min_values.get(column, &field.data_type)?),
                max: Some(stats.max_values.get(column, &field.data_type)?),
                null_count: null_count.and_then(|count| u64::try_from(count).ok()),
            };
            Ok((field.name.clone(), statistics))
        })
        .collect()
}

/// Whether a file may have a row whose key passes. The predicate tests columns of the trimmed primary key alone, whose types never
/// change.
pub(super) fn key_may_match(file: &DataFileMeta, predicate: &Predicate, key_fields: &[DataField]) -> Result<bool> {
    let statistics = statistics_of(&file.key_stats, key_fields.iter())?;
    Ok(predicate.may_match(file.row_count.max(0) as u64, &|name| statistics.get(name)))
}

/// Whether a file may have a row that passes, by the statistics of its value columns. `written` is the schema of the file, `read`
/// that of the predicate: columns meet by field id, and a column that changed its type, or that the statistics leave out, is not
/// known. A column that the file does not have is null in all rows.
///
/// Source: `org.apache.paimon.stats.SimpleStatsEvolution`.
pub(super) fn value_may_match(
    file: &DataFileMeta,
    predicate: &Predicate,
    written: &TableSchema,
    read: &TableSchema,
) -> Result<bool> {
    let covered: Vec<&DataField> = match &file.value_stats_cols {
        Some(names) => names.iter().filter_map(|name| written.field(name)).collect(),
        None => written.fields.iter().collect(),
    };
    let rows = file.row_count.max(0) as u64;
    let mut statistics = statistics_of(&file.value_stats, covered.into_iter())?;
    let mut of_read = HashMap::new();
    for name in predicate.columns() {
        let Some(field) = read.field(name) else { continue };
        match written.fields.iter().find(|old| old.id == field.id) {
            None => {
                let all_null = ColumnStatistics {
                    min: None,
                    max: None,
                    null_count: Some(rows),
                };
                of_read.insert(name, all_null);
            }
            Some(old) if old.data_type.kind == field.data_type.kind => {
                if let Some(known) = statistics.remove(&old.name) {
                    of_read.insert(name, known);
                }
            }
            Some(_) => {}
        }
    }
    Ok(predicate.may_match(rows, &|name| of_read.get(name)))
}
