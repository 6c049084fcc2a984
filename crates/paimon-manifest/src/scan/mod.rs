//! Scans: the files of a snapshot, pruned, bucket by bucket, and cut into splits.

mod entries;
mod filter;
mod plan;
mod splits;

pub use entries::live_entries;
pub use filter::{LevelRange, ScanFilter};
pub use plan::{BucketFiles, DeletionFile, FileStoreScan, ScanKind, ScanPlan};
pub use splits::{SplitFiles, SplitSettings, split_for_batch};
