//! Rows of writers that do not know yet that the table has another number of buckets.

use std::collections::HashMap;

use paimon_format::row::BinaryRow;

use super::file_store_commit::{FileStoreCommit, SnapshotRequest};
use crate::error::{ManifestError, Result};
use crate::manifest::{FileKind, ManifestFileMeta};
use crate::scan::{ScanFilter, live_entries};
use crate::snapshot::{CommitKind, Snapshot};

impl FileStoreCommit {
    /// Checks that the rows of `next`, which builds on `latest` and has these manifests below it, were written for the number of buckets that their
    /// partitions have: that of the live files; that of the table where there are none, or none will be left.
    ///
    /// Cost: nothing while the writer's schema is the table's, as another number of buckets comes with a new schema; else it reads the manifests of
    /// the partitions. Errors: `Conflict`, naming the partition.
    pub(super) async fn check_rescaled(
        &self,
        latest: Option<&Snapshot>,
        next: &Snapshot,
        manifests: &[ManifestFileMeta],
        request: &SnapshotRequest<'_>,
    ) -> Result<()> {
        // The snapshot before may be of a writer that did not know the writer's schema yet.
        let mut known = [Some(next), latest].into_iter().flatten();
        let same_schema = known.all(|snapshot| snapshot.schema_id == self.schema_id);
        // What a compaction takes away must be there, so it is of the same buckets.
        if same_schema || self.settings.buckets < 1 || request.kind == CommitKind::Compact {
            return Ok(());
        }
        let files = request.changes.table.iter();
        let added: Vec<_> = files.filter(|entry| entry.kind == FileKind::Add).collect();
        let partitions = added.iter().map(|entry| entry.partition.clone());
        let live = match request.replaces {
            Some(_) => Vec::new(),
            None => {
                let filter = ScanFilter::all().with_partitions(partitions);
                live_entries(&self.manifests, manifests, &filter).await?
            }
        };
        let live = live.iter().filter(|entry| entry.total_buckets > 0);
        let counts: HashMap<&BinaryRow, i32> = live.map(|entry| (&entry.partition, entry.total_buckets)).collect();
        let of_table = self.schemas.get(next.schema_id).await?.options.int("bucket")?;
        for entry in added {
            let count = counts.get(&entry.partition).copied().or(of_table);
            if let Some(count) = count.filter(|count| *count != entry.total_buckets) {
                let path = self.paths.partition(&entry.partition)?;
                let place = match path.as_str() {
                    "" => "the table".to_owned(),
                    path => format!("partition {path}"),
                };
                return Err(ManifestError::Conflict(format!(
                    "{place}: by now it is to have {count} buckets, but its rows were written for {}: open the table again and write them anew",
                    entry.total_buckets
                )));
            }
        }
        Ok(())
    }
}
