//! Key-value records by columns, and the files that hold them.

mod batch;
mod files;
mod keys;
mod schema;

pub use batch::{KvBatch, RowLevels};
pub use files::{BatchLimit, BatchSink, ExpiredBefore, FileFormat, KeyRange, KvFiles, KvStream, ReadSpec};
pub use keys::{KeyCodec, Keys};
pub use schema::{
    KEY_ID_START, KEY_PREFIX, KvSchema, KvSchemaRef, SEQUENCE_NUMBER, SEQUENCE_NUMBER_ID, SequenceOrder, VALUE_KIND,
    VALUE_KIND_ID, VALUE_OFFSET,
};
