//! Numbers that an option bounds.

use paimon_format::FormatError;

/// A number above 0 in another type. Errors: `Invalid` naming the option, for one that is not, or that the type cannot hold.
pub(crate) fn above_zero<T: TryFrom<i64>>(key: &str, number: i64) -> Result<T, FormatError> {
    let above = T::try_from(number).ok().filter(|_| number > 0);
    above.ok_or_else(|| FormatError::invalid(format!("option '{key}' = '{number}': expected a number above 0")))
}
