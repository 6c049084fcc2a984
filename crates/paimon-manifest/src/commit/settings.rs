//! How a commit behaves.

use std::time::Duration;

use paimon_format::options::Options;

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
    /// Whether a commit without any file makes no snapshot: `snapshot.ignore-empty-commit`, else true.
    pub ignore_empty_commit: bool,
    /// `bucket`: the bucket count of messages that name none.
    pub buckets: i32,
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
        Ok(Self {
            max_retries,
            timeout: options.duration("commit.timeout")?,
            min_retry_wait: options
                .duration("commit.min-retry-wait")?
                .unwrap_or(default.min_retry_wait),
            max_retry_wait: options
                .duration("commit.max-retry-wait")?
                .unwrap_or(default.max_retry_wait),
            ignore_empty_commit: options
                .bool("snapshot.ignore-empty-commit")?
                .unwrap_or(default.ignore_empty_commit),
            buckets: options.int("bucket")?.unwrap_or(default.buckets),
        })
    }
}
