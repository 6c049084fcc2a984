//! How a commit behaves.

use std::time::Duration;

use paimon_format::options::{Options, SequenceSettings};

use crate::error::{ManifestError, Result};

/// The options of commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitSettings {
    /// `commit.max-retries`: how often a lost race or an unclear answer is tried again.
    pub max_retries: u32,
    /// `commit.timeout`: no retry after it; `None`: no limit.
    pub timeout: Option<Duration>,
    /// `commit.min-retry-wait`: doubles with every retry.
    pub min_retry_wait: Duration,
    /// `commit.max-retry-wait`
    pub max_retry_wait: Duration,
    /// Whether a commit without any file makes no snapshot: `snapshot.ignore-empty-commit`; else true unless
    /// `commit.force-create-snapshot`.
    pub ignore_empty_commit: bool,
    /// `bucket`: the bucket count of messages that name none.
    pub buckets: i32,
    /// `dynamic-partition-overwrite`: an overwrite of a partitioned table replaces the partitions that it writes, not those it names.
    pub dynamic_partition_overwrite: bool,
    /// `sequence.snapshot-ordering`: the records of flushed files have the snapshot's id as their sequence number.
    pub snapshot_ordering: bool,
    /// `write.sequence-number-init-mode` is `snapshot`: snapshots note the largest sequence number.
    pub note_max_sequence: bool,
    /// `overwrite-upgrade`: the level of files that an overwrite may put there at once, the highest; `None`: they stay on level 0.
    pub overwrite_level: Option<i32>,
}

impl Default for CommitSettings {
    fn default() -> Self {
        Self {
            max_retries: 10,
            timeout: None,
            min_retry_wait: Duration::from_millis(10),
            max_retry_wait: Duration::from_secs(10),
            ignore_empty_commit: true,
            buckets: -1,
            dynamic_partition_overwrite: true,
            snapshot_ordering: false,
            note_max_sequence: false,
            overwrite_level: Some(5),
        }
    }
}

impl CommitSettings {
    /// From a table's options. Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options) -> Result<Self> {
        let default = Self::default();
        let max_retries = match options.int("commit.max-retries")? {
            None => default.max_retries,
            Some(retries) => u32::try_from(retries)
                .map_err(|_| ManifestError::invalid(format!("commit.max-retries = {retries}: at least 0 expected")))?,
        };
        let trigger = options.int("num-sorted-run.compaction-trigger")?.unwrap_or(5);
        let levels = options.int("num-levels")?.unwrap_or(trigger.saturating_add(1));
        let upgrade = options.bool("overwrite-upgrade")?.unwrap_or(true);
        let sequence = SequenceSettings::from_options(options)?;
        let force_snapshot = options.bool("commit.force-create-snapshot")?.unwrap_or(false);
        Ok(Self {
            max_retries,
            timeout: options.duration("commit.timeout")?,
            min_retry_wait: options
                .duration("commit.min-retry-wait")?
                .unwrap_or(default.min_retry_wait),
            max_retry_wait: options
                .duration("commit.max-retry-wait")?
                .unwrap_or(default.max_retry_wait),
            ignore_empty_commit: options.bool("snapshot.ignore-empty-commit")?.unwrap_or(!force_snapshot),
            buckets: options.int("bucket")?.unwrap_or(default.buckets),
            dynamic_partition_overwrite: options
                .bool("dynamic-partition-overwrite")?
                .unwrap_or(default.dynamic_partition_overwrite),
            snapshot_ordering: sequence.snapshot_ordering,
            note_max_sequence: sequence.from_snapshot,
            overwrite_level: (upgrade && levels > 1).then_some(levels - 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &[(&str, &str)]) -> Result<CommitSettings> {
        CommitSettings::from_options(&options.iter().copied().collect())
    }

    #[test]
    fn from_options() {
        assert_eq!(settings(&[]).unwrap(), CommitSettings::default());
        let all = settings(&[
            ("commit.max-retries", "3"),
            ("commit.timeout", "1 min"),
            ("commit.min-retry-wait", "5 ms"),
            ("commit.max-retry-wait", "2 s"),
            ("commit.force-create-snapshot", "true"),
            ("bucket", "4"),
            ("dynamic-partition-overwrite", "false"),
            ("num-sorted-run.compaction-trigger", "2"),
            ("sequence.snapshot-ordering", "true"),
            ("write.sequence-number-init-mode", "snapshot"),
        ]);
        let expected = CommitSettings {
            max_retries: 3,
            timeout: Some(Duration::from_secs(60)),
            min_retry_wait: Duration::from_millis(5),
            max_retry_wait: Duration::from_secs(2),
            ignore_empty_commit: false,
            buckets: 4,
            dynamic_partition_overwrite: false,
            snapshot_ordering: true,
            note_max_sequence: true,
            overwrite_level: Some(2),
        };
        assert_eq!(all.unwrap(), expected);
        assert_eq!(
            settings(&[("overwrite-upgrade", "false")]).unwrap().overwrite_level,
            None
        );
        let error = settings(&[("commit.max-retries", "-1")]).unwrap_err();
        assert_eq!(error.to_string(), "commit.max-retries = -1: at least 0 expected");
    }
}
