//! Normalized keys: comparing two of them is comparing two integers or two byte strings.

use arrow_buffer::ScalarBuffer;
use arrow_row::Rows;
use std::sync::Arc;

/// The keys of a batch in Java's order, one a row.
///
/// A single INT or BIGINT (or DATE, TIME, TINYINT, SMALLINT widened) key stays a native integer; everything else is row-encoded
/// by `arrow-row`, with NaN made one value first (arrow-row puts negative NaN lowest, Java puts every NaN highest).
#[derive(Clone, Debug)]
pub enum Keys {
    /// One integer column of 32 bits or less.
    Int32(ScalarBuffer<i32>),
    /// One BIGINT column.
    Int64(ScalarBuffer<i64>),
    /// Any other key: `rows` from `start`, `len` of them. Keys of one bucket come from one `RowConverter` configuration and compare by bytes.
    Rows {
        /// Row-encoded keys, shared by slices.
        rows: Arc<Rows>,
        /// First row of this batch.
        start: usize,
        /// Rows of this batch.
        len: usize,
    },
}
