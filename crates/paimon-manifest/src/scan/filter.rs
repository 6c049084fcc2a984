//! Which manifests and entries a scan needs.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use paimon_format::row::BinaryRow;
use paimon_format::types::DataType;

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

    /// Whether a manifest may have entries that are needed. Unknown bounds mean that it may.
    pub(super) fn keeps_manifest(&self, manifest: &ManifestFileMeta, partition_types: &[DataType]) -> Result<bool> {
        if let (Some(buckets), Some(min), Some(max)) = (&self.buckets, manifest.min_bucket, manifest.max_bucket)
            && min <= max
            && buckets.range(min..=max).next().is_none()
        {
            return Ok(false);
        }
        if let (Some(min), Some(max)) = (manifest.min_level, manifest.max_level)
            && !self.levels.meets(min, max)
        {
            return Ok(false);
        }
        match &self.partitions {
            Some(partitions) => manifest.may_contain_partitions(partitions.iter(), partition_types),
            None => Ok(true),
        }
    }

    /// Whether an entry is needed.
    pub(super) fn keeps_entry(&self, entry: &ManifestEntry) -> bool {
        self.buckets.as_ref().is_none_or(|buckets| buckets.contains(&entry.bucket))
            && self.levels.contains(entry.file.level)
            && self
                .partitions
                .as_ref()
                .is_none_or(|partitions| partitions.contains(&entry.partition))
    }
}
