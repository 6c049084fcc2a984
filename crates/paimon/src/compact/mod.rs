//! Dedicated compaction: the buckets of a table, or of many tables, whatever `write-only` says.
//!
//! | Step | Module |
//! |---|---|
//! | look at the buckets of a table, and pick | `look.rs` |
//! | run the picked compaction of a bucket | `job.rs` |
//! | once: one commit for all buckets | `builder.rs`: [`CompactBuilder`] |
//! | in other processes, committed by a third: tasks as data | `task.rs`: [`CompactionTask`] |
//! | for good: most debt first, over many tables, back-off on conflict | `service`: [`CompactService`] |
//! | say what was done | `report.rs` |

mod builder;
mod job;
mod look;
mod report;
mod service;
mod task;

pub use builder::CompactBuilder;
pub(crate) use look::Scope;
pub use report::{BucketReport, CompactReport, FileTotals};
pub use service::{
    BucketFailure, CompactService, RoundBucket, RoundReport, ServiceSettings, TablePattern, TableSource,
};
pub use task::{CompactionId, CompactionResult, CompactionTask};
