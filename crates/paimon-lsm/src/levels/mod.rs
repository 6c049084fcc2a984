//! The sorted runs of a bucket, newest to oldest.

mod sorted_run;

pub use sorted_run::{LevelSortedRun, SortedRun};
