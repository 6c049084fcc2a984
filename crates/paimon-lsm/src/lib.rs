//! The merge tree of one bucket.

pub mod compact;
mod error;
pub mod levels;
pub mod pick;
pub mod read;
mod settings;
mod spill;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
pub mod write;

pub use error::LsmError;
