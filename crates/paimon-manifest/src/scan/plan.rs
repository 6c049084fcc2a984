//! The files of a snapshot, bucket by bucket.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use paimon_format::env::{Clock, Env};
use paimon_format::meta::{DELETION_VECTORS_INDEX, DataFileMeta, DeletionVectorRange, HASH_INDEX, IndexFileMeta};
use paimon_format::predicate::Predicate;
use paimon_format::row::BinaryRow;
use paimon_format::storage::Storage;

use super::entries::{all_entries, live_entries};
use super::filter::ScanFilter;
use super::splits::on_one_level;
use super::statistics::{key_may_match, value_may_match};
use crate::error::Result;
use crate::manifest::{IndexManifestEntry, ManifestEntry, ManifestFiles, ManifestSettings};
use crate::schema::{SchemaStore, TableSchema};
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
    /// Deletion vectors of these files, by data file name; of [`ScanKind::All`] only.
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

/// What a filter on values may decide about files that have not been merged: a row that does not pass may hide one that would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValueFiltering {
    /// Nothing: merging makes new values (partial-update, aggregation), or the plan is of changes.
    #[default]
    Never,
    /// A whole bucket goes when no file of it has a row that passes; single files only where no two of them can share a key.
    WholeBucket,
    /// Single files go: every visible row of the plan is visible whatever the other files hold.
    EachFile,
}

/// Plans reads and compactions of one table.
///
/// Source: `org.apache.paimon.operation.{FileStoreScan, KeyValueFileStoreScan}`, `org.apache.paimon.table.source.snapshot.SnapshotReaderImpl`.
#[derive(Clone, Debug)]
pub struct FileStoreScan {
    manifests: ManifestFiles,
    schemas: SchemaStore,
    schema: Arc<TableSchema>,
    filter: ScanFilter,
    keys: Option<Predicate>,
    values: Option<Predicate>,
    value_filtering: ValueFiltering,
    clock: Arc<dyn Clock>,
    /// The table's name in metrics.
    table: Arc<str>,
}

impl FileStoreScan {
    /// Scans the table at this root, all of it. `schema`: the one that filters speak of.
    ///
    /// Errors: `Invalid`, `Unsupported` for options of manifests.
    pub fn new(storage: Arc<dyn Storage>, env: Env, schema: Arc<TableSchema>) -> Result<Self> {
        let settings = ManifestSettings::from_options(&schema.options)?;
        let schemas = SchemaStore::new(Arc::clone(&storage));
        Ok(Self {
            clock: Arc::clone(&env.clock),
            table: "".into(),
            manifests: ManifestFiles::new(storage, env, schema.partition_fields(), settings),
            schemas,
            schema,
            filter: ScanFilter::all(),
            keys: None,
            values: None,
            value_filtering: ValueFiltering::Never,
        })
    }

    /// Tells its metrics under this name of the table.
    #[must_use]
    pub fn with_table_name(mut self, name: &str) -> Self {
        self.table = name.into();
        self
    }

