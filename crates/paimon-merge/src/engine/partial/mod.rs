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

use paimon_format::kv::KvSchema;
use paimon_format::options::Options;

use super::{MergeEngine, MergeEngineFactory, Promises};
use crate::MergeError;
use crate::aggregate::Aggregators;
use crate::kernel::MergeKernel;
use kernel::Kernel;
use settings::{DeleteRule, Settings};

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
    accepts_retract: bool,
}

impl MergeEngineFactory for PartialUpdateFactory {
    fn name(&self) -> &str {
        "partial-update"
    }

    fn create(
        &self,
        schema: &KvSchema,
        options: &Options,
        aggregators: &Aggregators,
    ) -> Result<Arc<dyn MergeEngine>, MergeError> {
        let settings = Settings::new(schema, options, aggregators)?;
        let columns = settings.columns(schema)?;
        let accepts_retract = settings.deletes != DeleteRule::Refuse
            && columns
                .iter()
                .filter_map(|column| column.merge())
                .all(|merge| merge.accepts_retract());
        Ok(Arc::new(PartialUpdate {
            settings: Arc::new(settings),
            accepts_retract,
        }))
    }
}

impl MergeEngine for PartialUpdate {
    fn promises(&self) -> Promises {
        Promises {
            accepts_retract: self.accepts_retract,
            deletes_need_older: self.settings.removes(),
            ..Promises::default()
        }
    }

    fn needs(&self, wanted: &[usize]) -> Vec<usize> {
        self.settings.needs(wanted)
    }

    fn kernel(&self, read: &Arc<KvSchema>) -> Result<Box<dyn MergeKernel>, MergeError> {
        Ok(Box::new(Kernel::new(&self.settings, Arc::clone(read))?))
    }
}
