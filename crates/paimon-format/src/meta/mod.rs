//! Metadata of files, and what a writer hands to a committer.

mod commit_message;
mod data_file;
mod external;
mod hash_index;
mod increment;
mod interval;
mod made;
mod names;
mod paths;
mod records;
mod text;

pub use commit_message::COMMIT_MESSAGE_VERSION;
pub use data_file::{DataFileIdentity, DataFileMeta, FileSource, SimpleStats};
pub use external::ExternalRoots;
pub use hash_index::HashIndexFile;
pub use increment::{
    CommitIncrement, CommitMessage, CompactIncrement, DELETION_VECTORS_INDEX, DataIncrement, DeletionVectorRange,
    GlobalIndexMeta, HASH_INDEX, IndexFileMeta,
};
pub use interval::{SortedRunFiles, sections};
pub use made::MadeFiles;
pub use names::{DataFileNames, IndexFileNames, format_of_file};
pub use paths::{BucketPaths, FileLocation, POSTPONE_BUCKET, PathSettings, TablePaths};

#[cfg(test)]
pub(crate) mod tests;
