//! What a compaction asks about rows that it does not merge.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::ArrayRef;
use async_trait::async_trait;
use paimon_format::dv::DeletionVector;
use paimon_format::kv::{Keys, KvSchema};
use paimon_format::meta::DataFileMeta;
use paimon_merge::changelog::{Hits, LookupNeed};

use crate::LsmError;
use crate::levels::LevelsView;

mod strategy;

pub use strategy::LookupStrategy;

/// Keys to look up: ascending and distinct.
#[derive(Clone, Debug)]
pub struct SortedKeys {
    /// The schema whose key they are; records that are found have it.
    pub schema: Arc<KvSchema>,
    /// The keys, normalized.
    pub keys: Keys,
    /// The keys as columns, in the order of [`KvSchema::key`].
    pub columns: Vec<ArrayRef>,
}

/// A bucket at the moment a compaction began.
#[derive(Clone, Debug)]
pub struct LookupView {
    /// Its files.
    pub levels: LevelsView,
    /// Rows that are deleted, by file name: a hit on one of them is no hit, the search goes on below.
    pub deleted: Arc<HashMap<String, Arc<DeletionVector>>>,
}

/// Old rows of keys that are absent from a merge.
///
/// Source: `org.apache.paimon.mergetree.LookupLevels`.
#[async_trait]
pub trait LookupSource: Debug + Send + Sync {
    /// The newest row of each key on the levels from `start_level` on, level by level, first hit wins. A retract is a hit.
    ///
    /// If records are asked for that have more than `max_bytes` together, the answers are for the first keys only: as many as have fewer, but
    /// one at least. The caller asks again for the rest, once it is done with these.
    ///
    /// Errors: those of the files; nothing is changed by them.
    async fn lookup(
        &self,
        keys: &SortedKeys,
        view: &LookupView,
        start_level: i32,
        need: LookupNeed,
        max_bytes: u64,
    ) -> Result<Hits, LsmError>;

    /// Sees outputs of a compaction before they are reported; may add sidecars to them (`extra_files`).
    ///
    /// Errors fail the compaction, whose outputs and their sidecars are then deleted, as [`KvFiles`](paimon_format::kv::KvFiles) does it; those
    /// of a call that fails delete nothing but what it made itself.
    async fn written(&self, files: Vec<DataFileMeta>) -> Result<Vec<DataFileMeta>, LsmError>;

    /// These files have left the tree; what is cached of them may go.
    fn dropped(&self, files: &[Arc<DataFileMeta>]);
}
