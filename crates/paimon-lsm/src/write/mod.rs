//! Writing to one bucket: buffer, flush, compaction, and what a commit gets of it.

mod buffer;
mod builder;
mod flush;
mod local_merge;
mod pending;
mod records;
mod removals;
mod runs;
mod settings;
mod sort;
mod state;
mod watch;
mod writer;

pub use builder::{MergeTreeWriterBuilder, last_full_ms};
pub use local_merge::LocalMerger;
pub use records::{RecordBuffer, Records};
pub use settings::WriteSettings;
pub use state::WriterState;
pub use watch::{BucketWriteState, WriteWatch};
pub use writer::{MergeTreeWriter, WaitCompaction};
