//! Many versions of a key become one.
//!
//! | Module | What it holds |
//! |---|---|
//! | [`plan`] | which versions of which keys meet: a loser tree over sorted runs gives blocks of spans |
//! | [`kernel`] | what a block of versions becomes: [`kernel::MergeKernel`], and the assembly of output batches |
//! | [`aggregate`] | what the values of one column become: aggregate functions by name |
//! | [`engine`] | merge engines by name: [`engine::MergeEngineFactory`], [`engine::MergeEngine`], the registry |
//! | [`changelog`] | merging that also says what changed: [`changelog::MergeStage`] |
//!
//! # The contract of a merge engine
//!
//! Versions of a key come oldest first: by the user-defined sequence (nulls lowest), then by sequence number. Merging must be
//! *associative over adjacent runs of versions*, because compaction merges the newest runs first and what it writes is merged
//! again later: `merge(merge(a, b), c) == merge(a, merge(b, c)) == merge(a, b, c)`.

pub mod aggregate;
pub mod changelog;
pub mod engine;
mod error;
pub mod kernel;
pub mod plan;
#[cfg(feature = "test-util")]
pub mod testing;

pub use error::MergeError;
