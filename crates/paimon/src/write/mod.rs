//! Writing: rows into buckets, buckets into commit messages, commit messages into snapshots.

mod builder;
mod bucket;
mod commit;
mod route;
mod rows;
mod table_write;

pub use builder::WriteBuilder;
pub(crate) use bucket::{BucketWriters, bucket_writer};
pub use commit::TableCommit;
pub use rows::VALUE_KIND_COLUMN;
pub use table_write::TableWrite;
