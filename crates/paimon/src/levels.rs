//! What a bucket looks like, and what would be compacted in it: for people, and for jobs that decide about compactions elsewhere.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::dv::BucketDvMaintainer;
use paimon_format::meta::{DataFileMeta, IndexFileMeta};
use paimon_format::row::BinaryRow;
use paimon_format::types::DataType;
use paimon_lsm::compact::{CompactSettings, CompactStep};
use paimon_lsm::levels::{KeyOrder, LevelSortedRun, Levels, total_bytes};
use paimon_lsm::pick::{CompactUnit, PickReason};
use paimon_manifest::scan::ScanFilter;
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

/// What would be compacted in a bucket now.
#[derive(Debug)]
pub struct BucketPick {
    /// The files and where they would go; `None`: nothing to do.
    pub unit: Option<CompactUnit>,
    /// Whether deletes would go away: nothing older than the unit can hold their keys.
    pub drop_delete: bool,
    /// What would be done, in key order.
    pub steps: Vec<CompactStep>,
    /// The rule and the numbers that made it so, in words.
    pub why: String,
}

impl BucketPick {
    /// Bytes that would be read.
    pub fn bytes(&self) -> u64 {
        self.unit.as_ref().map_or(0, |unit| total_bytes(&unit.files))
    }
}

impl Table {
    /// The sorted runs of each selected bucket that has files, in the snapshot that `travel` names. Empty for a table without
    /// snapshots. In the order of partitions as text, then buckets. Rows that wait for a bucket are in no run.
    ///
    /// Errors: `NotFound`; `Corrupt` when files of a level above 0 share keys; `Invalid` naming an option, a partition column or a bucket
    /// that the table does not have.
    pub async fn buckets(&self, travel: &TimeTravel, selection: &Selection) -> Result<Vec<BucketLevels>> {
        let fields = self.partition_fields();
        let selection = selection.resolve(&fields, &self.default_partition_name())?;
        let Some(snapshot) = self.snapshot_store().travel(travel).await? else {
            selection.check_buckets(self.options(), &[])?;
            return Ok(Vec::new());
        };
        // The levels of tables that this engine cannot merge can be looked at all the same.
        let settings = CompactSettings::from_options(self.options(), Promises::default())?;
        let stores = match DeletionVectorSettings::from_options(self.options())? {
            Some(_) => Some(BucketStores::new(self)?),
            None => None,
        };
        let keys = KeyOrder::new(&self.schema().kv_schema()?)?;
        let key_types: Arc<[DataType]> = self.key_types()?.into();
        let mut buckets = Vec::new();
        let found = self.files(&snapshot, ScanFilter::all()).await?;
        selection.check_buckets(self.options(), &found)?;
        for files in found {
            let partition = Partition::new(files.partition.clone(), &fields)?;
            if files.bucket >= 0 && selection.contains(&partition, files.bucket) {
                let name = self
                    .paths()
                    .bucket(&files.partition, files.bucket)?
                    .directory()
                    .to_owned();
                let deletion_index_files = files.deletion_index_files();
                let deleted_rows = files.deletion_files.into_iter();
                let deleted_rows = deleted_rows
                    .map(|(file, deletion)| (file, deletion.range.cardinality))
                    .collect();
                let vectors = match &stores {
                    Some(stores) => stores
                        .vectors(&files.partition, files.bucket, &deletion_index_files, &files.files)
                        .await
                        .map_err(|error| error.in_bucket(&name))?,
                    None => None,
                };
                let levels = Levels::restore(keys.clone(), files.files, settings.num_levels);
                let levels = levels.map_err(|error| Error::from(error).in_bucket(&name))?;
                buckets.push(BucketLevels {
                    partition,
                    bucket: files.bucket,
                    total_buckets: files.total_buckets,
                    snapshot: snapshot.id,
                    runs: levels.level_sorted_runs(),
                    levels,
                    key_types: Arc::clone(&key_types),
                    name,
                    deleted_rows,
                    deletion_index_files,
                    vectors,
                    compaction_trigger: settings.strategy.universal.compaction_trigger,
                    stop_trigger: settings.stop_trigger,
                });
            }
        }
        buckets.sort_by_cached_key(|bucket| (bucket.partition.to_string(), bucket.bucket));
        Ok(buckets)
    }

