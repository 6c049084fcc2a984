//! Behaviour of tables, through the public API.

mod bad_input;
mod commits;
mod compaction;
mod concurrency;
mod faults;
mod java_tables;
mod partitions;
mod reading;
mod support;
mod time_travel;
mod writing;
