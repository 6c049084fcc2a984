//! What a round did.

use crate::compact::BucketReport;

/// A round of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundReport {
    /// Counted from 1.
    pub round: u64,
    /// Tables that the service watches.
    pub tables: usize,
    /// Tables that were looked at: those that have changed, and are not left alone after a failure.
    pub tables_looked_at: usize,
    /// Selected buckets of these that have files.
    pub buckets_looked_at: usize,
    /// Those that had something to compact, and bytes that it would read, before the round.
    pub waiting: (usize, u64),
    /// What was compacted and committed, in the order of its end; of a dry run, what would be, most debt first.
    pub buckets: Vec<RoundBucket>,
    /// What failed, and will be tried again.
    pub failures: Vec<BucketFailure>,
    /// How long it took.
    pub milliseconds: i64,
}

/// The compaction of one bucket in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundBucket {
    /// The table's location, or its name where it comes from a catalog.
    pub table: String,
    /// Its sorted runs before.
    pub runs: usize,
    /// What was done.
    pub report: BucketReport,
    /// The snapshot that holds it; `None` in a dry run.
    pub snapshot: Option<i64>,
}

/// What could not be compacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketFailure {
    /// The table's location, or its name where it comes from a catalog.
    pub table: String,
    /// The bucket's directory; `None`: the whole table.
    pub bucket: Option<String>,
    /// Another compaction was first.
    pub conflict: bool,
    /// Why.
    pub error: String,
    /// It is left alone for so long, milliseconds.
    pub retry_in_ms: i64,
}
