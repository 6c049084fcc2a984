//! Hint files: a decimal id that saves a listing.

use paimon_format::ErrorKind;
use paimon_format::storage::{Storage, StorageError};

/// Reads a hint. A hint is only a hint: a missing, empty or garbled file is no hint at all.
///
/// Errors: only those of the storage that are not "no such file", because they would hide a missing permission.
pub(super) async fn read_hint(storage: &dyn Storage, path: &str) -> Result<Option<i64>, StorageError> {
    match storage.read_all(path).await {
        Ok(bytes) => Ok(std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .filter(|id| *id > 0)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
