//! Sidecars of files that only change their level.

use std::sync::Arc;

use paimon_format::kv::KvFiles;
use paimon_format::meta::DataFileMeta;

/// Sidecars that a file got when its level changed. Its bytes stay whatever becomes of the compaction; these go if nothing does.
#[derive(Debug)]
pub(crate) struct NewSidecars {
    file: Arc<DataFileMeta>,
    names: Vec<String>,
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

    /// Deletes them. One that stays is an orphan, which is no reason to fail.
    pub(crate) async fn delete_quietly(&self, files: &dyn KvFiles) {
        for name in &self.names {
            if let Err(error) = files.delete_extra(&self.file, name).await {
                tracing::warn!(name, %error, "an unused sidecar could not be deleted");
            }
        }
    }
}
