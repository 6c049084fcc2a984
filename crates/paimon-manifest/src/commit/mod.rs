//! Commits: from the files that writers made to snapshots that everybody sees.
//!
//! A commit writes its manifests and then publishes one small file, `snapshot/snapshot-<n>`, which is the only commit point. An
//! unclear answer to that is looked up, not guessed; and nothing is deleted after it.

mod attempt;
mod backend;
mod committable;
mod conflict;
mod description;
mod file_store_commit;
mod index;
mod metrics;
mod overwrite;
mod recovery;
mod rescaled;
mod retry;
mod settings;

pub use backend::{CommitBackend, Published, PutIfAbsentCommit};
pub use committable::{ChangeSet, CommitChanges, ManifestCommittable};
pub use conflict::check_conflicts;
pub use file_store_commit::{AppendCheck, FileStoreCommit};
pub use overwrite::Overwrite;
pub use settings::CommitSettings;
