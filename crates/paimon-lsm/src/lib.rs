//! The merge tree of one bucket: what is written becomes sorted runs, runs become fewer and larger, readers see one row a key.
//!
//! In the order in which a record meets them:
//!
//! | Module | What it does |
//! |---|---|
//! | [`mod@write`] | numbers and buffers records, flushes them to level 0, hands increments to a committer: [`write::MergeTreeWriter`] |
//! | [`levels`] | knows the runs, newest to oldest: [`levels::Levels`] |
//! | [`pick`] | decides which runs to compact onto which level: [`pick::UniversalCompaction`] |
//! | [`compact`] | plans the steps of a compaction, merges, upgrades: [`compact::MergeTreeCompactManager`] |
//! | [`read`] | merges runs for readers |
//!
//! A writer is owned by one task and has `&mut self` methods; no lock guards the tree. A compaction runs in the background on a copy
//! of its file list, and its result changes the tree only when the writer fetches it.
//!
//! The crate knows neither snapshots nor manifests: files come in as metadata, [`CommitIncrement`]s go out, and both may be stored in
//! any way. `examples/own_storage.rs` does so with a map and a line of JSON.
//!
//! [`CommitIncrement`]: paimon_format::meta::CommitIncrement

pub mod compact;
mod error;
pub mod levels;
pub mod lookup;
pub mod metrics;
pub mod pick;
pub mod read;
mod settings;
mod spill;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
pub mod write;

pub use error::LsmError;
