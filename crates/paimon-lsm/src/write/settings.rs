//! What writing is told by the table's options.

use paimon_format::options::Options;
use paimon_merge::engine::Promises;
use serde::{Deserialize, Serialize};

use crate::LsmError;
use crate::compact::CompactSettings;

/// So many pages (`page-size`) `write-buffer-size` must hold, as for Java's writers. Here buffers have no pages, and little memory only means
/// that they are flushed often.
const MIN_PAGES: u64 = 3;

/// Settings of a bucket's writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteSettings {
    /// `write-only`: the writer never compacts; some other job does.
    pub write_only: bool,
    /// `write-buffer-size`, bytes: a budget for all buckets of a writer task. A writer that was given no shared budget takes one of
    /// this size for itself.
    pub write_buffer_bytes: u64,
    /// `write-buffer-spillable` and `write-buffer-spill.max-disk-size`: when the buffer is full, its records go to local disk as long as
    /// fewer bytes than this are there; `None`: they are flushed at once.
    pub max_spill_bytes: Option<u64>,
    /// `commit.force-compact`: a commit waits for the running compaction.
    pub force_compact: bool,
    /// `lookup-wait`: in a table that looks old rows up, a job's commits wait for compaction, so that rows come with their changelog.
    pub lookup_wait: bool,
    /// Compaction.
    pub compact: CompactSettings,
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            write_only: false,
            write_buffer_bytes: 256 << 20,
            max_spill_bytes: Some(u64::MAX),
            force_compact: false,
            lookup_wait: true,
            compact: CompactSettings::default(),
        }
    }
}

impl WriteSettings {
    /// For a table with these options, whose merge engine promises this.
    ///
    /// Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options, promises: Promises) -> Result<Self, LsmError> {
        let default = Self::default();
        let spillable = options.bool("write-buffer-spillable")?.unwrap_or(true);
        let max_spill = options.memory_size("write-buffer-spill.max-disk-size")?;
        let write_buffer_bytes = options
            .memory_size("write-buffer-size")?
            .unwrap_or(default.write_buffer_bytes);
        let page_bytes = options.memory_size("page-size")?.unwrap_or(64 << 10).max(1);
        let least = page_bytes.saturating_mul(MIN_PAGES);
        if write_buffer_bytes < least {
            return Err(LsmError::Invalid(format!(
                "option 'write-buffer-size': expected at least {least} bytes ({MIN_PAGES} times 'page-size'), found {write_buffer_bytes}"
            )));
        }
        Ok(Self {
            write_only: options.bool("write-only")?.unwrap_or(false),
            write_buffer_bytes,
            max_spill_bytes: spillable.then_some(max_spill.unwrap_or(u64::MAX)),
            force_compact: options.bool("commit.force-compact")?.unwrap_or(false),
            lookup_wait: options.bool("lookup-wait")?.unwrap_or(true),
            compact: CompactSettings::from_options(options, promises)?,
        })
    }
}

impl WriteSettings {
    /// Whether the commits of a streaming job should wait for compaction.
    ///
    /// Source: `org.apache.paimon.CoreOptions#prepareCommitWaitCompaction`.
    pub fn prepare_commit_wait_compaction(&self) -> bool {
        self.lookup_wait && self.compact.lookup.need_lookup()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(options: &[(&str, &str)]) -> Result<WriteSettings, String> {
        let options: Options = options.iter().copied().collect();
        WriteSettings::from_options(&options, Promises::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn from_options() {
        assert_eq!(settings(&[]).unwrap(), WriteSettings::default());
        let all = settings(&[
            ("write-only", "true"),
            ("write-buffer-size", "1 mb"),
            ("write-buffer-spill.max-disk-size", "2 mb"),
            ("commit.force-compact", "true"),
        ])
        .unwrap();
        assert!(all.write_only && all.force_compact);
        assert_eq!((all.write_buffer_bytes, all.max_spill_bytes), (1 << 20, Some(2 << 20)));
        assert_eq!(
            settings(&[("write-buffer-spillable", "false")])
                .unwrap()
                .max_spill_bytes,
            None
        );
        assert_eq!(
            settings(&[("write-buffer-size", "100 kb")]).unwrap_err(),
            "option 'write-buffer-size': expected at least 196608 bytes (3 times 'page-size'), found 102400"
        );
    }
}
