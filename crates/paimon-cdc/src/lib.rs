#![doc = include_str!("../README.md")]

mod error;
mod evolve;
pub mod format;
mod ingest;
pub mod json;
mod position;
mod rows;
pub mod value;

pub use error::RecordError;
pub use evolve::Evolution;
pub use format::ChangeFormat;
pub use ingest::{Counts, Ingest, IngestSettings, Outcome};
pub use position::Position;
