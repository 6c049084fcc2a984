//! Snapshots, their hint files, tags, long-lived changelogs, consumers, and the choice of one snapshot.

mod changelog;
mod consumer;
mod hint;
mod model;
mod store;
mod tag;
mod time_travel;

pub use changelog::outlives_snapshots;
pub use consumer::{Consumer, ConsumerStore};
pub use model::{CommitKind, MAX_SEQUENCE_NUMBER, Snapshot};
pub use store::SnapshotStore;
pub use tag::Tag;
pub use time_travel::TimeTravel;
