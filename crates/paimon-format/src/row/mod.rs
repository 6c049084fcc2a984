//! Rows as bytes: [`BinaryRow`] for manifests and bucket hashes, compacted rows for lookup files, and Java's Murmur hash.
//!
//! | File | What it holds |
//! |---|---|
//! | `binary_row` | the row, and its form in manifests (with the arity in front) |
//! | `section` | the layout shared by rows and arrays: null bits, slots, variable part |
//! | `writer` | rows from single values |
//! | `columns` | rows from Arrow columns, without a value object a row |
//! | [`compacted`] | rows without padding: keys and values of lookup files |
//! | `reader` | values from rows; every byte is checked |
//! | `key_order` | Java's order of key rows |
//! | `murmur` | the hash |
//! | `hex` | bytes as text, for JSON |

mod binary_row;
pub(crate) mod columns;
pub mod compacted;
pub(crate) mod hex;
mod key_order;
pub mod murmur;
mod reader;
mod section;
mod writer;

pub use binary_row::BinaryRow;
pub use columns::{RowEncoder, binary_rows, row_at};
pub use key_order::KeyComparator;
pub use writer::BinaryRowWriter;

#[cfg(test)]
mod tests;
