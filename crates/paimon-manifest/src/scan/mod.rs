//! Scans: the files of a snapshot, pruned, bucket by bucket, and cut into splits; where and how streaming readers go on.

mod bucket_entry;
mod data_split;
mod entries;
mod filter;
mod follow_up;
mod metrics;
mod plan;
mod splits;
mod starting;
mod statistics;

pub use bucket_entry::BucketEntry;
pub use data_split::{DataSplit, limit_splits};
pub(crate) use entries::all_entries;
pub use entries::live_entries;
pub use filter::{LevelRange, ScanFilter};
pub use follow_up::FollowUp;
pub use plan::{BucketFiles, DeletionFile, FileStoreScan, ScanKind, ScanPlan, ValueFiltering};
pub use splits::{SplitFiles, SplitSettings, split_for_batch};
pub use starting::{Starting, StreamStart};
