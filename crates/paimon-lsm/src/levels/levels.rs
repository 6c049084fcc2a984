//! The tree as its writer knows it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paimon_format::meta::DataFileMeta;

use super::{KeyOrder, LevelSortedRun, LevelsView, SortedRun, total_bytes};
use crate::LsmError;

/// The files of one bucket by level. Level 0 has a run per file, newest first; each level above is one run.
///
/// Source: `org.apache.paimon.mergetree.Levels`.
#[derive(Clone, Debug)]
pub struct Levels {
    keys: KeyOrder,
    max_level: i32,
    level0: Vec<Arc<DataFileMeta>>,
    /// Levels above 0 that have files.
    upper: BTreeMap<i32, SortedRun>,
}

/// Newest first. Ties on the largest sequence number do happen: several write-only writers may count from the same start.
fn level0_order(a: &DataFileMeta, b: &DataFileMeta) -> Ordering {
    b.max_sequence_number
        .cmp(&a.max_sequence_number)
        .then_with(|| a.min_sequence_number.cmp(&b.min_sequence_number))
        .then_with(|| a.creation_time_ms.cmp(&b.creation_time_ms))
        .then_with(|| a.file_name.cmp(&b.file_name))
}

impl Levels {
    /// The tree of a bucket's files. It has at least `num_levels` levels (level 0 included), more if a file lies higher.
    ///
    /// Errors: `Invalid` with fewer than 2 levels; `Corrupt`, naming files, when a file is there twice, files of a level
    /// above 0 share keys, a level is negative or key bounds cannot be read.
    pub fn restore(keys: KeyOrder, files: Vec<Arc<DataFileMeta>>, num_levels: i32) -> Result<Self, LsmError> {
        let highest = files.iter().map(|file| file.level).max().unwrap_or(0);
        let max_level = highest.max(num_levels - 1);
        if max_level < 1 {
            return Err(LsmError::Invalid(format!(
                "the number of levels must be at least 2, not {num_levels}"
            )));
        }
        let mut levels = Self {
            keys,
            max_level,
            level0: Vec::new(),
            upper: BTreeMap::new(),
        };
        levels.update(&[], &files)?;
        Ok(levels)
    }

    /// How keys are ordered.
    pub fn keys(&self) -> &KeyOrder {
        &self.keys
    }

    /// Levels, level 0 included.
    pub fn number_of_levels(&self) -> i32 {
        self.max_level.saturating_add(1)
    }

    /// The highest level, with or without files.
    pub fn max_level(&self) -> i32 {
        self.max_level
    }

    /// Files on level 0, and one for each level above that has files.
    pub fn number_of_sorted_runs(&self) -> usize {
        self.level0.len() + self.upper.len()
    }

    /// The highest level that has files; `None`: the bucket is empty.
    pub fn non_empty_highest_level(&self) -> Option<i32> {
        match self.upper.last_key_value() {
            Some((&level, _)) => Some(level),
            None => (!self.level0.is_empty()).then_some(0),
        }
    }

    /// Level 0, newest first.
    pub fn level0(&self) -> &[Arc<DataFileMeta>] {
        &self.level0
    }

    /// All runs, newest to oldest.
    pub fn level_sorted_runs(&self) -> Vec<LevelSortedRun> {
        let level0 = self.level0.iter().map(|file| LevelSortedRun {
            level: 0,
            run: SortedRun::from_single(Arc::clone(file)),
        });
        let upper = self.upper.iter().map(|(&level, run)| LevelSortedRun {
            level,
            run: run.clone(),
        });
        level0.chain(upper).collect()
    }

    /// All files, newest run first.
    pub fn all_files(&self) -> Vec<Arc<DataFileMeta>> {
        let upper = self.upper.values().flat_map(|run| run.files());
        self.level0.iter().chain(upper).map(Arc::clone).collect()
    }

    /// The names of all files above level 0, sorted.
    pub fn upper_files(&self) -> Vec<String> {
        let files = self.all_files().into_iter().filter(|file| file.level > 0);
        let mut names: Vec<String> = files.map(|file| file.file_name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The sum of all files' sizes, bytes.
    pub fn total_file_size(&self) -> u64 {
        let upper = self.upper.values().map(SortedRun::total_size);
        upper.fold(total_bytes(&self.level0), u64::saturating_add)
    }

    /// The tree as it is now, for a task that runs while the tree goes on.
    pub fn view(&self) -> LevelsView {
        LevelsView::new(self.number_of_levels(), self.level_sorted_runs())
    }

    /// Takes files away and adds others; a file may do both when it changes its level. Returns the names that are gone.
    ///
    /// On level 0 a file is the same if its sequence numbers, creation time and name are; above, if all of its metadata is.
    /// A file to be taken away that is not there is no error.
    ///
    /// Errors as [`restore`](Self::restore) (`Invalid` excepted); the tree is then unchanged.
    pub fn update(
        &mut self,
        before: &[Arc<DataFileMeta>],
        after: &[Arc<DataFileMeta>],
    ) -> Result<BTreeSet<String>, LsmError> {
        for file in after {
            if !(0..=self.max_level).contains(&file.level) {
                return Err(LsmError::Levels(format!(
                    "{}: level {} is not among 0 to {}",
                    file.file_name, file.level, self.max_level
                )));
            }
            self.keys.check(file)?;
        }
        let level0 = self.updated_level0(before, after)?;
        let mut upper = BTreeMap::new();
        for file in before.iter().chain(after).filter(|file| file.level > 0) {
            if let std::collections::btree_map::Entry::Vacant(entry) = upper.entry(file.level) {
                entry.insert(self.updated_run(file.level, before, after)?);
            }
        }
        self.level0 = level0;
        for (level, run) in upper {
            if run.is_empty() {
                self.upper.remove(&level);
            } else {
                self.upper.insert(level, run);
            }
        }
        let kept: BTreeSet<&str> = after.iter().map(|file| file.file_name.as_str()).collect();
        Ok(before
            .iter()
            .filter(|file| !kept.contains(file.file_name.as_str()))
            .map(|file| file.file_name.clone())
            .collect())
    }

    fn updated_level0(
        &self,
        before: &[Arc<DataFileMeta>],
        after: &[Arc<DataFileMeta>],
    ) -> Result<Vec<Arc<DataFileMeta>>, LsmError> {
        let mut files = self.level0.clone();
        for gone in before.iter().filter(|file| file.level == 0) {
            if let Ok(position) = files.binary_search_by(|file| level0_order(file, gone)) {
                files.remove(position);
            }
        }
        for new in after.iter().filter(|file| file.level == 0) {
            match files.binary_search_by(|file| level0_order(file, new)) {
                Ok(_) => return Err(LsmError::Levels(format!("{}: is on level 0 twice", new.file_name))),
                Err(position) => files.insert(position, Arc::clone(new)),
            }
        }
        Ok(files)
    }

    fn updated_run(
        &self,
        level: i32,
        before: &[Arc<DataFileMeta>],
        after: &[Arc<DataFileMeta>],
    ) -> Result<SortedRun, LsmError> {
        let here = |file: &&Arc<DataFileMeta>| file.level == level;
        let gone: BTreeMap<&str, _> = before
            .iter()
            .filter(here)
            .map(|file| (file.file_name.as_str(), file))
            .collect();
        let mut files = self.upper.get(&level).map_or_else(Vec::new, |run| run.files().to_vec());
        files.retain(|file| gone.get(file.file_name.as_str()) != Some(&file));
        files.extend(after.iter().filter(here).map(Arc::clone));
        self.keys.sorted_run(files)
    }
}
