//! Which manifests and entries a scan needs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use paimon_format::predicate::Predicate;
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, DataType};

use super::statistics::statistics_of;
use crate::error::Result;
use crate::manifest::{ManifestEntry, ManifestFileMeta};

/// Levels whose files a scan sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelRange(RangeInclusive<i32>);

impl LevelRange {
    /// All levels.
    pub fn all() -> Self {
        Self(0..=i32::MAX)
    }

    /// All but level 0: tables whose readers do not merge (first-row, deletion vectors).
    pub fn above_zero() -> Self {
        Self(1..=i32::MAX)
    }

    /// One level.
    pub fn exactly(level: i32) -> Self {
        Self(level..=level)
    }

    /// Whether files of the level are seen.
    pub fn contains(&self, level: i32) -> bool {
        self.0.contains(&level)
    }

    /// The levels that both see.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(*self.0.start().max(other.0.start())..=*self.0.end().min(other.0.end()))
    }

    /// Whether some level between the two is seen.
    fn meets(&self, min: i32, max: i32) -> bool {
        *self.0.start() <= max && min <= *self.0.end()
    }
}

impl Default for LevelRange {
    fn default() -> Self {
        Self::all()
    }
}

/// Which entries a scan needs, as far as partition, bucket and level decide. It treats a file's coming and going alike.
#[derive(Clone, Debug, Default)]
pub struct ScanFilter {
    partitions: Option<Arc<HashSet<BinaryRow>>>,
    partition_predicate: Option<Predicate>,
    buckets: Option<BTreeSet<i32>>,
    levels: LevelRange,
}

impl ScanFilter {
    /// All entries.
    pub fn all() -> Self {
        Self::default()
    }

    /// Only entries of these partitions.
    #[must_use]
    pub fn with_partitions(mut self, partitions: impl IntoIterator<Item = BinaryRow>) -> Self {
        self.partitions = Some(Arc::new(partitions.into_iter().collect()));
        self
    }

    /// Only entries of partitions that pass. The predicate tests partition columns alone.
    #[must_use]
    pub fn with_partition_predicate(mut self, predicate: Predicate) -> Self {
        self.partition_predicate = Some(match self.partition_predicate.take() {
            Some(before) => before.and(predicate),
            None => predicate,
        });
        self
    }

    /// Only entries of these buckets.
    #[must_use]
    pub fn with_buckets(mut self, buckets: impl IntoIterator<Item = i32>) -> Self {
        self.buckets = Some(buckets.into_iter().collect());
        self
    }

    /// Only files of these levels.
    #[must_use]
    pub fn with_levels(mut self, levels: LevelRange) -> Self {
        self.levels = levels;
        self
    }

    /// Whether entries of a partition of these columns may be wanted. Errors: `Corrupt` when it is not of these columns.
    pub(crate) fn keeps_partition(&self, partition_fields: &[DataField], partition: &BinaryRow) -> Result<bool> {
        let named = self
            .partitions
            .as_ref()
            .is_none_or(|partitions| partitions.contains(partition));
        Ok(named && self.pruner(partition_fields).partition_passes(partition)?)
    }

    /// Decides for a table with these partition columns.
    pub(super) fn pruner<'a>(&'a self, partition_fields: &'a [DataField]) -> Pruner<'a> {
        Pruner {
            filter: self,
            partition_types: partition_fields.iter().map(|field| field.data_type.clone()).collect(),
            partition_fields,
            decided: HashMap::new(),
        }
    }
}

/// A filter at work: it evaluates the predicate once a partition.
pub(super) struct Pruner<'a> {
    filter: &'a ScanFilter,
    partition_fields: &'a [DataField],
    partition_types: Vec<DataType>,
    decided: HashMap<BinaryRow, bool>,
}

impl Pruner<'_> {
    /// Whether a manifest may have entries that are needed. Unknown bounds mean that it may.
    pub(super) fn keeps_manifest(&self, manifest: &ManifestFileMeta) -> Result<bool> {
        let filter = self.filter;
        if let (Some(buckets), Some(min), Some(max)) = (&filter.buckets, manifest.min_bucket, manifest.max_bucket)
            && min <= max
            && buckets.range(min..=max).next().is_none()
        {
            return Ok(false);
        }
        if let (Some(min), Some(max)) = (manifest.min_level, manifest.max_level)
            && !filter.levels.meets(min, max)
        {
            return Ok(false);
        }
        if let Some(partitions) = &filter.partitions
            && !manifest.may_contain_partitions(partitions.iter(), &self.partition_types)?
        {
            return Ok(false);
        }
        let Some(predicate) = &filter.partition_predicate else {
            return Ok(true);
        };
        let rows = manifest.num_added_files.saturating_add(manifest.num_deleted_files);
        let statistics = statistics_of(&manifest.partition_stats, self.partition_fields.iter())?;
        Ok(predicate.may_match(rows.max(0) as u64, &|name| statistics.get(name)))
    }

    /// Whether an entry is needed.
    pub(super) fn keeps_entry(&mut self, entry: &ManifestEntry) -> Result<bool> {
        let filter = self.filter;
        let wanted = filter
            .buckets
            .as_ref()
            .is_none_or(|buckets| buckets.contains(&entry.bucket))
            && filter.levels.contains(entry.file.level)
            && filter
                .partitions
                .as_ref()
                .is_none_or(|partitions| partitions.contains(&entry.partition));
        Ok(wanted && self.partition_passes(&entry.partition)?)
    }

    fn partition_passes(&mut self, partition: &BinaryRow) -> Result<bool> {
        let Some(predicate) = &self.filter.partition_predicate else {
            return Ok(true);
        };
        if let Some(passes) = self.decided.get(partition) {
            return Ok(*passes);
        }
        let values = partition.to_datums(&self.partition_types)?;
        let passes = predicate.evaluate_row(&|name| {
            let position = self.partition_fields.iter().position(|field| field.name == name)?;
            values.get(position)
        })?;
        self.decided.insert(partition.clone(), passes);
        Ok(passes)
    }
}
