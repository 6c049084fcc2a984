//! Refuses options that this engine would treat otherwise than Java.

use super::catalog::{self, CATALOG, KnownOption, Treatment, Uses, ValueType};
use super::{Options, illegal, values};
use crate::FormatError;

/// What a table is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableUse {
    /// Its rows are read.
    Read,
    /// Rows are written, or files compacted.
    Write,
}

/// Checks all options of a primary-key table before it is used.
///
/// Errors: `Invalid` for a value that is none of its type, `Unsupported` for a value, or an unset option's default, that needs what
/// this engine does not have; both name the option. Options of other engines and unknown ones are accepted whatever they hold, see
/// [`unknown_options`].
pub fn check_options(options: &Options, table_use: TableUse) -> Result<(), FormatError> {
    for (key, value) in options.iter() {
        if let Some(known) = catalog::find(key) {
            check_value(known, key, value, table_use)?;
        }
    }
    CATALOG
        .iter()
        .flat_map(|section| section.options)
        .filter(|known| options.lookup(known.key).is_none())
        .try_for_each(|known| match known.default {
            Some(default) => refuse(known, known.key, default, ", its default", table_use),
            None => Ok(()),
        })
}

/// The keys that are in no catalogue: kept in the schema and ignored, as in Java.
pub fn unknown_options(options: &Options) -> Vec<&str> {
    options
        .iter()
        .map(|(key, _)| key)
        .filter(|key| catalog::find(key).is_none())
        .collect()
}

fn check_value(known: &KnownOption, key: &str, value: &str, table_use: TableUse) -> Result<(), FormatError> {
    if !matches!(known.treatment, Treatment::Other | Treatment::NoEffect) {
        check_syntax(known.value_type, value).map_err(|expected| illegal(key, value, &expected))?;
    }
    refuse(known, key, value, "", table_use)
}

fn check_syntax(value_type: ValueType, value: &str) -> Result<(), String> {
    match value_type {
        ValueType::Bool => values::parse_bool(value).map(drop),
        ValueType::Int => values::parse_int(value).map(drop),
        ValueType::Long => values::parse_long(value).map(drop),
        ValueType::Double => values::parse_double(value).map(drop),
        ValueType::MemorySize => values::parse_memory_size(value).map(drop),
        ValueType::Duration => values::parse_duration(value).map(drop),
        ValueType::Map => values::parse_map(value).map(drop),
        ValueType::String | ValueType::List => Ok(()),
        ValueType::Enum(names) => names
            .iter()
            .any(|name| name.eq_ignore_ascii_case(value))
            .then_some(())
            .ok_or_else(|| values::one_of(names.iter().copied())),
    }
}

fn refuse(known: &KnownOption, key: &str, value: &str, what: &str, table_use: TableUse) -> Result<(), FormatError> {
    let (accepted, uses, expected) = match known.treatment {
        Treatment::Honoured | Treatment::Other | Treatment::NoEffect => return Ok(()),
        Treatment::Accepts(names, uses) => (
            names.iter().any(|name| name.eq_ignore_ascii_case(value)),
            uses,
            names.join(", "),
        ),
        Treatment::Refuses(names, uses) => (
            !names.iter().any(|name| name.eq_ignore_ascii_case(value)),
            uses,
            String::new(),
        ),
    };
    let verb = match (uses, table_use) {
        (Uses::Read | Uses::Both, TableUse::Read) => "read",
        (Uses::Write | Uses::Both, TableUse::Write) => "write",
        _ => return Ok(()),
    };
    if accepted {
        return Ok(());
    }
    let alternative = match expected.as_str() {
        "" => String::new(),
        expected => format!(" (accepted: {expected})"),
    };
    Err(FormatError::unsupported(format!(
        "option '{key}' = '{value}'{what}: this engine does not {verb} such tables{alternative}"
    )))
}
