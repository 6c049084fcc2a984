//! Whether and what a table looks up.

use paimon_format::options::Options;
use paimon_merge::changelog::LookupNeed;
use paimon_merge::engine::Promises;
use serde::{Deserialize, Serialize};

use crate::LsmError;
use crate::compact::ChangelogProducer;

/// Why a table's compactions look old rows up.
///
/// In such tables every row above level 0 is the complete state of its key, and of two levels the lower one counts: level 0 goes up at
/// every chance, and what leaves it is merged with the old row.
///
/// Source: `org.apache.paimon.lookup.LookupStrategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupStrategy {
    /// The merge engine asks only whether older rows exist (first-row).
    pub is_first_row: bool,
    /// `changelog-producer = lookup`
    pub produce_changelog: bool,
    /// `deletion-vectors.enabled`
    pub deletion_vector: bool,
    /// `force-lookup`
    pub force_lookup: bool,
}

impl LookupStrategy {
    /// What a table's options and merge engine ask for.
    ///
    /// Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options, promises: Promises) -> Result<Self, LsmError> {
        let is_set = |key: &str| Ok::<_, LsmError>(options.bool(key)?.unwrap_or(false));
        Ok(Self {
            is_first_row: promises.existence_only,
            produce_changelog: ChangelogProducer::from_options(options)? == ChangelogProducer::Lookup,
            deletion_vector: is_set("deletion-vectors.enabled")?,
            force_lookup: is_set("force-lookup")?,
        })
    }

    /// Whether compactions look up at all.
    pub fn need_lookup(self) -> bool {
        self.is_first_row || self.produce_changelog || self.deletion_vector || self.force_lookup
    }

    /// What they ask. `newest_alone`: the newest version is the result, and the newest is the one that was written last (deduplicate
    /// without sequence fields): where no changelog is made, the old row's values then do not matter.
    pub fn need(self, newest_alone: bool) -> LookupNeed {
        if self.is_first_row {
            LookupNeed::Existence
        } else if !self.deletion_vector {
            LookupNeed::Value
        } else if self.produce_changelog || !newest_alone {
            LookupNeed::PositionAndValue
        } else {
            LookupNeed::Position
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strategy(options: &[(&str, &str)]) -> LookupStrategy {
        let options: Options = options.iter().copied().collect();
        LookupStrategy::from_options(&options, Promises::default()).unwrap()
    }

    #[test]
    fn each_reason_is_enough() {
        assert!(!strategy(&[]).need_lookup());
        assert!(!strategy(&[("changelog-producer", "input")]).need_lookup());
        assert!(!strategy(&[("changelog-producer", "full-compaction")]).need_lookup());
        for option in [
            ("changelog-producer", "lookup"),
            ("deletion-vectors.enabled", "true"),
            ("force-lookup", "true"),
        ] {
            assert!(strategy(&[option]).need_lookup(), "{option:?}");
        }
        let first_row = Promises {
            existence_only: true,
            ..Promises::default()
        };
        let strategy = LookupStrategy::from_options(&Options::new(), first_row).unwrap();
        assert!(strategy.need_lookup());
        assert_eq!(strategy.need(false), LookupNeed::Existence);
    }

    #[test]
    fn values_are_asked_for_where_they_matter() {
        let dv = ("deletion-vectors.enabled", "true");
        assert_eq!(
            strategy(&[("changelog-producer", "lookup")]).need(true),
            LookupNeed::Value
        );
        assert_eq!(strategy(&[("force-lookup", "true")]).need(false), LookupNeed::Value);
        assert_eq!(strategy(&[dv]).need(true), LookupNeed::Position);
        assert_eq!(strategy(&[dv]).need(false), LookupNeed::PositionAndValue);
        assert_eq!(
            strategy(&[dv, ("changelog-producer", "lookup")]).need(true),
            LookupNeed::PositionAndValue
        );
    }
}
