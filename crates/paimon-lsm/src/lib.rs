//! The merge tree of one bucket.

mod error;
pub mod pick;

pub use error::LsmError;
