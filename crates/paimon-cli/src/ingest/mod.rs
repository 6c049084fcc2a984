//! A change stream from files or standard input: lines, how far they were taken in, and those that cannot be used.

mod bad_records;
mod inputs;
mod lines;
mod run;

pub(crate) use bad_records::BadRecords;
pub(crate) use inputs::Inputs;
pub(crate) use run::{CommitPolicy, run};
