//! Which compactions make a changelog, and which files must be read for it.

use paimon_format::kv::FileFormat;
use paimon_format::meta::DataFileMeta;
use paimon_format::options::{OptionEnum, Options};
use serde::{Deserialize, Serialize};

use crate::LsmError;
use crate::lookup::LookupStrategy;

/// Where a table's changelog comes from: `changelog-producer`.
///
/// Source: `org.apache.paimon.CoreOptions.ChangelogProducer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangelogProducer {
    /// There is none.
    #[default]
    None,
    /// What is written, unmerged, at every flush.
    Input,
    /// Compactions that take files off level 0 look old rows up.
    Lookup,
    /// Compactions to the top level compare it with what comes.
    FullCompaction,
}

impl OptionEnum for ChangelogProducer {
    const VALUES: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("input", Self::Input),
        ("lookup", Self::Lookup),
        ("full-compaction", Self::FullCompaction),
    ];
}

impl ChangelogProducer {
    /// From a table's options. Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options) -> Result<Self, LsmError> {
        Ok(options.parse_enum("changelog-producer")?.unwrap_or_default())
    }
}

/// What happens to a file that has no others to be merged with.
///
/// Source: `org.apache.paimon.mergetree.compact.ChangelogMergeTreeRewriter.UpgradeStrategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "Java's names")]
pub(crate) enum UpgradeStrategy {
    /// Its level changes, nothing is read.
    NoChangelogNoRewrite,
    /// It is read for what it changes; its level changes.
    ChangelogNoRewrite,
    /// It is read for what it changes, and merged with what is looked up.
    ChangelogWithRewrite,
}

/// Decides which steps of a compaction look for changes.
///
/// Source: `org.apache.paimon.mergetree.compact.{LookupMergeTreeCompactRewriter, FullChangelogMergeTreeCompactRewriter}`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangelogRules {
    pub(crate) producer: ChangelogProducer,
    pub(crate) lookup: LookupStrategy,
    /// The newest version is the result, and the newest is what was written last.
    pub(crate) newest_alone: bool,
    /// `num-levels` - 1. The tree may have more levels.
    pub(crate) top_level: i32,
}

impl ChangelogRules {
    /// Whether merging these files to `output_level` looks for changes.
    pub(crate) fn rewrites<'a>(&self, output_level: i32, mut files: impl Iterator<Item = &'a DataFileMeta>) -> bool {
        match self.producer {
            ChangelogProducer::FullCompaction => output_level == self.top_level,
            _ if self.lookup.need_lookup() => output_level != 0 && files.any(|file| file.level == 0),
            _ => false,
        }
    }

    /// What is done with a file that needs no merging and is not on `output_level`. `format`: that of new
    /// files by level.
    pub(crate) fn upgrade(
        &self,
        output_level: i32,
        file: &DataFileMeta,
        format: &dyn Fn(i32) -> FileFormat,
    ) -> UpgradeStrategy {
        let to_top = output_level == self.top_level;
        if self.producer == ChangelogProducer::FullCompaction {
            return match to_top {
                true => UpgradeStrategy::ChangelogNoRewrite,
                false => UpgradeStrategy::NoChangelogNoRewrite,
            };
        }
        if !self.lookup.need_lookup() || file.level != 0 {
            return UpgradeStrategy::NoChangelogNoRewrite;
        }
        if format(0) != format(output_level) || (self.lookup.deletion_vector && file.may_have_deletes()) {
            UpgradeStrategy::ChangelogWithRewrite
        } else if to_top || self.newest_alone {
            UpgradeStrategy::ChangelogNoRewrite
        } else {
            UpgradeStrategy::ChangelogWithRewrite
        }
    }
}
