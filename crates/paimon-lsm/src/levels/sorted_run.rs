//! Files in key order.

use std::sync::Arc;

use paimon_format::meta::DataFileMeta;
use serde::{Deserialize, Serialize};

/// Files in key order with disjoint key ranges: reading them one after another gives sorted, unique keys. Immutable.
///
/// Source: `org.apache.paimon.mergetree.SortedRun`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Arc<DataFileMeta>>", into = "Vec<Arc<DataFileMeta>>")]
pub struct SortedRun {
    files: Vec<Arc<DataFileMeta>>,
    size: u64,
}

impl SortedRun {
    /// From files that are in key order already, as an interval partition or another run gave them; not checked.
    pub fn from_sorted(files: Vec<Arc<DataFileMeta>>) -> Self {
        let size = total_bytes(&files);
        Self { files, size }
    }

    /// A run of one file.
    pub fn from_single(file: Arc<DataFileMeta>) -> Self {
        Self::from_sorted(vec![file])
    }

    /// The files, in key order.
    pub fn files(&self) -> &[Arc<DataFileMeta>] {
        &self.files
    }

    /// Whether it has no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The sum of the files' sizes, bytes.
    pub fn total_size(&self) -> u64 {
        self.size
    }

    /// When its newest file was made, and that file's name: an order of runs that does not hang on how they were found. Versions
    /// that nothing else tells apart (two writers that counted from the same number) come in this order.
    pub(crate) fn age(&self) -> Option<(Option<i64>, &str)> {
        let ages = self
            .files
            .iter()
            .map(|file| (file.creation_time_ms, file.file_name.as_str()));
        ages.max()
    }
}

impl From<Vec<Arc<DataFileMeta>>> for SortedRun {
    fn from(files: Vec<Arc<DataFileMeta>>) -> Self {
        Self::from_sorted(files)
    }
}

impl From<SortedRun> for Vec<Arc<DataFileMeta>> {
    fn from(run: SortedRun) -> Self {
        run.files
    }
}

/// A sorted run and its level, as the picker sees it. Level 0 has a run per file, every other level at most one.
///
/// Source: `org.apache.paimon.mergetree.LevelSortedRun`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelSortedRun {
    /// Its level.
    pub level: i32,
    /// Its files.
    pub run: SortedRun,
}

/// A file's size as a count of bytes; a negative size in a manifest counts as nothing.
pub fn file_bytes(file: &DataFileMeta) -> u64 {
    u64::try_from(file.file_size).unwrap_or(0)
}

/// The sum of files' sizes, bytes.
pub fn total_bytes<'a>(files: impl IntoIterator<Item = &'a Arc<DataFileMeta>>) -> u64 {
    let bytes = files.into_iter().map(|file| file_bytes(file));
    bytes.fold(0, u64::saturating_add)
}
