//! Reading a bucket: merged, raw, or as a stream of changes.

mod filter;
mod merge_read;
mod projection;

pub use merge_read::{MergeRead, ReadBatch};
pub use projection::ReadProjection;

#[cfg(test)]
mod tests;