    /// Only what the filter wants.
    #[must_use]
    pub fn with_filter(mut self, filter: ScanFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Leaves out files that cannot have a row that passes. Rows that do not pass may still come: who reads must filter again.
    ///
    /// What it demands of partitions and of keys is used in any case; the rest as far as `values` allows.
    ///
    /// Errors: `Invalid`, naming the column, when the predicate does not fit the schema.
    pub fn with_predicate(mut self, predicate: &Predicate, values: ValueFiltering) -> Result<Self> {
        predicate.check(&self.schema.fields)?;
        let partition_keys = &self.schema.partition_keys;
        let trimmed = self.schema.fields_at(&self.schema.trimmed_primary_key()?);
        let on_partition = predicate.project(&|name| partition_keys.iter().any(|key| key == name));
        if let Some(on_partition) = on_partition {
            self.filter = self.filter.with_partition_predicate(on_partition);
        }
        self.keys = predicate.project(&|name| trimmed.iter().any(|field| field.name == name));
        self.values = Some(predicate.clone());
        self.value_filtering = values;
        Ok(self)
    }

    /// The table's manifests.
    pub fn manifests(&self) -> &ManifestFiles {
        &self.manifests
    }

    /// The files of a snapshot.
    ///
    /// Cost: reads the manifests that partition, bucket and level do not rule out. Errors: `NotFound` when the snapshot has expired
    /// meanwhile, `Corrupt`; both name the file.
    pub async fn plan(&self, snapshot: &Snapshot, kind: ScanKind) -> Result<ScanPlan> {
        let begin_ms = self.clock.now_ms();
        let mut entries = self.entries(snapshot, kind).await?;
        let found = entries.len();
        if let Some(keys) = &self.keys {
            let fields = self.schema.fields_at(&self.schema.trimmed_primary_key()?);
            retain(&mut entries, |entry| key_may_match(&entry.file, keys, &fields))?;
        }
        let mut buckets = group(entries);
        self.filter_values(&mut buckets).await?;
        if kind == ScanKind::All
            && let Some(name) = &snapshot.index_manifest
        {
            attach_indexes(&mut buckets, self.manifests.read_index(name).await?);
        }
        let resulted = buckets.iter().map(|bucket| bucket.files.len()).sum();
        let duration_ms = self.clock.now_ms().saturating_sub(begin_ms);
        super::metrics::scanned(&self.table, snapshot.id, duration_ms, found, resulted);
        Ok(ScanPlan {
            snapshot_id: snapshot.id,
            buckets,
        })
    }

    /// The entries behind [`plan`](Self::plan), pruned by partition, bucket and level.
    pub async fn entries(&self, snapshot: &Snapshot, kind: ScanKind) -> Result<Vec<ManifestEntry>> {
        let files = &self.manifests;
        let delta = files.read_list(&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size);
        let manifests = match (kind, &snapshot.changelog_manifest_list) {
            (ScanKind::All, _) => {
                let base = files.read_list(&snapshot.base_manifest_list, snapshot.base_manifest_list_size);
                let (base, delta) = futures::future::try_join(base, delta).await?;
                [base, delta].concat()
            }
            (ScanKind::Delta, _) => delta.await?,
            (ScanKind::Changelog, Some(list)) => files.read_list(list, snapshot.changelog_manifest_list_size).await?,
            (ScanKind::Changelog, None) => Vec::new(),
        };
        live_entries(&self.manifests, &manifests, &self.filter).await
    }

    /// What a snapshot did to files, those that it removed included, pruned by partition, bucket and level.
    pub async fn delta_entries(&self, snapshot: &Snapshot) -> Result<Vec<ManifestEntry>> {
        let (list, size) = (&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size);
        let manifests = self.manifests.read_list(list, size).await?;
        all_entries(&self.manifests, &manifests, &self.filter).await
    }

    async fn filter_values(&self, buckets: &mut Vec<BucketFiles>) -> Result<()> {
        let Some(predicate) = self
            .values
            .as_ref()
            .filter(|_| self.value_filtering != ValueFiltering::Never)
        else {
            return Ok(());
        };
        let mut kept = Vec::with_capacity(buckets.len());
        for mut bucket in buckets.drain(..) {
            let mut matches = Vec::with_capacity(bucket.files.len());
            for file in &bucket.files {
                let written = match file.schema_id == self.schema.id {
                    true => Arc::clone(&self.schema),
                    false => self.schemas.get(file.schema_id).await?,
                };
                matches.push(value_may_match(file, predicate, &written, &self.schema)?);
            }
            if matches.iter().all(|matches| !matches) {
                continue;
            }
            if self.value_filtering == ValueFiltering::EachFile || bucket.files_are_disjoint() {
                let mut matches = matches.into_iter();
                bucket.files.retain(|_| matches.next().unwrap_or(true));
            }
            kept.push(bucket);
        }
        *buckets = kept;
        Ok(())
    }
}

impl BucketFiles {
    /// Whether no two files can share a key: at most one file, or all on one level above 0.
    fn files_are_disjoint(&self) -> bool {
        self.files.len() <= 1 || (on_one_level(&self.files) && self.files.iter().all(|file| file.level > 0))
    }

    /// Vectors of data files that are not there are passed over: the scan left them out, or they have left the bucket.
    fn attach_deletion_files(&mut self, index_file: &Arc<IndexFileMeta>) {
        let names: HashSet<&str> = self.files.iter().map(|file| file.file_name.as_str()).collect();
        let ranges = index_file.dv_ranges.iter().flatten();
        let ranges = ranges.filter(|range| names.contains(range.data_file_name.as_str()));
        self.deletion_files.extend(ranges.map(|range| {
            let deletion = DeletionFile {
                index_file: Arc::clone(index_file),
                range: range.clone(),
            };
            (range.data_file_name.clone(), deletion)
        }));
    }

    /// The index files that hold its deletion vectors.
    pub fn deletion_index_files(&self) -> Vec<Arc<IndexFileMeta>> {
        index_files(self.deletion_files.values())
    }
}

/// The index files that hold these vectors, each once.
pub(super) fn index_files<'a>(deletions: impl IntoIterator<Item = &'a DeletionFile>) -> Vec<Arc<IndexFileMeta>> {
    let mut files: Vec<Arc<IndexFileMeta>> = Vec::new();
    for deletion in deletions {
        if files.iter().all(|file| file.file_name != deletion.index_file.file_name) {
            files.push(Arc::clone(&deletion.index_file));
        }
    }
    files
}

/// Keeps the entries that pass.
fn retain(entries: &mut Vec<ManifestEntry>, mut keep: impl FnMut(&ManifestEntry) -> Result<bool>) -> Result<()> {
    let kept = entries.iter().map(&mut keep).collect::<Result<Vec<bool>>>()?;
    let mut kept = kept.into_iter();
    entries.retain(|_| kept.next().unwrap_or(true));
    Ok(())
}

fn group(entries: Vec<ManifestEntry>) -> Vec<BucketFiles> {
    let mut buckets: Vec<BucketFiles> = Vec::new();
    let mut places: HashMap<(BinaryRow, i32), usize> = HashMap::new();
    for entry in entries {
        let place = *places
            .entry((entry.partition.clone(), entry.bucket))
            .or_insert_with(|| {
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
                DELETION_VECTORS_INDEX => bucket.attach_deletion_files(&file),
                _ => {}
            }
        }
    }
}
