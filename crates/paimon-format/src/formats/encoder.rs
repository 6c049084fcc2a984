//! What writes one data file, whatever its format.

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::error::FormatError;
use crate::formats::ColumnStats;

/// Encodes the rows of one file. Plain CPU work: the bytes go to storage by who calls it.
///
/// Batches have the physical columns of the file, in order.
pub trait FileEncoder: Send {
    /// Appends rows.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), FormatError>;
    /// Bytes that the file would have if it ended now, roughly: those written and an estimate of those not yet encoded.
    fn size(&self) -> u64;
    /// The bytes encoded since the last call; may be empty.
    fn take(&mut self) -> Result<Bytes, FormatError>;
    /// Ends the file: its last bytes, and what the rows were.
    fn finish(self: Box<Self>) -> Result<Encoded, FormatError>;
}

/// The end of a file.
#[derive(Debug)]
pub struct Encoded {
    /// What [`FileEncoder::take`] has not given out.
    pub bytes: Bytes,
    /// Full statistics of each physical column, as the format knows them (nested columns: nothing).
    pub stats: Vec<ColumnStats>,
}
