//! Key-value records by columns, and the files that hold them.

mod batch;
mod evolve;
mod file_settings;
mod files;
mod keys;
mod page_cache;
mod reading;
mod rolling;
mod schema;
mod table_files;

pub use batch::{KvBatch, RowLevels};
pub use evolve::{PartitionValue, SchemaSource};
pub use file_settings::{ChangelogSettings, KvFileSettings, StatsSettings};
pub use files::{BatchLimit, BatchSink, ExpiredBefore, FileFormat, KeyRange, KvFiles, KvStream, ReadSpec};
pub use keys::{KeyCodec, Keys};
pub use page_cache::PageCache;
pub use rolling::physical_fields;
pub use schema::{
    KEY_ID_START, KEY_PREFIX, KvSchema, KvSchemaRef, SEQUENCE_NUMBER, SEQUENCE_NUMBER_ID, SequenceOrder, VALUE_KIND,
    VALUE_KIND_ID, VALUE_OFFSET,
};
pub use table_files::{TableKvFiles, TableKvFilesBuilder};
