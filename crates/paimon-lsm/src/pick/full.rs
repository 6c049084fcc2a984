//! Full compaction on demand.

use std::sync::Arc;

use paimon_format::meta::DataFileMeta;

use super::{CompactUnit, LevelSortedRun, PickReason};

/// What a user's full compaction takes: all runs to the highest level of `num_levels`. A bucket that is one run there already has
/// only those files rewritten, each alone, for which `must_rewrite` holds (expired rows, deletion vectors, a forced rewrite);
/// `None`: there are none, or no runs at all.
///
/// Source: `org.apache.paimon.mergetree.compact.CompactStrategy#pickFullCompaction`.
pub fn pick_full_compaction(
    num_levels: i32,
    runs: &[LevelSortedRun],
    must_rewrite: impl Fn(&DataFileMeta) -> bool,
) -> Option<CompactUnit> {
    let max_level = num_levels - 1;
    match runs {
        [] => None,
        [run] if run.level == max_level => {
            let files: Vec<_> = run
                .run
                .files()
                .iter()
                .filter(|file| must_rewrite(file))
                .map(Arc::clone)
                .collect();
            (!files.is_empty()).then_some(CompactUnit {
                output_level: max_level,
                files,
                runs: 1,
                rewrite_each: true,
                reason: PickReason::Full,
            })
        }
        runs => Some(CompactUnit::of_runs(max_level, runs, PickReason::Full)),
    }
}
