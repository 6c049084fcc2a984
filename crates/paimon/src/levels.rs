//! What a bucket looks like: for people, and for jobs that decide about compactions elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::dv::BucketDvMaintainer;
use paimon_format::meta::{DataFileMeta, IndexFileMeta};
use paimon_format::row::BinaryRow;
use paimon_format::types::DataType;
use paimon_lsm::compact::CompactSettings;
use paimon_lsm::levels::{KeyOrder, LevelSortedRun, Levels};
use paimon_manifest::scan::{BucketFiles, ScanFilter};
use paimon_manifest::snapshot::TimeTravel;
use paimon_merge::engine::Promises;

use crate::bucket::BucketStores;
use crate::error::{Error, Result};
use crate::options::DeletionVectorSettings;
use crate::partition::{Partition, Selection};
use crate::table::Table;

/// The sorted runs of one bucket in one snapshot.
#[derive(Debug)]
pub struct BucketLevels {
    /// The partition.
    pub partition: Partition,
    /// The bucket.
    pub bucket: i32,
    /// How many buckets the partition has.
    pub total_buckets: i32,
    /// The snapshot.
    pub snapshot: i64,
    levels: Levels,
    runs: Vec<LevelSortedRun>,
    key_types: Arc<[DataType]>,
    name: String,
    /// Rows that deletion vectors hide, by file; `None`: their number is not noted.
    deleted_rows: HashMap<String, Option<i64>>,
    deletion_index_files: Vec<Arc<IndexFileMeta>>,
    vectors: Option<BucketDvMaintainer>,
    compaction_trigger: usize,
    stop_trigger: usize,
}

/// What the number of a bucket's sorted runs means for its writers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackPressure {
    /// There are few.
    Relaxed,
    /// `num-sorted-run.compaction-trigger` or more: a compaction is due.
    CompactionDue,
    /// More than `num-sorted-run.stop-trigger`: a flush waits for the running compaction, unless the writer is `write-only`.
    WritersWait,
}

impl BucketLevels {
    /// `num-sorted-run.compaction-trigger`
    pub fn compaction_trigger(&self) -> usize {
        self.compaction_trigger
    }

    /// `num-sorted-run.stop-trigger`
    pub fn stop_trigger(&self) -> usize {
        self.stop_trigger
    }

    /// What the number of runs means for writers.
    pub fn back_pressure(&self) -> BackPressure {
        match self.runs.len() {
            runs if runs > self.stop_trigger => BackPressure::WritersWait,
            runs if runs >= self.compaction_trigger => BackPressure::CompactionDue,
            _ => BackPressure::Relaxed,
        }
    }

    /// All runs, newest to oldest.
    pub fn runs(&self) -> &[LevelSortedRun] {
        &self.runs
    }

    /// The tree.
    pub fn levels(&self) -> &Levels {
        &self.levels
    }

    /// The bucket's directory, relative to the table: `dt=2024-01-01/bucket-0`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many rows of one of its files a deletion vector hides; `None`: there is one, and the number is not noted.
    pub fn deleted_rows(&self, file: &DataFileMeta) -> Option<i64> {
        self.deleted_rows.get(&file.file_name).copied().unwrap_or(Some(0))
    }

    /// The index files that hold its deletion vectors.
    pub fn deletion_index_files(&self) -> &[Arc<IndexFileMeta>] {
        &self.deletion_index_files
    }

    /// Its deletion vectors; `None`: a table without.
    pub(crate) fn vectors(&self) -> Option<&BucketDvMaintainer> {
        self.vectors.as_ref()
    }

    /// A key bound of one of its files as text; the columns of a composite key stand between parentheses.
    ///
    /// Errors: `Corrupt` when the row is no key of the table.
    pub fn key_text(&self, key: &BinaryRow) -> Result<String> {
        let values = key.to_datums(&self.key_types)?;
        let texts = values
            .iter()
            .zip(self.key_types.iter())
            .map(|(value, data_type)| value.to_text(data_type));
        let texts: Vec<String> = texts.collect();
        Ok(match texts.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        })
    }
}

