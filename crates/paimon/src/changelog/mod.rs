//! Reading changes: a stream that follows the snapshots of a table, or what changed between two of its states.
//!
//! | File | What it holds |
//! |---|---|
//! | `builder` | what a reader of changes wants |
//! | `stream` | [`TableStream`]: follows the table, snapshot by snapshot |
//! | `follow` | what the stream does at a position: which snapshot, which error |
//! | `incremental` | changes between two states |
//! | `diff` | two states of a bucket, compared |
//! | `plan` | the files of a snapshot that tell what changed |
//! | `read` | those files as batches of rows with kinds |
//! | `batch` | [`ChangelogBatch`], and where to go on after it |
//! | `totals` | how much changelog a snapshot brought, bucket by bucket |
//!
//! What a table's changes are depends on its `changelog-producer`. Without one they are the rows of new files, as they were written:
//! the newest row of a key stands for it, and nothing says what was there before. `input` gives what was written, `lookup` and
//! `full-compaction` the complete history of each key: `+I` only where there was nothing, `-U` directly before its `+U`.

mod batch;
mod builder;
mod diff;
mod follow;
mod incremental;
mod plan;
mod read;
mod stream;
mod totals;

pub use batch::{ChangelogBatch, StreamPosition};
pub use builder::ChangelogBuilder;
pub use incremental::{Between, IncrementalMode};
pub use stream::{ChangelogStream, TableStream};
