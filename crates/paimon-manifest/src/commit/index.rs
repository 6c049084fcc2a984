//! The index manifest of a snapshot.

use super::committable::ChangeSet;
use super::file_store_commit::FileStoreCommit;
use crate::error::Result;
use crate::manifest::{CreatedFiles, IndexManifestEntry, combine_index_entries};
use crate::snapshot::Snapshot;

impl FileStoreCommit {
    /// The index files that live at a snapshot.
    pub(super) async fn index_of(&self, latest: Option<&Snapshot>) -> Result<Vec<IndexManifestEntry>> {
        match latest.and_then(|latest| latest.index_manifest.as_deref()) {
            Some(name) => self.manifests.read_index(name).await,
            None => Ok(Vec::new()),
        }
    }

    /// The index manifest after the changes: the one before when there are none. `there`: the index files that live at `latest`.
    pub(super) async fn write_index(
        &self,
        latest: Option<&Snapshot>,
        there: Vec<IndexManifestEntry>,
        changes: &ChangeSet,
        created: &mut CreatedFiles,
    ) -> Result<Option<String>> {
        if changes.index.is_empty() {
            return Ok(latest.and_then(|latest| latest.index_manifest.clone()));
        }
        let entries = combine_index_entries(there, &changes.index);
        Ok(Some(self.manifests.write_index(&entries, created).await?))
    }
}
