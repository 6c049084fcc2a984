//! Metadata of files, and what a writer hands to a committer.

mod data_file;
mod increment;
mod interval;

pub use data_file::{DataFileMeta, FileSource, SimpleStats};
pub use increment::{
    CommitIncrement, CommitMessage, CompactIncrement, DataIncrement, DeletionVectorRange, GlobalIndexMeta,
    IndexFileMeta,
};
pub use interval::{SortedRunFiles, sections};
