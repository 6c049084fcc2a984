//! The options `fields.*` of the engines that aggregate.

use paimon_format::kv::KvSchema;
use paimon_format::options::Options;

use super::columns::ColumnMerge;
use crate::MergeError;
use crate::aggregate::{AggregatedColumn, Aggregators};

pub(super) const PREFIX: &str = "fields.";
pub(super) const DEFAULT_FUNCTION: &str = "fields.default-aggregate-function";
const FUNCTION: &str = "aggregate-function";

/// The columns and the last part of an option `fields.<columns>.<suffix>`.
pub(super) fn parts(key: &str) -> Option<(Vec<&str>, &str)> {
    if key == DEFAULT_FUNCTION {
        return None;
    }
    let (columns, suffix) = key.strip_prefix(PREFIX)?.rsplit_once('.')?;
    Some((columns.split(',').map(str::trim).collect(), suffix))
}

/// Every option `fields.<columns>.*` names columns of the table.
///
/// Errors: `Invalid`, naming option and column.
pub(super) fn check_columns(schema: &KvSchema, options: &Options) -> Result<(), MergeError> {
    for (key, _) in options.iter() {
        let Some((columns, _)) = parts(key) else {
            continue;
        };
        for column in columns {
            if schema.position(column).is_none() {
                return Err(MergeError::Invalid(format!(
                    "option '{key}': the table has no column {column}"
                )));
            }
        }
    }
    Ok(())
}

/// The name of a column's function, its own or the default one.
pub(super) fn function_name<'a>(options: &'a Options, column: &str) -> Option<&'a str> {
    own_function_name(options, column).or_else(|| options.get(DEFAULT_FUNCTION))
}

/// The name of the function that a column names itself.
pub(super) fn own_function_name<'a>(options: &'a Options, column: &str) -> Option<&'a str> {
    options.get(&format!("{PREFIX}{column}.{FUNCTION}"))
}

/// The function of the column at `position`.
///
/// Errors: `Invalid`, naming the column.
pub(super) fn column_merge(
    schema: &KvSchema,
    position: usize,
    function: &str,
    options: &Options,
    aggregators: &Aggregators,
) -> Result<ColumnMerge, MergeError> {
    let field = schema
        .fields
        .get(position)
        .ok_or_else(|| MergeError::internal(format!("no column at position {position}")))?;
    let column = AggregatedColumn {
        field,
        options,
        function,
    };
    Ok(ColumnMerge::new(
        aggregators.create(&column)?,
        column.flag("ignore-retract")?,
        field,
        function,
    ))
}
