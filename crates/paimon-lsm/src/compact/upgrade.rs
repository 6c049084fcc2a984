//! Which files of a unit are merged, which only change their level, and which stay.

use std::sync::Arc;

use paimon_format::meta::DataFileMeta;

use crate::LsmError;
use crate::levels::{KeyOrder, Section, SortedRun, file_bytes};

/// One step of a compaction. Steps are in key order; their outputs never overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactStep {
    /// Merge these sections, one after another, into one row of files on the output level.
    Rewrite(Vec<Section>),
    /// Change this file's level.
    Upgrade(Arc<DataFileMeta>),
}

/// What decides between the steps.
pub struct StepRules<'a> {
    /// Where outputs go.
    pub output_level: i32,
    /// The highest level of the tree.
    pub max_level: i32,
    /// Smaller files are merged with their neighbours, bytes.
    pub small_file_bytes: u64,
    /// Whether a file must be rewritten whatever its level: a forced rewrite, or rows in it have expired.
    pub must_rewrite: &'a (dyn Fn(&DataFileMeta) -> bool + Sync),
}

/// The steps of a compaction of `files`.
///
/// Overlapping files are merged. A file alone is merged with its neighbours if it is small and has company, else upgraded: by
/// metadata, but rewritten on the highest level if it may hold deletes (an unknown count may). A file that is on the output level
/// already and needs none of this stays. Nothing is skipped over, so that outputs never overlap.
///
/// Errors: `Corrupt` when a file's key bounds cannot be read. Source: `org.apache.paimon.mergetree.compact.MergeTreeCompactTask`.
pub fn plan_steps(
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
                steps.extend(upgrade(file, rules));
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
            steps.extend(files.filter_map(|file| upgrade(file, rules)));
        }
        sections => steps.push(CompactStep::Rewrite(sections.to_vec())),
    }
}

fn upgrade(file: &Arc<DataFileMeta>, rules: &StepRules<'_>) -> Option<CompactStep> {
    let may_hold_deletes = file.delete_row_count.is_none_or(|deletes| deletes > 0);
    if (rules.output_level == rules.max_level && may_hold_deletes) || (rules.must_rewrite)(file) {
        Some(CompactStep::Rewrite(vec![vec![SortedRun::from_single(Arc::clone(
            file,
        ))]]))
    } else {
        (file.level != rules.output_level).then(|| CompactStep::Upgrade(Arc::clone(file)))
    }
}

#[cfg(test)]
mod tests;
