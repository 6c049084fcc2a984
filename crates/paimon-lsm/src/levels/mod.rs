//! The sorted runs of a bucket, newest to oldest.
//!
//! [`Levels`] is owned by the bucket's writer and changes only there; a running task holds a [`LevelsView`].

mod key_order;
#[expect(clippy::module_inception, reason = "Java's name for the thing itself")]
mod levels;
mod print;
mod sorted_run;
#[cfg(test)]
mod tests;
mod view;

pub use key_order::{KeyOrder, Section};
pub use levels::Levels;
pub use sorted_run::{LevelSortedRun, SortedRun, file_bytes, total_bytes};
pub use view::LevelsView;
