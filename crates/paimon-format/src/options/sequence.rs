//! Where the sequence numbers of records come from.

use super::Options;
use crate::FormatError;

/// Where the sequence numbers of records come from: several layers number, note or read them, and must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceSettings {
    /// `sequence.snapshot-ordering`: the records of a flushed file have the id of the snapshot that brings it.
    pub snapshot_ordering: bool,
    /// `write.sequence-number-init-mode` is `snapshot`: snapshots note the largest number, and writers number from above it.
    pub from_snapshot: bool,
}

impl SequenceSettings {
    /// From a table's options. Errors: `Invalid`, naming the option.
    pub fn from_options(options: &Options) -> Result<Self, FormatError> {
        Ok(Self {
            snapshot_ordering: options.bool("sequence.snapshot-ordering")?.unwrap_or(false),
            from_snapshot: options
                .string("write.sequence-number-init-mode")
                .is_some_and(|mode| mode.eq_ignore_ascii_case("snapshot")),
        })
    }
}
