//! What every compaction strategy must keep.

use super::runs::{print_runs, run};
use crate::levels::LevelSortedRun;
use crate::pick::{CompactStrategy, CompactUnit, PickContext};

/// Checks a strategy on generated trees: after each pick the tree still has its newest data on top.
///
/// `make` gives a fresh strategy, which then sees a growing tree: a level-0 run at a time, every pick applied. Checked at
/// every pick: the unit is a prefix of the runs, whole; it is not empty; its output level is at least 1, at most the highest,
/// below the level of the first run left out, and the highest when no run is left out; each level above 0 keeps one run.
/// Picking again without new data comes to an end.
///
/// Errors: the tree, the pick, and the rule it breaks.
pub fn check_strategy(mut make: impl FnMut() -> Box<dyn CompactStrategy>) -> Result<(), String> {
    let mut random = SplitMix(0x5eed);
    for tree in 0..400 {
        let mut strategy = make();
        let num_levels = 2 + random.below(7) as i32;
        let mut runs: Vec<LevelSortedRun> = Vec::new();
        for flush in 0..40 {
            // Sizes of about 2^0 to 2^20, and a few equal ones.
            let bits = random.below(21);
            let size = if bits == 20 { 10 } else { random.below(2 << bits) };
            runs.insert(0, run(flush, 0, size as i64));
            let context = PickContext {
                num_levels,
                now_ms: (tree * 40 + flush as i64) * 1000,
                local_hour: random.below(24) as u8,
            };
            settle(&mut *strategy, &mut runs, &context)?;
        }
    }
    Ok(())
}

/// Picks and applies until there is nothing to do.
fn settle(
    strategy: &mut dyn CompactStrategy,
    runs: &mut Vec<LevelSortedRun>,
    context: &PickContext,
) -> Result<(), String> {
    for _ in 0..100 {
        let Some(unit) = strategy.pick(runs, context) else {
            return Ok(());
        };
        if unit.is_no_op() {
            return Ok(());
        }
        let before = print_runs(runs);
        let broken = |rule: &str| {
            format!(
                "{rule}\n  tree: {before}\n  levels: {}\n  pick: {unit:?}",
                context.num_levels
            )
        };
        check_unit(&unit, runs, context).map_err(|rule| broken(&rule))?;
        *runs = apply(runs, &unit);
    }
    Err(format!(
        "picking without new data does not come to an end\n  tree: {}",
        print_runs(runs)
    ))
}

fn check_unit(unit: &CompactUnit, runs: &[LevelSortedRun], context: &PickContext) -> Result<(), String> {
    let prefix = runs
        .get(..unit.runs)
        .ok_or("the unit counts more runs than there are")?;
    let files = prefix.iter().flat_map(|run| run.run.files());
    if !files.clone().all(|file| unit.files.contains(file)) || files.count() != unit.files.len() {
        return Err("the files are not those of the newest runs".into());
    }
    if !(1..=context.max_level()).contains(&unit.output_level) {
        return Err("the output level must be at least 1 and at most the highest".into());
    }
    match runs.get(unit.runs) {
        Some(next) if unit.output_level >= next.level => {
            Err("the output level must be below the level of the first run left out".into())
        }
        None if unit.output_level != context.max_level() => {
            Err("a unit of all runs must go to the highest level".into())
        }
        _ => Ok(()),
    }
}

/// The tree after the unit is merged into one run as large as its inputs.
pub(crate) fn apply(runs: &[LevelSortedRun], unit: &CompactUnit) -> Vec<LevelSortedRun> {
    let size: i64 = unit.files.iter().map(|file| file.file_size).sum();
    let rest = runs.get(unit.runs..).unwrap_or_default();
    let mut after = vec![run(rest.len(), unit.output_level, size)];
    after.extend_from_slice(rest);
    after
}

/// A small generator with a fixed seed: the check is the same at every run.
struct SplitMix(u64);

impl SplitMix {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}
