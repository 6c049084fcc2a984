//! Merging without a changelog.

use super::{Hits, MergeStage, StageOutput};
use crate::MergeError;
use crate::engine::MergeEngine;
use crate::kernel::MergeKernel;
use crate::plan::KeyGroups;
use paimon_format::kv::KvSchema;
use std::sync::Arc;

/// The engine alone. A key with one version passes as it is, whatever its kind and level.
///
/// Source: `org.apache.paimon.mergetree.compact.ReducerMergeFunctionWrapper`.
pub struct ReducerMergeFunctionWrapper {
    kernel: Box<dyn MergeKernel>,
    whole_keys: bool,
}

impl ReducerMergeFunctionWrapper {
    /// A stage for batches of `schema`.
    ///
    /// Errors: those of the engine's kernel.
    pub fn new(engine: &dyn MergeEngine, schema: &Arc<KvSchema>) -> Result<Self, MergeError> {
        Ok(Self {
            kernel: engine.kernel(schema)?,
            whole_keys: engine.promises().whole_keys,
        })
    }
}

impl MergeStage for ReducerMergeFunctionWrapper {
    fn passes(&self, _level: i32) -> bool {
        true
    }

    fn whole_keys(&self) -> bool {
        self.whole_keys
    }

    fn missing(&self, _groups: &KeyGroups<'_>) -> Vec<u32> {
        Vec::new()
    }

    fn merge(&mut self, groups: &KeyGroups<'_>, _hits: &Hits, out: &mut StageOutput) -> Result<(), MergeError> {
        self.kernel.merge(groups, &mut out.merged)
    }
}
