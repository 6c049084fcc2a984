//! Libraries that panic on damaged bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::FormatError;

/// Runs work of a format's library on bytes that may be damaged: a panic of its is an error about the file.
pub(super) fn caught<T>(
    format: &str,
    path: &str,
    work: impl FnOnce() -> Result<T, FormatError>,
) -> Result<T, FormatError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let message = format!("the {format} decoder gave up: {said}");
        Err(FormatError::corrupt(path, message))
    })
}
