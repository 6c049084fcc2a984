//! What a batch read sees of a table.

use paimon_manifest::scan::{LevelRange, ValueFiltering};

use crate::error::Result;
use crate::options::DeletionVectorSettings;
use crate::table::Table;

/// Which levels a batch read sees, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchVisibility {
    /// The levels. Tables that keep old rows from being seen twice when level 0 is compacted hide it until then.
    pub(crate) levels: LevelRange,
    /// Above level 0 a key is visible once: files are read as they are.
    pub(crate) never_merges: bool,
    /// What conditions on values decide about files.
    pub(crate) values: ValueFiltering,
}

impl BatchVisibility {
    /// Of a table with these options. Errors: `Invalid`, `Unsupported`, naming the option.
    ///
    /// Source: `org.apache.paimon.CoreOptions#batchScanSkipLevel0`, `org.apache.paimon.table.source.AbstractBatchTableScan`.
    pub(crate) fn of(table: &Table) -> Result<Self> {
        let vectors = DeletionVectorSettings::from_options(table.options())?;
        let promises = table.merge_engine()?.promises();
        let hides_level0 = match vectors {
            Some(vectors) => !vectors.merge_on_read,
            None => promises.existence_only,
        };
        Ok(Self {
            levels: match hides_level0 {
                true => LevelRange::above_zero(),
                false => LevelRange::all(),
            },
            never_merges: vectors.is_some() || promises.existence_only,
            values: match (hides_level0, promises.newest_wins) {
                (true, _) => ValueFiltering::EachFile,
                (false, true) => ValueFiltering::WholeBucket,
                // Merging that makes new values can make one that passes out of values that do not.
                (false, false) => ValueFiltering::Never,
            },
        })
    }
}

impl Table {
    /// Whether batch reads see rows as soon as they are committed. `false`: only once a compaction has taken them from level 0, as with
    /// deletion vectors (without `deletion-vectors.merge-on-read`) and `first-row`.
    ///
    /// Errors: `Invalid`, `Unsupported`, naming the option.
    pub fn reads_see_level0(&self) -> Result<bool> {
        Ok(BatchVisibility::of(self)?.levels.contains(0))
    }
}
