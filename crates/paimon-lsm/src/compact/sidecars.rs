//! Files and sidecars that nobody will ever name.

use std::sync::Arc;

use paimon_format::kv::KvFiles;
use paimon_format::meta::{DataFileMeta, MadeFiles};

/// Sidecars that a file got when its level changed. Its bytes stay whatever becomes of the compaction; these go if nothing does.
#[derive(Debug)]
pub(crate) struct NewSidecars {
    pub(crate) file: Arc<DataFileMeta>,
    pub(crate) names: Vec<String>,
}

impl NewSidecars {
    /// What a file has that it had not before; `None`: nothing.
    pub(crate) fn of(before: &Arc<DataFileMeta>, after: &DataFileMeta) -> Option<Self> {
        let names: Vec<String> = after.new_extra_files(before).cloned().collect();
        (!names.is_empty()).then(|| Self {
            file: Arc::clone(before),
            names,
        })
    }

    /// Deletes them.
    pub(crate) async fn delete_quietly(&self, files: &dyn KvFiles) {
        for name in &self.names {
            delete_extra_quietly(files, &self.file, name).await;
        }
    }
}

/// Deletes the files that compactions wrote, and the new sidecars of files that they only moved.
pub(crate) async fn discard(files: &dyn KvFiles, before: &[Arc<DataFileMeta>], after: &[Arc<DataFileMeta>]) {
    let made = MadeFiles::of(before, after);
    for (file, name) in made.sidecars {
        delete_extra_quietly(files, file, name).await;
    }
    for file in made.written {
        delete_quietly(files, file).await;
    }
}

/// Deletes a file with its sidecars. One that stays is an orphan, which is no reason to fail.
pub(crate) async fn delete_quietly(files: &dyn KvFiles, file: &DataFileMeta) {
    if let Err(error) = files.delete(file).await {
        tracing::warn!(file = file.file_name, %error, "an unused file could not be deleted");
    }
}

async fn delete_extra_quietly(files: &dyn KvFiles, file: &DataFileMeta, name: &str) {
    if let Err(error) = files.delete_extra(file, name).await {
        tracing::warn!(name, %error, "an unused sidecar could not be deleted");
    }
}
