//! What benchmarks share: rows that Java makes, too, one bucket of files, and measures of a thread.

pub mod bucket;
pub mod cost;
pub mod rows;
