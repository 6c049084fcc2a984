//! Snapshots, their hint files, tags, and the choice of one of them.

mod hint;
mod model;
mod store;
mod tag;
mod time_travel;

pub use model::{CommitKind, Snapshot};
pub use store::SnapshotStore;
pub use tag::Tag;
pub use time_travel::TimeTravel;
