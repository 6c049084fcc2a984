//! Which files of a unit are merged, which only change their level, and which stay.

use std::sync::Arc;

use paimon_format::kv::FileFormat;
use paimon_format::meta::DataFileMeta;

use super::changelog::{ChangelogRules, UpgradeStrategy};
use crate::LsmError;
use crate::levels::{KeyOrder, Section, SortedRun, file_bytes};

/// One step of a compaction. Steps are in key order; their outputs never overlap.
///
/// `changelog`: keys are looked at one by one, for what changes, or for the old rows that are replaced; see [`ChangelogProducer`](super::ChangelogProducer) and
/// [`LookupStrategy`](crate::lookup::LookupStrategy).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactStep {
    /// Merge sections into one row of files on the output level.
    Rewrite {
        /// One after another in key order.
        sections: Vec<Section>,
        /// Delete rows are dropped.
        drop_delete: bool,
        /// Changes are looked for.
        changelog: bool,
    },
    /// Change this file's level.
    Upgrade {
        /// It stays as it is.
        file: Arc<DataFileMeta>,
        /// It is read for its changes.
        changelog: bool,
    },
}

/// What decides between the steps.
pub(crate) struct StepRules<'a> {
    /// Where outputs go.
    pub(crate) output_level: i32,
    /// The highest level of the tree.
    pub(crate) max_level: i32,
    /// Merged rows are written without deletes.
    pub(crate) drop_delete: bool,
    /// Smaller files are merged with their neighbours, bytes.
    pub(crate) small_file_bytes: u64,
    /// Whether a file must be rewritten whatever its level: a forced rewrite, or rows in it have expired.
    pub(crate) must_rewrite: &'a (dyn Fn(&DataFileMeta) -> bool + Sync),
    /// Which steps look for changes.
    pub(crate) changelog: &'a ChangelogRules,
    /// The formats of new files.
    pub(crate) formats: &'a dyn Fn(i32) -> FileFormat,
}

impl StepRules<'_> {
    /// Merges these sections.
    pub(crate) fn rewrite(&self, sections: Vec<Section>) -> CompactStep {
        let files = sections.iter().flatten().flat_map(SortedRun::files);
        CompactStep::Rewrite {
            changelog: self.changelog.rewrites(self.output_level, files.map(AsRef::as_ref)),
            drop_delete: self.drop_delete,
            sections,
        }
    }

    /// Merges a file alone.
    pub(crate) fn rewrite_alone(&self, file: &Arc<DataFileMeta>) -> CompactStep {
        self.rewrite(vec![vec![SortedRun::from_single(Arc::clone(file))]])
    }

    /// What is done with a file that meets no other; `None`: it stays.
    fn upgrade(&self, file: &Arc<DataFileMeta>) -> Option<CompactStep> {
        if (self.output_level == self.max_level && file.may_have_deletes()) || (self.must_rewrite)(file) {
            return Some(self.rewrite_alone(file));
        }
        if file.level == self.output_level {
            return None;
        }
        Some(match self.changelog.upgrade(self.output_level, file, self.formats) {
            UpgradeStrategy::ChangelogWithRewrite => CompactStep::Rewrite {
                sections: vec![vec![SortedRun::from_single(Arc::clone(file))]],
                // Others than these may be needed still: the file was not to be rewritten for their sake.
                drop_delete: self.changelog.lookup.deletion_vector,
                changelog: true,
            },
            strategy => CompactStep::Upgrade {
                file: Arc::clone(file),
                changelog: strategy == UpgradeStrategy::ChangelogNoRewrite,
            },
        })
    }
}

/// The steps of a compaction of `files`.
///
/// Overlapping files are merged. A file alone is merged with its neighbours if it is small and has company, else upgraded: by
/// metadata, but rewritten on the highest level if it may hold deletes (an unknown count may), or where the changelog asks for it. A
/// file that is on the output level already and needs none of this stays. Nothing is skipped over, so that outputs never overlap.
///
/// Errors: `Corrupt` when a file's key bounds cannot be read. Source: `org.apache.paimon.mergetree.compact.MergeTreeCompactTask`.
pub(crate) fn plan_steps(
    files: &[Arc<DataFileMeta>],
    keys: &KeyOrder,
    rules: &StepRules<'_>,
) -> Result<Vec<CompactStep>, LsmError> {
    let mut steps = Vec::new();
    let mut candidate: Vec<Section> = Vec::new();
    for section in keys.sections(files)? {
        let [run] = section.as_slice() else {
            candidate.push(section);
            continue;
        };
        for file in run.files() {
            if file_bytes(file) < rules.small_file_bytes {
                candidate.push(vec![SortedRun::from_single(Arc::clone(file))]);
            } else {
                flush(&mut candidate, rules, &mut steps);
                steps.extend(rules.upgrade(file));
            }
        }
    }
    flush(&mut candidate, rules, &mut steps);
    Ok(steps)
}

/// Merges the candidates; one that is a single run has nothing to be merged with.
fn flush(candidate: &mut Vec<Section>, rules: &StepRules<'_>, steps: &mut Vec<CompactStep>) {
    match std::mem::take(candidate).as_slice() {
        [] => {}
        [section] if section.len() == 1 => {
            let files = section.iter().flat_map(SortedRun::files);
            steps.extend(files.filter_map(|file| rules.upgrade(file)));
        }
        sections => steps.push(rules.rewrite(sections.to_vec())),
    }
}

#[cfg(test)]
mod tests;
