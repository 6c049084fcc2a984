//! What commits are measured by.

use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use metrics::{gauge, histogram};

use super::committable::{ChangeSet, CommitChanges};
use crate::manifest::{FileKind, ManifestEntry};

/// Counts what one commit takes.
#[derive(Debug)]
pub(super) struct CommitMeter {
    begin_ms: i64,
    attempts: AtomicU32,
    snapshots: AtomicU32,
    last_snapshot: AtomicI64,
}

impl CommitMeter {
    pub(super) fn new(now_ms: i64) -> Self {
        Self {
            begin_ms: now_ms,
            attempts: AtomicU32::new(0),
            snapshots: AtomicU32::new(0),
            last_snapshot: AtomicI64::new(-1),
        }
    }

    /// A snapshot was tried so often; `None`: in vain.
    pub(super) fn tried(&self, attempts: u32, snapshot: Option<i64>) {
        self.attempts.fetch_add(attempts, Ordering::Relaxed);
        if let Some(id) = snapshot {
            self.snapshots.fetch_add(1, Ordering::Relaxed);
            self.last_snapshot.store(id, Ordering::Relaxed);
        }
    }

    /// Tells about the commit, which may have failed. Commits that made nothing are not told.
    ///
    /// Source: `org.apache.paimon.operation.metrics.{CommitMetrics, CommitStats}`.
    pub(super) fn report(&self, table: &str, changes: &CommitChanges, now_ms: i64) {
        if self.attempts.load(Ordering::Relaxed) == 0 {
            return;
        }
        let set = |name: &'static str, value: i64| gauge!(name, "table" => table.to_owned()).set(value as f64);
        let CommitChanges { append, compact } = changes;
        let duration_ms = now_ms.saturating_sub(self.begin_ms);
        let both = || append.table.iter().chain(&compact.table);
        let of_kind = |kind: FileKind| both().filter(move |entry| entry.kind == kind);
        let compacted = |kind: FileKind| {
            let entries = compact.table.iter().filter(move |entry| entry.kind == kind);
            entries.map(|entry| entry.file.file_size).sum::<i64>()
        };
        let partitions: HashSet<&[u8]> = both().map(|entry| entry.partition.as_bytes()).collect();
        let buckets: HashSet<(&[u8], i32)> = both().map(|entry| (entry.partition.as_bytes(), entry.bucket)).collect();
        let rows = |entries: &[ManifestEntry]| entries.iter().map(|entry| entry.file.row_count).sum::<i64>();
        histogram!("paimon_commit_commit_duration", "table" => table.to_owned()).record(duration_ms as f64);
        set("paimon_commit_last_commit_duration", duration_ms);
        set(
            "paimon_commit_last_commit_attempts",
            self.attempts.load(Ordering::Relaxed).into(),
        );
        set(
            "paimon_commit_last_generated_snapshots",
            self.snapshots.load(Ordering::Relaxed).into(),
        );
        set(
            "paimon_commit_last_committed_snapshot_id",
            self.last_snapshot.load(Ordering::Relaxed),
        );
        set("paimon_commit_last_partitions_written", count(partitions.len()));
        set("paimon_commit_last_buckets_written", count(buckets.len()));
        set(
            "paimon_commit_last_table_files_added",
            count(of_kind(FileKind::Add).count()),
        );
        set(
            "paimon_commit_last_table_files_deleted",
            count(of_kind(FileKind::Delete).count()),
        );
        let of = |set_of: &ChangeSet| (count(set_of.table.len()), count(set_of.changelog.len()));
        let (table_files, changelog_files) = of(append);
        set("paimon_commit_last_table_files_appended", table_files);
        set("paimon_commit_last_changelog_files_appended", changelog_files);
        let (table_files, changelog_files) = of(compact);
        set("paimon_commit_last_table_files_commit_compacted", table_files);
        set("paimon_commit_last_changelog_file_commit_compacted", changelog_files);
        set("paimon_commit_last_delta_records_appended", rows(&append.table));
        set("paimon_commit_last_changelog_records_appended", rows(&append.changelog));
        set(
            "paimon_commit_last_delta_records_commit_compacted",
            rows(&compact.table),
        );
        set(
            "paimon_commit_last_changelog_records_commit_compacted",
            rows(&compact.changelog),
        );
        set(
            "paimon_commit_last_compaction_input_file_size",
            compacted(FileKind::Delete),
        );
        set(
            "paimon_commit_last_compaction_output_file_size",
            compacted(FileKind::Add),
        );
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
