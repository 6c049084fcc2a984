//! Level 0 does not stay behind.

use super::{CompactStrategy, CompactUnit, LevelSortedRun, PickContext, UniversalCompaction};

/// Universal compaction that pushes level 0 up when there is nothing else to do: at every pick, or at every n-th.
///
/// Source: `org.apache.paimon.mergetree.compact.ForceUpLevel0Compaction`.
#[derive(Clone, Debug)]
pub struct ForceUpLevel0Compaction {
    universal: UniversalCompaction,
    max_interval: Option<u32>,
    idle_picks: u32,
}

impl ForceUpLevel0Compaction {
    /// `max_interval`: level 0 goes up at every so many picks that found nothing else; `None`: at each of them.
    pub fn new(universal: UniversalCompaction, max_interval: Option<u32>) -> Self {
        Self {
            universal,
            max_interval,
            idle_picks: 0,
        }
    }
}

impl CompactStrategy for ForceUpLevel0Compaction {
    fn pick(&mut self, runs: &[LevelSortedRun], context: &PickContext) -> Option<CompactUnit> {
        if let Some(unit) = self.universal.pick(runs, context) {
            return Some(unit);
        }
        if let Some(interval) = self.max_interval {
            self.idle_picks += 1;
            if self.idle_picks < interval {
                return None;
            }
            self.idle_picks = 0;
        }
        self.universal.force_pick_level0(runs, context)
    }
}
