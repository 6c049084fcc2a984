//! Key-value records by columns, and the files that hold them.

mod batch;
mod files;
mod keys;
mod schema;

pub use batch::{KvBatch, RowLevels};
pub use files::{BatchLimit, BatchSink, ExpiredBefore, FileFormat, KeyRange, KvFiles, KvStream, ReadSpec};
pub use keys::Keys;
pub use schema::{KvSchema, KvSchemaRef, SequenceOrder};
