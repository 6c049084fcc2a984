//! The live files of a snapshot, by bucket.

use std::collections::HashSet;
use std::sync::Arc;

use paimon_format::row::BinaryRow;
use paimon_manifest::ManifestError;
use paimon_manifest::scan::{BucketFiles, FileStoreScan, ScanFilter, ScanKind};
use paimon_manifest::snapshot::Snapshot;

use crate::error::Result;
use crate::table::Table;

impl Table {
    /// The files of these partitions (several times the same is fine) in the latest snapshot.
    pub(crate) async fn latest_files(&self, partitions: &[&BinaryRow]) -> Result<Vec<BucketFiles>> {
        match self.snapshot_store().latest().await? {
            None => Ok(Vec::new()),
            Some(snapshot) => {
                let partitions = partitions.iter().map(|&partition| partition.clone());
                self.files(&snapshot, ScanFilter::all().with_partitions(partitions))
                    .await
            }
        }
    }

    /// The files that writers of these partitions build on: none for one that overwrites.
    pub(crate) async fn files_before(&self, overwrites: bool, partitions: &[&BinaryRow]) -> Result<Vec<BucketFiles>> {
        match overwrites {
            true => Ok(Vec::new()),
            false => self.latest_files(partitions).await,
        }
    }

    /// A scan of the table's manifests, as it sees them with its schema.
    ///
    /// Errors: those of [`FileStoreScan::new`].
    pub fn file_store_scan(&self) -> Result<FileStoreScan> {
        let env = self.context().env().clone();
        Ok(FileStoreScan::new(
            Arc::clone(self.storage()),
            env,
            Arc::clone(self.schema()),
        )?)
    }

    /// The live files of a snapshot by bucket, in the order of partition bytes and bucket.
    ///
    /// Errors: `NotFound` when the snapshot has expired; `Corrupt` when it names a file twice.
    pub(crate) async fn files(&self, snapshot: &Snapshot, filter: ScanFilter) -> Result<Vec<BucketFiles>> {
        let scan = self.file_store_scan()?;
        let mut buckets = scan.with_filter(filter).plan(snapshot, ScanKind::All).await?.buckets;
        buckets.sort_by(|a, b| (a.partition.as_bytes(), a.bucket).cmp(&(b.partition.as_bytes(), b.bucket)));
        for bucket in &buckets {
            let mut names = HashSet::new();
            if let Some(twice) = bucket.files.iter().find(|file| !names.insert(file.file_name.as_str())) {
                return Err(ManifestError::Corrupt {
                    path: snapshot.base_manifest_list.clone(),
                    message: format!("snapshot {} has the file {} twice", snapshot.id, twice.file_name),
                }
                .into());
            }
        }
        Ok(buckets)
    }
}
