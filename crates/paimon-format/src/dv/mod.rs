//! Deletion vectors: which rows of a data file no longer count.
//!
//! | File | What it holds |
//! |---|---|
//! | `vector` | [`DeletionVector`]: the deleted rows of one file, in memory |
//! | `as_text` | the same in a task description |
//! | `bitmap32`, `bitmap64` | its two forms on disk |
//! | `record` | one vector in an index file: size, form, checksum |
//! | `index_file` | [`DeletionVectorsIndexFile`]: reads and writes the index files of a bucket |
//! | `maintainer` | [`BucketDvMaintainer`]: the vectors of a bucket while it is written |
//!
//! A bucket of a primary-key table has one index file with the vectors of all its data files; each change writes a new one.

mod as_text;
mod bitmap32;
mod bitmap64;
mod index_file;
mod maintainer;
mod record;
mod vector;

pub use index_file::DeletionVectorsIndexFile;
pub use maintainer::{BucketDvMaintainer, DeletionVectors, WrittenDeletionVectors};
pub use record::BitmapKind;
pub use vector::DeletionVector;

#[cfg(test)]
mod tests;
