//! Behaviour tests of the crate, one binary.

mod bucket;
mod pick_tables;
mod writer;
