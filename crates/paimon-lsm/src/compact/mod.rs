//! Merging files and moving them up.
//!
//! A pick becomes a [`CompactTask`], plain data that may run anywhere; its [`CompactStep`]s are known before any byte is read; a large one
//! can be cut into parts by [`MergeTreeCompactRewriter::split`], whose results [`CompactResult::join`] puts together. The
//! [`MergeTreeCompactManager`] runs one task of a bucket at a time and applies its [`CompactResult`] to the levels.

mod bounds;
mod changelog;
mod drop_delete;
mod expire_rows;
mod manager;
pub mod pipeline;
mod result;
mod rewriter;
mod running;
mod settings;
mod sidecars;
mod split;
mod task;
mod upgrade;

pub use bounds::KeyBounds;
pub(crate) use bounds::KeyCut;
pub use changelog::ChangelogProducer;
pub use drop_delete::drop_delete;
pub use expire_rows::RecordLevelExpire;
pub use manager::MergeTreeCompactManager;
pub use result::CompactResult;
pub use rewriter::MergeTreeCompactRewriter;
pub use running::RunningCompaction;
pub use settings::CompactSettings;
pub(crate) use sidecars::{NewSidecars, delete_quietly, discard};
pub use task::CompactTask;
pub use upgrade::CompactStep;