impl Table {
    /// The sorted runs of each selected bucket that has files, in the snapshot that `travel` names. Empty for a table without
    /// snapshots. In the order of partitions as text, then buckets. Rows that wait for a bucket are in no run.
    ///
    /// Errors: `NotFound`; `Corrupt` when files of a level above 0 share keys; `Invalid` naming an option, a partition column or a bucket
    /// that the table does not have.
    pub async fn buckets(&self, travel: &TimeTravel, selection: &Selection) -> Result<Vec<BucketLevels>> {
        let found = self.selected_buckets(travel, selection).await?;
        let mut buckets = Vec::with_capacity(found.len());
        if !found.is_empty() {
            let restore = RestoreLevels::new(self)?;
            for bucket in found {
                buckets.push(restore.levels(bucket).await?);
            }
        }
        Ok(buckets)
    }

    /// The selected buckets that have files, in the order of [`buckets`](Self::buckets). Errors: those that are of the table.
    pub(crate) async fn selected_buckets(
        &self,
        travel: &TimeTravel,
        selection: &Selection,
    ) -> Result<Vec<SelectedBucket>> {
        let fields = self.partition_fields();
        let selection = selection.resolve(&fields, &self.default_partition_name())?;
        let Some(snapshot) = self.snapshot_store().travel(travel).await? else {
            selection.check_buckets(self.options(), &[])?;
            return Ok(Vec::new());
        };
        let found = self.files(&snapshot, ScanFilter::all()).await?;
        selection.check_buckets(self.options(), &found)?;
        let mut buckets = Vec::new();
        for files in found {
            let partition = Partition::new(files.partition.clone(), &fields)?;
            if files.bucket >= 0 && selection.contains(&partition, files.bucket) {
                let paths = self.paths().bucket(&files.partition, files.bucket)?;
                buckets.push(SelectedBucket {
                    partition,
                    name: paths.directory().to_owned(),
                    snapshot: snapshot.id,
                    files,
                });
            }
        }
        buckets.sort_by_cached_key(|bucket| (bucket.partition.to_string(), bucket.files.bucket));
        Ok(buckets)
    }
}

/// A bucket of a snapshot, its files not looked at yet.
#[derive(Debug)]
pub(crate) struct SelectedBucket {
    pub(crate) partition: Partition,
    /// Its directory, relative to the table.
    pub(crate) name: String,
    snapshot: i64,
    pub(crate) files: BucketFiles,
}

/// What the trees of a table's buckets are restored with.
#[derive(Debug)]
pub(crate) struct RestoreLevels {
    settings: CompactSettings,
    /// Of a table with deletion vectors.
    stores: Option<BucketStores>,
    keys: KeyOrder,
    key_types: Arc<[DataType]>,
}

impl RestoreLevels {
    /// Errors: `Invalid`, naming an option.
    pub(crate) fn new(table: &Table) -> Result<Self> {
        Ok(Self {
            // The levels of tables that this engine cannot merge can be looked at all the same.
            settings: CompactSettings::from_options(table.options(), Promises::default())?,
            stores: match DeletionVectorSettings::from_options(table.options())? {
                Some(_) => Some(BucketStores::new(table)?),
                None => None,
            },
            keys: KeyOrder::new(&table.schema().kv_schema()?)?,
            key_types: table.key_types()?.into(),
        })
    }

    /// A bucket's tree. Errors: those of its files, naming the bucket.
    pub(crate) async fn levels(&self, bucket: SelectedBucket) -> Result<BucketLevels> {
        let SelectedBucket {
            partition,
            name,
            snapshot,
            files,
        } = bucket;
        let deletion_index_files = files.deletion_index_files();
        let deleted_rows = files.deletion_files.into_iter();
        let deleted_rows = deleted_rows
            .map(|(file, deletion)| (file, deletion.range.cardinality))
            .collect();
        let vectors = match &self.stores {
            Some(stores) => stores
                .vectors(&files.partition, files.bucket, &deletion_index_files, &files.files)
                .await
                .map_err(|error| error.in_bucket(&name))?,
            None => None,
        };
        let levels = Levels::restore(self.keys.clone(), files.files, self.settings.num_levels);
        let levels = levels.map_err(|error| Error::from(error).in_bucket(&name))?;
        Ok(BucketLevels {
            partition,
            bucket: files.bucket,
            total_buckets: files.total_buckets,
            snapshot,
            runs: levels.level_sorted_runs(),
            levels,
            key_types: Arc::clone(&self.key_types),
            name,
            deleted_rows,
            deletion_index_files,
            vectors,
            compaction_trigger: self.settings.strategy.universal.compaction_trigger,
            stop_trigger: self.settings.stop_trigger,
        })
    }
}
