//! Bytes of a file, as many as were asked for.

use std::ops::Range;

use bytes::Bytes;

use crate::error::FormatError;
use crate::storage::Storage;

/// How much is read to find a footer. A file that is not larger is read in this one call.
#[cfg(any(feature = "parquet", feature = "orc"))]
pub(super) const TAIL_BYTES: u64 = 64 << 10;

/// Reads one range. Errors: those of the storage; `Corrupt` names the path when fewer bytes came.
pub(super) async fn fetch(storage: &dyn Storage, path: &str, range: Range<u64>) -> Result<Bytes, FormatError> {
    let expected = range.end - range.start;
    let read = storage.read(path, &[range]).await?.pop().unwrap_or_default();
    if read.len() as u64 == expected {
        Ok(read)
    } else {
        let message = format!("{} bytes where {expected} were asked for", read.len());
        Err(FormatError::corrupt(path, message))
    }
}

/// The part of `bytes`, which are at `start` of the file, that is a range of the file; `None` when they do not have all of it.
#[cfg(any(feature = "parquet", feature = "orc"))]
pub(super) fn part(bytes: &Bytes, start: u64, range: &Range<u64>) -> Option<Bytes> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    (from <= to && to <= bytes.len()).then(|| bytes.slice(from..to))
}
