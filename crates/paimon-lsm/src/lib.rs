//! The merge tree of one bucket.

mod error;
pub mod levels;
pub mod pick;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;

pub use error::LsmError;
