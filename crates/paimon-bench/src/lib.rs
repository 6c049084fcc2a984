//! What benchmarks share: rows and tables that Java makes, too, one bucket of files, and measures of a thread.

pub mod bucket;
pub mod cost;
pub mod flags;
pub mod oracle;
pub mod rows;
pub mod worker;

/// A benchmark ends at the first error.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
