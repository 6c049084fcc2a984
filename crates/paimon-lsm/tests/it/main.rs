//! Behaviour tests of the crate, one binary.

mod bucket;
mod faults;
mod model;
mod pick_tables;
mod tables;
mod writer;
