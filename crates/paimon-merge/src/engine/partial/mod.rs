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

use super::{MergeEngine, MergeEngineFactory, Promises, refuse_retracts, refused};
use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::kernel::MergeKernel;
use kernel::Kernel;
use settings::{DeleteRule, Settings};

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
/// exception: an aggregated column begins with the value of a retract that is the oldest version in its merge, as in Java.
///
/// Source: `org.apache.paimon.mergetree.compact.PartialUpdateMergeFunction`.
#[derive(Clone, Debug)]
pub struct PartialUpdate {
    settings: Arc<Settings>,
    /// Groups from which no row can be taken back, and why: a column's function does not allow it.
    unretractable: Vec<(usize, String)>,
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
        let columns = settings.columns(schema)?;
        Ok(Arc::new(PartialUpdate {
            settings: Arc::new(settings),
            unretractable: columns.iter().filter_map(|column| column.unretractable()).collect(),
        }))
    }
}

impl MergeEngine for PartialUpdate {
    fn promises(&self) -> Promises {
        Promises {
            accepts_retract: self.settings.deletes != DeleteRule::Refuse && self.unretractable.is_empty(),
            deletes_need_older: self.settings.removes(),
            ..Promises::default()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        self.settings.needs(wanted)
    }

    fn check_rows(&self, rows: &RecordBatch, kinds: &[RowKind]) -> Result<(), MergeError> {
        match self.settings.deletes {
            DeleteRule::Ignore | DeleteRule::Remove => Ok(()),
            DeleteRule::Refuse => refuse_retracts(NAME, HINT, kinds),
            DeleteRule::Groups => {
                let retracts = kinds.iter().enumerate().filter(|(_, kind)| kind.is_retract());
                for (row, &kind) in retracts {
                    // What a delete removes is not taken back column by column.
                    if kind == RowKind::Delete && self.settings.may_remove(rows, row) {
                        continue;
                    }
                    let mut groups = self.unretractable.iter();
                    if let Some((_, why)) = groups.find(|(group, _)| self.settings.tells(*group, rows, row)) {
                        return Err(refused(NAME, kind, why));
                    }
                }
                Ok(())
            }
        }
    }

    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(Box::new(Kernel::new(&self.settings, Arc::clone(read))?))
    }
}