    /// What a compaction of the bucket would do now: what the strategy picks, or a full compaction.
    ///
    /// Errors: `Invalid` naming an option; `Corrupt` when a file's key bounds cannot be read.
    pub fn explain(&self, bucket: &BucketLevels, full: bool) -> Result<BucketPick> {
        let stores = BucketStores::new(self)?;
        let settings = &stores.settings().compact;
        let mut compactor = stores.compactor(bucket)?;
        let Some(unit) = compactor.pick(full)? else {
            return Ok(BucketPick {
                unit: None,
                drop_delete: false,
                steps: Vec::new(),
                why: why_not(bucket.runs(), full, settings, bucket.levels.max_level()),
            });
        };
        let task = compactor.task(unit.clone())?;
        Ok(BucketPick {
            drop_delete: task.drop_delete,
            steps: compactor.steps(&task)?,
            why: why(&unit, bucket.runs(), settings),
            unit: Some(unit),
        })
    }
}

fn why(unit: &CompactUnit, runs: &[LevelSortedRun], settings: &CompactSettings) -> String {
    let universal = &settings.strategy.universal;
    let early = universal.early_full.as_ref();
    let sum = |runs: &[LevelSortedRun]| runs.iter().map(|run| run.run.total_size()).sum::<u64>();
    match unit.reason {
        PickReason::EarlyFullInterval => format!(
            "no full compaction within compaction.optimization-interval = {} ms",
            early.and_then(|early| early.interval_ms).unwrap_or_default()
        ),
        PickReason::EarlyFullTotalSize => format!(
            "all runs together, {} bytes, are below compaction.total-size-threshold = {} bytes",
            sum(runs),
            early.and_then(|early| early.total_size_bytes).unwrap_or_default()
        ),
        PickReason::EarlyFullIncrementalSize => format!(
            "the runs above the oldest level are over compaction.incremental-size-threshold = {} bytes",
            early.and_then(|early| early.incremental_size_bytes).unwrap_or_default()
        ),
        PickReason::SizeAmplification => {
            let (oldest, newer) = runs
                .split_last()
                .map_or((0, 0), |(oldest, newer)| (oldest.run.total_size(), sum(newer)));
            format!(
                "the newer runs, {newer} bytes, are over compaction.max-size-amplification-percent = {} % of the oldest, {oldest} bytes",
                universal.max_size_amplification_percent
            )
        }
        PickReason::SizeRatio => format!(
            "each of them is at most compaction.size-ratio = {} % larger than all newer ones together, or joins as a run of level 0 or 1",
            universal.size_ratio_percent
        ),
        PickReason::NumberOfRuns => format!(
            "{} sorted runs are over num-sorted-run.compaction-trigger = {}",
            runs.len(),
            universal.compaction_trigger
        ),
        PickReason::ForceUpLevel0 if settings.lookup.need_lookup() => {
            "level 0 must not stay behind where old rows are looked up (lookup-compact)".to_owned()
        }
        PickReason::ForceUpLevel0 => "level 0 must not stay behind (compaction.force-up-level-0)".to_owned(),
        PickReason::Full => "a full compaction is asked for".to_owned(),
        _ => format!("{:?}", unit.reason),
    }
}

fn why_not(runs: &[LevelSortedRun], full: bool, settings: &CompactSettings, max_level: i32) -> String {
    let trigger = settings.strategy.universal.compaction_trigger;
    let counted = if runs.len() == 1 {
        "1 sorted run is".to_owned()
    } else {
        format!("{} sorted runs are", runs.len())
    };
    if full {
        format!("all rows are in one sorted run at the top level, {max_level}")
    } else if runs.len() < trigger {
        format!("{counted} fewer than num-sorted-run.compaction-trigger = {trigger}")
    } else {
        format!(
            "{counted} not over num-sorted-run.compaction-trigger = {trigger}, and no newer run is large enough beside the next older one"
        )
    }
}
