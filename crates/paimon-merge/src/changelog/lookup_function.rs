//! Merging where a row above level 0 is the whole state of its key.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::KvSchema;
use paimon_format::types::RowKind;

use super::selection::{Candidates, Selection, check_whole, kind};
use crate::MergeError;
use crate::engine::{MergeEngine, Promises};
use crate::kernel::{MergeKernel, MergedRows};
use crate::plan::KeyGroups;

/// An engine for tables whose compactions look old rows up. There a row above level 0 is the whole state of its key: of the rows above
/// level 0 only the one on the lowest level counts, whatever its sequence, and it is merged with those of level 0. (A sum over levels 4
/// and 5 would count twice.) A key without rows on level 0 keeps that row as it is.
///
/// For reads of such tables and for their compactions that take no part of level 0. Its kernels need
/// [whole keys](Promises::whole_keys): the versions of one key in one block, at most one a file.
///
/// Source: `org.apache.paimon.mergetree.compact.LookupMergeFunction`; that it finds the row by identity, and loses it when its
/// candidates were spilled, is not followed.
#[derive(Debug)]
pub struct LookupMergeFunction {
    engine: Arc<dyn MergeEngine>,
}

impl LookupMergeFunction {
    /// Wraps an engine. First-row stays as it is: it merges no values.
    pub fn wrap(engine: Arc<dyn MergeEngine>) -> Arc<dyn MergeEngine> {
        match engine.promises().existence_only {
            true => engine,
            false => Arc::new(Self { engine }),
        }
    }
}

impl MergeEngine for LookupMergeFunction {
    fn promises(&self) -> Promises {
        Promises {
            // What a result was made of lies on higher levels, and does not count.
            idempotent: true,
            // A delete and what it removes are in one state.
            deletes_need_older: false,
            whole_keys: true,
            ..self.engine.promises()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        self.engine.needs(wanted)
    }

    fn may_refuse(&self, kind: RowKind) -> bool {
        self.engine.may_refuse(kind)
    }

    fn check_rows(&self, rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        self.engine.check_rows(rows, kinds)
    }

    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(Box::new(LookupKernel {
            kernel: self.engine.kernel(read)?,
            merges_deletes: self.engine.promises().accepts_retract,
            selection: Selection::default(),
        }))
    }
}

struct LookupKernel {
    kernel: Box<dyn MergeKernel>,
    merges_deletes: bool,
    selection: Selection,
}

impl MergeKernel for LookupKernel {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        check_whole(groups)?;
        self.selection.clear();
        for (group, versions) in groups.iter().enumerate() {
            let candidates = Candidates::of(groups.sources, versions);
            match candidates.high {
                Some(high) if !candidates.has_low => {
                    self.selection.settle(group, high, kind(groups.sources, high));
                }
                high => {
                    let counts = |high| self.merges_deletes || kind(groups.sources, high).is_add();
                    let high = high.filter(|&high| counts(high));
                    self.selection.add_candidates(group, groups.sources, versions, high);
                }
            }
        }
        self.selection.merge(self.kernel.as_mut(), groups.sources, out)
    }
}
