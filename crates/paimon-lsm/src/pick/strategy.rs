//! Which strategy a table's options ask for.

use serde::{Deserialize, Serialize};

use super::{CompactStrategy, ForceUpLevel0Compaction, UniversalCompaction, UniversalSettings};

/// Whether and when level 0 goes up although universal compaction finds nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForceUpLevel0 {
    /// It may stay.
    #[default]
    Never,
    /// At every such pick (`compaction.force-up-level-0`, `lookup-compact = radical`).
    Radical,
    /// At every n-th such pick (`lookup-compact = gentle`).
    Gentle(u32),
}

/// A strategy as data.
///
/// Source: `org.apache.paimon.mergetree.compact.MergeTreeCompactManagerFactory#createCompactStrategy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategySettings {
    /// Universal compaction.
    pub universal: UniversalSettings,
    /// What is done when it finds nothing.
    pub force_up_level0: ForceUpLevel0,
}

impl StrategySettings {
    /// The strategy, for a tree that was last compacted fully at `last_full_ms` (milliseconds since the epoch), if that is known.
    pub fn strategy(&self, last_full_ms: Option<i64>) -> Box<dyn CompactStrategy> {
        let universal = UniversalCompaction::with_last_full(self.universal.clone(), last_full_ms);
        match self.force_up_level0 {
            ForceUpLevel0::Never => Box::new(universal),
            ForceUpLevel0::Radical => Box::new(ForceUpLevel0Compaction::new(universal, None)),
            ForceUpLevel0::Gentle(interval) => Box::new(ForceUpLevel0Compaction::new(universal, Some(interval))),
        }
    }
}
