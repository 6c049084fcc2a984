//! Merging files and moving them up.
//!
//! A pick becomes a [`CompactTask`], plain data that may run anywhere; its [`CompactStep`]s are known before any byte is read. The
//! [`MergeTreeCompactManager`] runs one task of a bucket at a time and applies its [`CompactResult`] to the levels.

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
mod task;
mod upgrade;

pub use changelog::ChangelogProducer;
pub use drop_delete::drop_delete;
pub use expire_rows::RecordLevelExpire;
pub use manager::MergeTreeCompactManager;
pub use result::CompactResult;
pub use rewriter::MergeTreeCompactRewriter;
pub(crate) use rewriter::delete_quietly;
pub use running::RunningCompaction;
pub use settings::CompactSettings;
pub(crate) use sidecars::NewSidecars;
pub use task::CompactTask;
pub use upgrade::CompactStep;
