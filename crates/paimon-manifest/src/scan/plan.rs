//! The files of a snapshot, bucket by bucket.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use paimon_format::env::Env;
use paimon_format::meta::{DataFileMeta, DeletionVectorRange, IndexFileMeta};
use paimon_format::row::BinaryRow;
use paimon_format::storage::Storage;

use super::entries::live_entries;
use super::filter::ScanFilter;
use crate::error::Result;
use crate::manifest::{
    DELETION_VECTORS_INDEX, HASH_INDEX, IndexManifestEntry, ManifestEntry, ManifestFiles, ManifestSettings,
};
use crate::schema::TableSchema;
use crate::snapshot::Snapshot;

/// Which of a snapshot's lists a scan reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScanKind {
    /// Base and delta: all files that live at the snapshot.
    #[default]
    All,
    /// Delta: the files that the snapshot added.
    Delta,
    /// The snapshot's changelog files.
    Changelog,
}

/// Where the deletion vector of a data file lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletionFile {
    /// The index file that holds it.
    pub index_file: Arc<IndexFileMeta>,
    /// Its place in the index file.
    pub range: DeletionVectorRange,
}

/// What lives in one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketFiles {
    /// The partition's values.
    pub partition: BinaryRow,
    /// The bucket; -2 for postponed rows.
    pub bucket: i32,
    /// The bucket count of the partition, as its newest file has it.
    pub total_buckets: i32,
    /// Data files (or changelog files), in the order of the manifests.
    pub files: Vec<Arc<DataFileMeta>>,
    /// Deletion vectors by data file name; of [`ScanKind::All`] only.
    pub deletion_files: BTreeMap<String, DeletionFile>,
    /// The key hashes of a dynamic bucket; of [`ScanKind::All`] only.
    pub hash_index: Option<Arc<IndexFileMeta>>,
}

/// The files of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    /// The snapshot.
    pub snapshot_id: i64,
    /// Its buckets, in the order in which the manifests first name them; none without a file.
    pub buckets: Vec<BucketFiles>,
}

/// Plans reads and compactions of one table.
///
/// Source: `org.apache.paimon.operation.{FileStoreScan, KeyValueFileStoreScan}`, `org.apache.paimon.table.source.snapshot.SnapshotReaderImpl`.
#[derive(Clone, Debug)]
pub struct FileStoreScan {
    manifests: ManifestFiles,
    filter: ScanFilter,
}

impl FileStoreScan {
    /// Scans the table at this root, all of it.
    ///
    /// Errors: `Invalid`, `Unsupported` for options of manifests.
    pub fn new(storage: Arc<dyn Storage>, env: Env, schema: &TableSchema) -> Result<Self> {
        let settings = ManifestSettings::from_options(&schema.options)?;
        Ok(Self {
            manifests: ManifestFiles::new(storage, env, schema.partition_types(), settings),
            filter: ScanFilter::all(),
        })
    }

    /// Only what the filter wants.
    #[must_use]
    pub fn with_filter(mut self, filter: ScanFilter) -> Self {
        self.filter = filter;
        self
    }

    /// The table's manifests.
    pub fn manifests(&self) -> &ManifestFiles {
        &self.manifests
    }

    /// The files of a snapshot.
    ///
    /// Errors: `NotFound` when the snapshot has expired meanwhile, `Corrupt`; both name the file.
    pub async fn plan(&self, snapshot: &Snapshot, kind: ScanKind) -> Result<ScanPlan> {
        let entries = self.entries(snapshot, kind).await?;
        let mut buckets = group(entries);
        if kind == ScanKind::All
            && let Some(name) = &snapshot.index_manifest
        {
            attach_indexes(&mut buckets, self.manifests.read_index(name).await?);
        }
        Ok(ScanPlan {
            snapshot_id: snapshot.id,
            buckets,
        })
    }

    /// The entries behind [`plan`](Self::plan).
    pub async fn entries(&self, snapshot: &Snapshot, kind: ScanKind) -> Result<Vec<ManifestEntry>> {
        let base = (&snapshot.base_manifest_list, snapshot.base_manifest_list_size);
        let delta = (&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size);
        let changelog = snapshot
            .changelog_manifest_list
            .as_ref()
            .map(|name| (name, snapshot.changelog_manifest_list_size));
        let lists = match kind {
            ScanKind::All => vec![base, delta],
            ScanKind::Delta => vec![delta],
            ScanKind::Changelog => changelog.into_iter().collect(),
        };
        let lists = lists
            .into_iter()
            .map(|(name, size)| self.manifests.read_list(name, size));
        let manifests = futures::future::try_join_all(lists).await?.concat();
        live_entries(&self.manifests, &manifests, &self.filter).await
    }
}

fn group(entries: Vec<ManifestEntry>) -> Vec<BucketFiles> {
    let mut buckets: Vec<BucketFiles> = Vec::new();
    let mut places: HashMap<(BinaryRow, i32), usize> = HashMap::new();
    for entry in entries {
        let place = *places.entry((entry.partition.clone(), entry.bucket)).or_insert_with(|| {
            buckets.push(BucketFiles {
                partition: entry.partition.clone(),
                bucket: entry.bucket,
                total_buckets: entry.total_buckets,
                files: Vec::new(),
                deletion_files: BTreeMap::new(),
                hash_index: None,
            });
            buckets.len() - 1
        });
        if let Some(bucket) = buckets.get_mut(place) {
            bucket.total_buckets = entry.total_buckets;
            bucket.files.push(entry.file);
        }
    }
    buckets
}

fn attach_indexes(buckets: &mut [BucketFiles], indexes: Vec<IndexManifestEntry>) {
    let mut of_bucket: HashMap<(BinaryRow, i32), Vec<Arc<IndexFileMeta>>> = HashMap::new();
    for index in indexes {
        of_bucket
            .entry((index.partition, index.bucket))
            .or_default()
            .push(Arc::new(index.file));
    }
    for bucket in buckets {
        for file in of_bucket
            .remove(&(bucket.partition.clone(), bucket.bucket))
            .unwrap_or_default()
        {
            match file.index_type.as_str() {
                HASH_INDEX => bucket.hash_index = Some(file),
                DELETION_VECTORS_INDEX => {
                    let ranges = file.dv_ranges.iter().flatten();
                    bucket.deletion_files.extend(ranges.map(|range| {
                        let deletion = DeletionFile {
                            index_file: Arc::clone(&file),
                            range: range.clone(),
                        };
                        (range.data_file_name.clone(), deletion)
                    }));
                }
                _ => {}
            }
        }
    }
}
