//! Writing: rows into buckets, buckets into commit messages, commit messages into snapshots.

mod builder;
mod commit;
mod local;
mod metrics;
mod record_writer;
mod route;
mod rows;
mod table_write;
mod watch;

pub use builder::WriteBuilder;
pub use commit::{BATCH_IDENTIFIER, CommittedPart, TableCommit};
pub(crate) use route::Partitioned;
pub use rows::VALUE_KIND_COLUMN;
pub(crate) use rows::{Prepared, row_kinds};
pub use table_write::TableWrite;
pub use watch::{TableWriteState, TableWriteWatch};
