//! `merge-engine = partial-update`: every column takes its newest value.
//!
//! | File | What it holds |
//! |---|---|
//! | `settings` | the options, checked: sequence groups, functions, what a delete does |
//! | `groups` | which version a sequence group takes |
//! | `removals` | which versions a removing delete leaves |
//! | `kernel` | the merge of a block |

mod groups;
mod kernel;
mod removals;
mod settings;

use std::sync::Arc;

use arrow_array::RecordBatch;
use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_format::types::RowKind;

use super::checks::{CheckedColumn, NoWayBack};
use super::{MergeEngine, MergeEngineFactory, Promises, refuse_retracts, refused};
use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::kernel::MergeKernel;
use kernel::Kernel;
use settings::{Column, DeleteRule, Settings};

const NAME: &str = "partial-update";
const HINT: &str = "set ignore-delete, partial-update.remove-record-on-delete, or sequence groups with \
                    partial-update.remove-record-on-sequence-group";

/// Makes [`PartialUpdate`] engines.
#[derive(Clone, Copy, Debug, Default)]
pub struct PartialUpdateFactory;

/// Merges the columns of a key's versions, each by its own order.
///
/// A column outside of all sequence groups takes its newest value that is not null. A column of a group takes the value, null or not, of
/// the version that is newest by the group's sequence fields (equal: the later one); a version whose sequence fields are all null says
/// nothing about the group. A column of a group may have an aggregate function, which older versions join late.
///
/// -U and -D rows are refused, or ignored (`ignore-delete`), or remove the key (`partial-update.remove-record-on-delete`: -D), or take
/// back their groups, which become null; a -D with a newer sequence removes the key in groups of
/// `partial-update.remove-record-on-sequence-group`. Whatever a delete's values are, no later row of the key inherits them, with one
/// exception: an aggregated column begins with the value of a retract that is the oldest version in its merge, as in Java. A -D of a group that
/// removes records may be late, and is taken back then; columns whose function cannot do that keep their value.
///
/// Source: `org.apache.paimon.mergetree.compact.PartialUpdateMergeFunction`.
#[derive(Clone, Debug)]
pub struct PartialUpdate {
    settings: Arc<Settings>,
    /// Groups from which rows cannot be taken back, by columns that do not allow it.
    no_way_back: Vec<(usize, NoWayBack)>,
    /// Columns of groups.
    checked: Vec<(usize, CheckedColumn)>,
}

impl MergeEngineFactory for PartialUpdateFactory {
    fn name(&self) -> &str {
        NAME
    }

    fn create(
        &self,
        schema: &KvSchema,
        options: &Options,
        aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError> {
        let settings = Settings::new(schema, options, aggregators)?;
        let (mut no_way_back, mut checked) = (Vec::new(), Vec::new());
        for (position, (column, field)) in settings.columns(schema)?.iter().zip(&schema.fields).enumerate() {
            let Some(group) = column.protecting() else { continue };
            no_way_back.extend(settings.no_way_back(column, field).map(|why| (group, why)));
            if let Column::Aggregated(_, merge) = column {
                let check = merge.value_check();
                checked.extend(check.map(|check| (group, CheckedColumn { position, check })));
            }
        }
        Ok(Arc::new(PartialUpdate {
            settings: Arc::new(settings),
            no_way_back,
            checked,
        }))
    }
}

impl PartialUpdate {
    /// Whether a row's values are merged, column by column; else it is ignored, or removes the record.
    fn is_merged(&self, kind: RowKind, rows: &RecordBatch, row: usize) -> bool {
        kind.is_add()
            || self.settings.deletes == DeleteRule::Groups
                && !(kind == RowKind::Delete && self.settings.may_remove(rows, row))
    }
}

impl MergeEngine for PartialUpdate {
    fn promises(&self) -> Promises {
        Promises {
            accepts_retract: self.settings.deletes != DeleteRule::Refuse
                && self.no_way_back.iter().all(|(_, column)| column.deletes_only),
            deletes_need_older: self.settings.removes(),
            ..Promises::default()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        self.settings.needs(wanted)
    }

    fn may_refuse(&self, kind: RowKind) -> bool {
        let is_refused = self.settings.deletes == DeleteRule::Refuse || !self.no_way_back.is_empty();
        !self.checked.is_empty() || (kind.is_retract() && is_refused)
    }

    fn check_rows(&self, rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        if self.settings.deletes == DeleteRule::Refuse {
            refuse_retracts(NAME, HINT, kinds)?;
        }
        if self.no_way_back.is_empty() && self.checked.is_empty() {
            return Ok(());
        }
        for (row, &kind) in kinds.iter().enumerate() {
            if !self.is_merged(kind, rows, row) {
                continue;
            }
            let mut no_way_back = self.no_way_back.iter().filter(|(_, column)| column.holds(kind));
            if let Some((_, column)) = no_way_back.find(|(group, _)| self.settings.tells(*group, rows, row)) {
                return Err(refused(NAME, kind, &column.why));
            }
            let mut checked = self
                .checked
                .iter()
                .filter(|(group, _)| self.settings.tells(*group, rows, row));
            checked.try_for_each(|(_, column)| column.check(rows, row))?;
        }
        Ok(())
    }

    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(Box::new(Kernel::new(&self.settings, Arc::clone(read))?))
    }
}
