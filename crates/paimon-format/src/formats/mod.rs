//! Data files by format: bytes to rows and back.
//!
//! Everything here is about one file: [`crate::kv::TableKvFiles`] gives files their names, rolls them, and maps an older schema's
//! columns to those wanted.

#[cfg(any(feature = "parquet", feature = "orc"))]
mod adapt;
mod encoder;
#[cfg(feature = "parquet")]
pub mod parquet;
mod scan;
mod stats;

pub use encoder::{Encoded, FileEncoder};
pub(crate) use scan::scan_file;
pub use scan::{FileRows, FileScan, KeyBounds, RowsStream};
pub use stats::{ColumnStats, StatsMode, simple_stats};
