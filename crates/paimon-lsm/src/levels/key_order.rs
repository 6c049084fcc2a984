//! The order of a bucket's keys.

use std::sync::Arc;

use paimon_format::FormatError;
use paimon_format::kv::KvSchema;
use paimon_format::meta::{DataFileMeta, sections};
use paimon_format::row::{BinaryRow, KeyComparator};

use super::SortedRun;
use crate::LsmError;

/// Runs that share keys and must be merged with one another. The order of the runs means nothing.
pub type Section = Vec<SortedRun>;

/// Orders the files of a bucket by their key bounds. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeyOrder {
    comparator: Arc<KeyComparator>,
}

impl KeyOrder {
    /// The order of a schema's trimmed primary key.
    ///
    /// Errors: `Unsupported` for a key column without an order.
    pub fn new(schema: &KvSchema) -> Result<Self, LsmError> {
        let types = schema.key_fields().map(|field| field.data_type.clone()).collect();
        Ok(Self {
            comparator: Arc::new(KeyComparator::new(types)?),
        })
    }

    /// Checks a file's bounds.
    ///
    /// Errors: `Corrupt`, naming the file, when a bound is no key or the smallest key is larger than the largest.
    pub fn check(&self, file: &DataFileMeta) -> Result<(), LsmError> {
        match self.comparator.compare(&file.min_key, &file.max_key) {
            Ok(order) if order.is_gt() => Err(LsmError::Levels(format!(
                "{}: its smallest key is larger than its largest",
                file.file_name
            ))),
            Ok(_) => Ok(()),
            Err(error) => Err(unreadable(file, &error)),
        }
    }

    /// Sections of files: ascending, disjoint in keys, each of as few runs as possible.
    ///
    /// Errors: `Corrupt` when a bound is no key. Source: `org.apache.paimon.mergetree.compact.IntervalPartition`.
    pub fn sections(&self, files: &[Arc<DataFileMeta>]) -> Result<Vec<Section>, LsmError> {
        let sections = sections(files, &self.comparator)?;
        Ok(sections
            .into_iter()
            .map(|runs| runs.into_iter().map(SortedRun::from_sorted).collect())
            .collect())
    }

    /// The smallest keys of files, ascending, each once. Errors: `Corrupt` when one is no key.
    pub(crate) fn distinct_starts(&self, files: &[Arc<DataFileMeta>]) -> Result<Vec<BinaryRow>, LsmError> {
        let keyed = files.iter().map(|file| match self.comparator.key(&file.min_key) {
            Ok(key) => Ok((key, &file.min_key)),
            Err(error) => Err(unreadable(file, &error)),
        });
        let mut keyed = keyed.collect::<Result<Vec<_>, _>>()?;
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        keyed.dedup_by(|(a, _), (b, _)| a == b);
        Ok(keyed.into_iter().map(|(_, key)| key.clone()).collect())
    }

    /// How many of these ascending keys are not above `key`. Errors: `Corrupt` when one is no key.
    pub(crate) fn starts_up_to(&self, starts: &[BinaryRow], key: &BinaryRow) -> Result<usize, LsmError> {
        let (mut low, mut high) = (0, starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(start) = starts.get(middle) else { break };
            if self.comparator.compare(start, key)?.is_gt() {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// A run of files in any order.
    ///
    /// Errors: `Corrupt`, naming two files, when their key ranges share a key, or one whose bound is no key.
    pub fn sorted_run(&self, files: Vec<Arc<DataFileMeta>>) -> Result<SortedRun, LsmError> {
        let mut keyed = files
            .into_iter()
            .map(|file| {
                let min = self.comparator.key(&file.min_key);
                let max = self.comparator.key(&file.max_key);
                match min.and_then(|min| Ok((min, max?))) {
                    Ok(bounds) => Ok((bounds, file)),
                    Err(error) => Err(unreadable(&file, &error)),
                }
            })
            .collect::<Result<Vec<_>, _>>()?;
        keyed.sort_by(|((a, _), _), ((b, _), _)| a.cmp(b));
        for (((_, max), file), ((min, _), next)) in keyed.iter().zip(keyed.iter().skip(1)) {
            if min <= max {
                return Err(LsmError::Levels(format!(
                    "files {} and {} of level {} overlap in their keys",
                    file.file_name, next.file_name, next.level
                )));
            }
        }
        Ok(SortedRun::from_sorted(
            keyed.into_iter().map(|(_, file)| file).collect(),
        ))
    }
}

fn unreadable(file: &DataFileMeta, error: &FormatError) -> LsmError {
    LsmError::Levels(format!("{}: its key bounds are unreadable: {error}", file.file_name))
}
