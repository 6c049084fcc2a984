//! `bucket = -2`: rows wait in no bucket until a compaction gives them one.
//!
//! | Step | Module |
//! |---|---|
//! | a writer appends rows as they come, in files that say who wrote them | `writer` |
//! | a compaction takes them in their order and writes them into buckets, as many as the partition has or as its rows are worth | `distribute` |
//!
//! Files of one writer are taken in the order of their counters (`order`). Reads do not see the rows before that. Source: `org.apache.paimon.postpone`.

mod distribute;
mod order;
mod writer;

pub use distribute::DistributedPartition;
pub(crate) use distribute::distribute;
pub(crate) use writer::{PostponeBucketWriter, PostponedFiles};
