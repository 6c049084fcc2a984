//! What is merged, and how.

use std::collections::HashMap;
use std::sync::Arc;

use paimon_format::dv::DeletionVector;
use paimon_format::kv::{ExpiredBefore, KeyRange};
use paimon_format::predicate::Predicate;
use serde::{Deserialize, Serialize};

use crate::levels::Section;

/// One merge: sections in key order with what is known about their rows.
#[derive(Clone, Debug, Default)]
pub struct MergeJob {
    /// Ascending, disjoint in keys. Runs of a section overlap; a run's files are in key order.
    pub sections: Vec<Section>,
    /// Leaves out merged rows of kind -U and -D: nothing older can exist.
    pub drop_delete: bool,
    /// Record-level expire: rows older than this are dropped before merging.
    pub expired_before: Option<ExpiredBefore>,
    /// Row positions that deletion vectors hide, by file name.
    pub deleted: HashMap<String, Arc<DeletionVector>>,
    /// Keys wanted: prunes what is read, rows outside may still come.
    pub keys: KeyRange,
    /// What merged rows must pass to be wanted: prunes what is read of sections of one run, where no merge changes a row. Rows that do not
    /// pass may still come.
    pub filter: Option<Arc<Predicate>>,
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
