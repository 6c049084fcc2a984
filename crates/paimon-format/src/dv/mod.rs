//! Deletion vectors: which rows of a data file no longer count.

mod as_text;
mod vector;

pub use vector::DeletionVector;
