//! `merge-engine = deduplicate`: the last version wins, whole.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::{KvBatch, KvSchema};
use paimon_format::options::Options;
use paimon_format::types::RowKind;

use super::{MergeEngine, MergeEngineFactory, Promises, ignore_delete};
use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::kernel::{Kinds, MergeKernel, MergedRows};
use crate::plan::{KeyGroups, RowRef};

/// Makes [`Deduplicate`] engines; the default of tables with a primary key.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeduplicateFactory;

/// Keeps the newest version with its kind: a delete stays, as a tombstone, until no older version can exist. With `ignore-delete` retracts
/// are skipped, those in old files too: a key that only they deleted comes back.
///
/// Source: `org.apache.paimon.mergetree.compact.DeduplicateMergeFunction`.
#[derive(Clone, Copy, Debug)]
pub struct Deduplicate {
    ignore_delete: bool,
}

impl MergeEngineFactory for DeduplicateFactory {
    fn name(&self) -> &str {
        "deduplicate"
    }

    fn create(
        &self,
        _schema: &KvSchema,
        options: &Options,
        _aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError> {
        Ok(Arc::new(Deduplicate {
            ignore_delete: ignore_delete(options)?,
        }))
    }
}

impl MergeEngine for Deduplicate {
    fn promises(&self) -> Promises {
        Promises {
            // With ignore-delete the newest version may be one that does not count.
            newest_wins: !self.ignore_delete,
            accepts_retract: true,
            idempotent: true,
            ..Promises::default()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        wanted.to_vec()
    }

    fn kernel(&self, _read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(if self.ignore_delete {
            Box::new(LastAdd { carried: None })
        } else {
            Box::new(Last)
        })
    }
}

/// The last version. An open group needs no state: its last part has the last version.
struct Last;

impl MergeKernel for Last {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        let kinds = Kinds::of(groups);
        let closed = groups.len() - usize::from(groups.open);
        out.reserve(closed);
        for (group, versions) in groups.iter().take(closed).enumerate() {
            if let Some(&row) = versions.last() {
                out.push(row, kinds.get(row), group);
            }
        }
        Ok(())
    }
}

/// The last version that is an add.
struct LastAdd {
    /// The last add of an open group's earlier parts: one row, and its kind.
    carried: Option<(RecordBatch, RowKind)>,
}

impl MergeKernel for LastAdd {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        let kinds = Kinds::of(groups);
        let closed = groups.len() - usize::from(groups.open);
        for (group, versions) in groups.iter().enumerate() {
            let mut last = None;
            for &row in versions.iter().rev() {
                let kind = kinds.get(row);
                if kind.is_add() {
                    last = Some((row, kind));
                    break;
                }
            }
            // Only the first group can be one that goes on.
            let carried = self.carried.take();
            if group < closed {
                match (last, carried) {
                    (Some((row, kind)), _) => out.push(row, kind, group),
                    (None, Some((made, kind))) => {
                        let row = RowRef {
                            batch: groups.sources.len() as u32,
                            row: 0,
                        };
                        out.push(row, kind, group);
                        out.made = Some(made);
                    }
                    (None, None) => {}
                }
            } else {
                self.carried = last
                    .and_then(|(row, kind)| Some((one_row(groups.sources, row)?, kind)))
                    .or(carried);
            }
        }
        Ok(())
    }
}

/// A copy of one row, so that its batch is not kept for it.
pub(super) fn one_row(sources: &[KvBatch], row: RowRef) -> Option<RecordBatch> {
    let columns = &sources.get(row.batch as usize)?.columns;
    arrow_select::interleave::interleave_record_batch(&[columns], &[(0, row.row as usize)]).ok()
}
