//! What is merged, and how.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::dv::DeletionVector;
use paimon_format::kv::{ExpiredBefore, KeyRange};
use paimon_format::predicate::Predicate;
use paimon_merge::changelog::{ChangelogSettings, LookupNeed};
use serde::{Deserialize, Serialize};

use crate::compact::KeyBounds;
use crate::levels::Section;
use crate::lookup::{LookupSource, LookupView};

/// One merge: sections in key order with what is known about their rows.
#[derive(Clone, Debug, Default)]
pub struct MergeJob {
    /// Ascending, disjoint in keys. Runs of a section overlap; a run's files are in key order.
    pub sections: Vec<Section>,
    /// How versions of a key become one row.
    pub stage: StageKind,
    /// Where old rows are looked up; `None`: the stage asks for none.
    pub lookup: Option<JobLookup>,
    /// Leaves out merged rows of kind -U and -D: nothing older can exist.
    pub drop_delete: bool,
    /// Record-level expire: rows older than this are dropped before merging.
    pub expired_before: Option<ExpiredBefore>,
    /// Row positions that deletion vectors hide, by file name.
    pub deleted: HashMap<String, Arc<DeletionVector>>,
    /// Keys wanted: prunes what is read, rows outside may still come.
    pub keys: KeyRange,
    /// Keys wanted, exactly.
    pub bounds: KeyBounds,
    /// What merged rows must pass to be wanted: prunes what is read of sections of one run, where no merge changes a row. Rows that do not
    /// pass may still come.
    pub filter: Option<Arc<Predicate>>,
}

/// Which [`MergeStage`](paimon_merge::changelog::MergeStage) merges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StageKind {
    /// All versions: [`ReducerMergeFunctionWrapper`](paimon_merge::changelog::ReducerMergeFunctionWrapper).
    #[default]
    Plain,
    /// Rows above level 0 are complete states, of which the lowest level counts:
    /// [`LookupMergeFunction`](paimon_merge::changelog::LookupMergeFunction).
    Lookup,
    /// As `Lookup`, and the old rows of keys from level 0 are looked up. `None`: changes are not told.
    /// [`LookupChangelogMergeFunctionWrapper`](paimon_merge::changelog::LookupChangelogMergeFunctionWrapper).
    LookupChangelog(Option<ChangelogSettings>),
    /// Keys that are there already are skipped. `None`: changes are not told.
    /// [`FirstRowMergeFunctionWrapper`](paimon_merge::changelog::FirstRowMergeFunctionWrapper).
    FirstRow(Option<ChangelogSettings>),
    /// The top level against the merged row:
    /// [`FullChangelogMergeFunctionWrapper`](paimon_merge::changelog::FullChangelogMergeFunctionWrapper).
    FullChangelog {
        /// The level that holds the old rows.
        top_level: i32,
        /// Which changes are told.
        settings: ChangelogSettings,
    },
}

/// Where the old rows of a job are looked up, and what is asked.
#[derive(Clone, Debug)]
pub struct JobLookup {
    /// Who knows them.
    pub source: Arc<dyn LookupSource>,
    /// Where.
    pub view: LookupView,
    /// The lowest level that is searched.
    pub start_level: i32,
    /// What is asked.
    pub need: LookupNeed,
}

/// Limits of a merge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineSettings {
    /// `sort-spill-threshold`: a section with more runs than this is merged in passes. At least 2.
    pub sort_spill_threshold: usize,
    /// Rows an output batch, roughly.
    pub output_rows: usize,
    /// Keys a block of merging: what one call on the CPU pool does.
    pub block_keys: usize,
    /// Rows a batch that is read.
    pub read_rows: usize,
}

impl Default for PipelineSettings {
    /// Nine runs (the default number of runs that stops writers, and one), batches of 64 K rows, blocks of 8 K keys.
    fn default() -> Self {
        Self {
            sort_spill_threshold: 9,
            output_rows: 64 << 10,
            block_keys: 8192,
            read_rows: 8192,
        }
    }
}
