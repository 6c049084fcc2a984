//! Merging files and moving them up.

pub mod pipeline;
