//! Cuts a bucket into splits: units that readers work on independently.

use std::sync::Arc;

use paimon_format::meta::{DataFileMeta, sections};
use paimon_format::options::Options;
use paimon_format::row::KeyComparator;

use crate::error::Result;

/// Files that must be read together, because their keys may meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitFiles {
    /// The files.
    pub files: Vec<Arc<DataFileMeta>>,
    /// No two rows of the files share a key and none is a retract: each file may be read as it is, without merging.
    pub raw_convertible: bool,
}

/// How splits are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSettings {
    /// `source.split.target-size`, bytes.
    pub target_size: u64,
    /// `source.split.open-file-cost`, bytes that opening a file counts for at least.
    pub open_file_cost: u64,
    /// Readers of this table never merge, because every visible key is visible once: deletion vectors, first-row.
    pub never_merges: bool,
}

impl Default for SplitSettings {
    fn default() -> Self {
        Self {
            target_size: 128 << 20,
            open_file_cost: 4 << 20,
            never_merges: false,
        }
    }
}

impl SplitSettings {
    /// From a table's options. Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options, never_merges: bool) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            target_size: options
                .memory_size("source.split.target-size")?
                .unwrap_or(default.target_size),
            open_file_cost: options
                .memory_size("source.split.open-file-cost")?
                .unwrap_or(default.open_file_cost),
            never_merges,
        })
    }
}

/// Cuts the files of one bucket, for a batch read. Files that overlap in keys are never torn apart.
///
/// Errors: `Corrupt` when a file's key is no key of the table. Source: `org.apache.paimon.table.source.MergeTreeSplitGenerator`.
pub fn split_for_batch(
    files: &[Arc<DataFileMeta>],
    settings: &SplitSettings,
    keys: &KeyComparator,
) -> Result<Vec<SplitFiles>> {
    let raw = files.iter().all(|file| file.level != 0 && !file.has_known_deletes());
    if raw && (settings.never_merges || on_one_level(files)) {
        let items = files.iter().map(|file| vec![Arc::clone(file)]);
        return Ok(pack(items, settings)
            .into_iter()
            .map(|files| SplitFiles {
                files,
                raw_convertible: true,
            })
            .collect());
    }
    let sections = sections(files, keys)?.into_iter().map(|runs| runs.concat());
    Ok(pack(sections, settings)
        .into_iter()
        .map(|files| SplitFiles {
            raw_convertible: matches!(files.as_slice(), [only] if !only.has_known_deletes()),
            files,
        })
        .collect())
}

/// Whether all files are on one level. Above level 0 that means that no two of them overlap.
pub(super) fn on_one_level(files: &[Arc<DataFileMeta>]) -> bool {
    files
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a.level == b.level))
}

/// Next fit, in order: a bin is closed when the next item would overfill it. An item that is too large has a bin of its own.
fn pack(items: impl Iterator<Item = Vec<Arc<DataFileMeta>>>, settings: &SplitSettings) -> Vec<Vec<Arc<DataFileMeta>>> {
    let mut bins = Vec::new();
    let mut open: Vec<Arc<DataFileMeta>> = Vec::new();
    let mut filled = 0_u64;
    for item in items {
        let bytes: u64 = item.iter().map(|file| file.file_size.max(0) as u64).sum();
        let weight = bytes.max(settings.open_file_cost);
        if !open.is_empty() && filled.saturating_add(weight) > settings.target_size {
            bins.push(std::mem::take(&mut open));
            filled = 0;
        }
        filled = filled.saturating_add(weight);
        open.extend(item);
    }
    if !open.is_empty() {
        bins.push(open);
    }
    bins
}
