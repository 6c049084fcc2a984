//! Deletion vectors: which rows of a data file no longer count.

mod vector;

pub use vector::DeletionVector;
