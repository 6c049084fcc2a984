//! Parquet data files.
//!
//! Reading: [`scan`] fetches a file's footer once and its pages in windows, with the next window on its way while the current one is
//! decoded; no page is decoded twice and no row group is held whole. A file without an offset index has no page borders: its row
//! groups are fetched whole, one at a time, however large.
//!
//! Writing: [`ParquetEncoder`], with the schema, ids and physical types of `org.apache.paimon.format.parquet`.
//!
//! For benchmarks: a loop over [`decode`] (no storage, key encoding, schema evolution) and [`ParquetEncoder`] fed with the same
//! batches that a compaction writes are together the lower bound of that compaction.

mod bounds;
mod column_stats;
mod decode;
mod dictionary;
mod footer;
mod int96;
mod levels;
mod message;
mod pages;
mod prune;
mod read;
mod settings;
mod window;
mod write;

pub use decode::decode;
pub use read::scan;
pub use settings::{ParquetSettings, Switch};
pub use write::ParquetEncoder;
