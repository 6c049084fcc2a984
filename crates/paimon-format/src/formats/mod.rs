//! Data files by format: bytes to rows and back.
//!
//! Everything here is about one file: [`crate::kv::TableKvFiles`] gives files their names, rolls them, and maps an older schema's
//! columns to those wanted.

#[cfg(any(feature = "parquet", feature = "avro", feature = "orc"))]
mod adapt;
#[cfg(any(feature = "avro", feature = "orc"))]
mod array_stats;
#[cfg(feature = "avro")]
pub mod avro;
#[cfg(any(feature = "parquet", feature = "orc"))]
mod caught;
mod encoder;
#[cfg(any(feature = "parquet", feature = "avro", feature = "orc"))]
mod fetch;
#[cfg(feature = "orc")]
pub mod orc;
#[cfg(feature = "parquet")]
pub mod parquet;
mod scan;
mod stats;

pub use encoder::{Encoded, FileEncoder};
pub(crate) use scan::scan_file;
pub use scan::{FileRows, FileScan, RowsStream};
pub use stats::{ColumnStats, StatsMode, simple_stats};
