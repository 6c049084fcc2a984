//! Behaviour tests of the crate, one binary.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at the first surprise")]

mod bucket;
mod changelog;
mod faults;
mod model;
mod pick_tables;
mod tables;
mod writer;
