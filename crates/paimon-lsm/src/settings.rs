//! Numbers among a table's options.

use paimon_format::options::Options;

use crate::LsmError;

/// A whole number that must not be below `least`.
pub(crate) fn at_least(options: &Options, key: &str, least: i32, default: i32) -> Result<i32, LsmError> {
    match options.int(key)? {
        None => Ok(default),
        Some(value) if value >= least => Ok(value),
        Some(value) => Err(LsmError::Invalid(format!(
            "{key}: expected a number of at least {least}, found {value}"
        ))),
    }
}

/// A whole number that must not be negative.
pub(crate) fn unsigned(options: &Options, key: &str, default: u32) -> Result<u32, LsmError> {
    match options.int(key)? {
        None => Ok(default),
        Some(value) => u32::try_from(value)
            .map_err(|_| LsmError::Invalid(format!("{key}: expected a number of at least 0, found {value}"))),
    }
}
