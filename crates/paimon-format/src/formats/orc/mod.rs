//! ORC data files: all types are read; flat types without DECIMAL are written.
//!
//! Stripes are read one at a time, whole: ORC's pages have no places of their own. TIME is an int, as in
//! `org.apache.paimon.format.orc`; TIMESTAMP WITH LOCAL TIME ZONE is an instant.

mod read;
mod write;

pub use read::scan;
pub use write::{OrcEncoder, OrcSettings};
