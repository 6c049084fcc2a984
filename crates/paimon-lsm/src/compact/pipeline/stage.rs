//! Which stage merges, and what passes it by.

use std::collections::BTreeMap;
use std::sync::Arc;

use paimon_format::kv::KvSchema;
use paimon_merge::MergeError;
use paimon_merge::changelog::{
    FirstRowMergeFunctionWrapper, FullChangelogMergeFunctionWrapper, LookupChangelogMergeFunctionWrapper,
    LookupMergeFunction, MergeStage, ReducerMergeFunctionWrapper,
};
use paimon_merge::engine::MergeEngine;
use paimon_merge::plan::PassRule;

use super::StageKind;
use crate::levels::{Section, SortedRun};

/// The stage of this kind.
///
/// Errors: those of the engine's kernel.
pub(super) fn of_kind(
    kind: &StageKind,
    shared: &Arc<dyn MergeEngine>,
    schema: &Arc<KvSchema>,
) -> Result<Box<dyn MergeStage>, MergeError> {
    let engine = &**shared;
    Ok(match kind {
        StageKind::Plain => plain(engine, schema)?,
        StageKind::Lookup => plain(&*LookupMergeFunction::wrap(Arc::clone(shared)), schema)?,
        StageKind::LookupChangelog(changelog) => Box::new(LookupChangelogMergeFunctionWrapper::new(
            engine,
            schema,
            changelog.as_ref(),
        )?),
        StageKind::FirstRow(changelog) => {
            Box::new(FirstRowMergeFunctionWrapper::new(engine, schema, changelog.as_ref())?)
        }
        StageKind::FullChangelog { top_level, settings } => Box::new(FullChangelogMergeFunctionWrapper::new(
            engine, schema, *top_level, settings,
        )?),
    })
}

/// The stage that merges and tells nothing.
///
/// Errors: those of the engine's kernel.
pub(super) fn plain(engine: &dyn MergeEngine, schema: &Arc<KvSchema>) -> Result<Box<dyn MergeStage>, MergeError> {
    Ok(Box::new(ReducerMergeFunctionWrapper::new(engine, schema)?))
}

/// Which rows pass, by level: asked once of the stage, which is away on the CPU pool later.
#[derive(Clone, Debug)]
pub(super) struct Passing {
    /// `None`: all.
    levels: Option<Arc<BTreeMap<i32, bool>>>,
}

impl Passing {
    /// Every single version passes.
    pub(super) fn all() -> Self {
        Self { levels: None }
    }

    /// What a stage says about the levels of these sections.
    pub(super) fn of(stage: &dyn MergeStage, sections: &[Section]) -> Self {
        let files = sections.iter().flatten().flat_map(SortedRun::files);
        let levels = files.map(|file| (file.level, stage.passes(file.level)));
        Self {
            levels: Some(Arc::new(levels.collect())),
        }
    }

    /// Whether all rows of a run pass.
    pub(super) fn run(&self, run: &SortedRun) -> bool {
        let passes = |level| {
            self.levels
                .as_ref()
                .is_none_or(|levels| levels.get(&level) == Some(&true))
        };
        run.files().iter().all(|file| passes(file.level))
    }

    /// The same for a plan.
    pub(super) fn rule(&self) -> PassRule {
        match &self.levels {
            None => Arc::new(|_| true),
            Some(levels) => {
                let levels = Arc::clone(levels);
                Arc::new(move |level| levels.get(&level) == Some(&true))
            }
        }
    }
}
