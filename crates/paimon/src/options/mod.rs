//! A table's options as settings of the layers below, one file a concern.
//!
//! Paths, file formats and statistics take their settings from options by themselves (`from_options` of the lower crates); what is
//! here belongs to the facade or to crates that know no options.

mod buckets;
mod changelog;
mod deletion_vectors;
mod dynamic;
mod incremental;
mod numbers;
mod postpone;
mod streaming;
mod travel;
mod writing;

pub(crate) use buckets::MAX_DYNAMIC_BUCKETS;
pub use buckets::{BucketMode, DynamicBucketSettings};
pub(crate) use changelog::{check_changelog, check_same_lookup, full_compaction_delta_commits, lookup_options};
pub use deletion_vectors::DeletionVectorSettings;
pub use dynamic::table_options;
pub(crate) use dynamic::{check_change, with_dynamic_options};
pub(crate) use incremental::incremental_range;
pub(crate) use numbers::above_zero;
pub use postpone::PostponeSettings;
pub(crate) use streaming::{StreamSettings, stream_start};
pub(crate) use travel::time_travel;
pub use writing::RowSettings;
pub(crate) use writing::check_snapshot_ordering;
