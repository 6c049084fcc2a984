//! Rows as bytes: `BinaryRow` for manifests and bucket hashes.

mod binary_row;

pub use binary_row::BinaryRow;
