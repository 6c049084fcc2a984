//! `merge-engine = first-row`: the first version wins, whole.

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_format::types::RowKind;

use super::deduplicate::one_row;
use super::{MergeEngine, MergeEngineFactory, Promises, flag, ignore_delete, refuse_retracts, refused};
use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::kernel::{Kinds, MergeKernel, MergedRows};
use crate::plan::{KeyGroups, RowRef};

const NAME: &str = "first-row";
const HINT: &str = "ignore-delete = true lets it ignore -U and -D rows";

/// Makes [`FirstRow`] engines.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstRowFactory;

/// Keeps the oldest +I or +U. -U and -D rows are refused, or skipped with `ignore-delete`: a key that has nothing else leaves no trace.
///
/// Source: `org.apache.paimon.mergetree.compact.FirstRowMergeFunction`.
#[derive(Clone, Copy, Debug)]
pub struct FirstRow {
    ignore_delete: bool,
}

impl MergeEngineFactory for FirstRowFactory {
    fn name(&self) -> &str {
        NAME
    }

    fn create(
        &self,
        schema: &KvSchema,
        options: &Options,
        _aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError> {
        if schema.sequence.is_some() {
            return Err(MergeError::Invalid(
                "option 'sequence.field': merge engine first-row has no use for it".to_owned(),
            ));
        }
        let producer = options.get("changelog-producer").unwrap_or("none");
        if !["none", "lookup"]
            .iter()
            .any(|name| name.eq_ignore_ascii_case(producer))
        {
            return Err(MergeError::Invalid(format!(
                "option 'changelog-producer' = '{producer}': merge engine first-row knows none and lookup"
            )));
        }
        if flag(options, "deletion-vectors.enabled")? {
            return Err(MergeError::Invalid(
                "option 'deletion-vectors.enabled': merge engine first-row deletes no old rows".to_owned(),
            ));
        }
        Ok(Arc::new(FirstRow {
            ignore_delete: ignore_delete(options)?,
        }))
    }
}

impl MergeEngine for FirstRow {
    fn promises(&self) -> Promises {
        Promises {
            accepts_retract: self.ignore_delete,
            existence_only: true,
            idempotent: true,
            ..Promises::default()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        wanted.to_vec()
    }

    fn check_rows(&self, _rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        match self.ignore_delete {
            true => Ok(()),
            false => refuse_retracts(NAME, HINT, kinds),
        }
    }

    fn kernel(&self, _read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(Box::new(FirstAdd {
            ignore_delete: self.ignore_delete,
            carried: None,
        }))
    }
}

struct FirstAdd {
    ignore_delete: bool,
    /// The first add of an open group's earlier parts: one row, and its kind.
    carried: Option<(RecordBatch, RowKind)>,
}

impl FirstAdd {
    fn first(&self, kinds: &Kinds<'_>, versions: &[RowRef]) -> Result<Option<(RowRef, RowKind)>, MergeError> {
        let mut first = None;
        for &row in versions {
            let kind = kinds.get(row);
            if kind.is_retract() && !self.ignore_delete {
                return Err(refused(NAME, kind, HINT));
            }
            if kind.is_add() && first.is_none() {
                first = Some((row, kind));
            }
        }
        Ok(first)
    }
}

impl MergeKernel for FirstAdd {
    fn merge(&mut self, groups: &KeyGroups<'_>, out: &mut MergedRows) -> Result<(), MergeError> {
        let kinds = Kinds::of(groups);
        let closed = groups.len() - usize::from(groups.open);
        for (group, versions) in groups.iter().enumerate() {
            let first = self.first(&kinds, versions)?;
            // Only the first group can be one that goes on.
            let carried = self.carried.take();
            if group < closed {
                match (carried, first) {
                    (Some((made, kind)), _) => {
                        let row = RowRef {
                            batch: groups.sources.len() as u32,
                            row: 0,
                        };
                        out.push(row, kind, group);
                        out.made = Some(made);
                    }
                    (None, Some((row, kind))) => out.push(row, kind, group),
                    (None, None) => {}
                }
            } else {
                self.carried = carried.or_else(|| {
                    let (row, kind) = first?;
                    Some((one_row(groups.sources, row)?, kind))
                });
            }
        }
        Ok(())
    }
}
