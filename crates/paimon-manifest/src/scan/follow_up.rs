//! Which snapshots a streaming reader reads, and what of them.

use paimon_format::options::Options;

use super::filter::LevelRange;
use super::plan::ScanKind;
use crate::error::{ManifestError, Result};
use crate::snapshot::{CommitKind, Snapshot};

/// What of a snapshot tells a streaming reader what changed, and what it sees of the snapshot it starts with.
///
/// Source: `org.apache.paimon.table.source.snapshot.{DeltaFollowUpScanner, ChangelogFollowUpScanner}`,
/// `org.apache.paimon.table.source.DataTableStreamScan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp {
    /// `changelog-producer = none`: new files of APPEND snapshots. COMPACT ones hold the same rows again, OVERWRITE ones do not tell
    /// what changed.
    Delta,
    /// `changelog-producer = input`: changelog files.
    Input,
    /// `changelog-producer = lookup`: changelog files, made when rows leave level 0.
    Lookup,
    /// `changelog-producer = full-compaction`: changelog files, made when rows come to the top level.
    FullCompaction,
}

impl FollowUp {
    /// As the table's `changelog-producer` asks. Errors: `Invalid` for a producer that is none.
    pub fn from_options(options: &Options) -> Result<Self> {
        let producer = options
            .string("changelog-producer")
            .unwrap_or_else(|| "none".to_owned());
        match producer.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::Delta),
            "input" => Ok(Self::Input),
            "lookup" => Ok(Self::Lookup),
            "full-compaction" => Ok(Self::FullCompaction),
            _ => Err(ManifestError::invalid(format!(
                "option 'changelog-producer' = '{producer}': expected one of none, input, full-compaction, lookup"
            ))),
        }
    }

    /// Which of a snapshot's files hold its changes.
    pub fn scan_kind(self) -> ScanKind {
        match self {
            Self::Delta => ScanKind::Delta,
            Self::Input | Self::Lookup | Self::FullCompaction => ScanKind::Changelog,
        }
    }

    /// Whether a snapshot has changes to read; if not, the reader goes on with the next.
    pub fn reads(self, snapshot: &Snapshot) -> bool {
        match self.scan_kind() {
            ScanKind::Changelog => snapshot.changelog_manifest_list.is_some(),
            ScanKind::All | ScanKind::Delta => snapshot.commit_kind == CommitKind::Append,
        }
    }

    /// The levels that a streaming reader sees of the snapshot it starts with: changes of rows on the others are yet to be told.
    /// `max_level`: the highest level of the table, `num-levels` - 1.
    pub fn first_levels(self, max_level: i32) -> LevelRange {
        match self {
            Self::Delta | Self::Input => LevelRange::all(),
            Self::Lookup => LevelRange::above_zero(),
            Self::FullCompaction => LevelRange::exactly(max_level),
        }
    }
}
