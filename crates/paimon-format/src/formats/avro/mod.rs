//! Avro data files.
//!
//! Read block by block ([`scan`]), written by [`AvroEncoder`], with the schema and the physical forms of
//! `org.apache.paimon.format.avro`: columns are found by name, timestamps have at most microseconds, times at most milliseconds.

mod column;
mod container;
mod cursor;
mod decode;
mod encode;
mod read;
mod schema;
mod write;

pub use read::scan;
pub use write::{AvroEncoder, AvroSettings};
