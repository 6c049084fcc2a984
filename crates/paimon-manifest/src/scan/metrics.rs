//! What scans are measured by.

use metrics::{gauge, histogram};

/// Tells about a scan: how long it took, and how many of the files that partition, bucket and level did not rule out are in its plan.
///
/// Source: `org.apache.paimon.operation.metrics.{ScanMetrics, ScanStats}`.
pub(super) fn scanned(table: &str, snapshot: i64, duration_ms: i64, found: usize, resulted: usize) {
    let set = |name: &'static str, value: f64| gauge!(name, "table" => table.to_owned()).set(value);
    histogram!("paimon_scan_scan_duration", "table" => table.to_owned()).record(duration_ms as f64);
    set("paimon_scan_last_scan_duration", duration_ms as f64);
    set("paimon_scan_last_scanned_snapshot_id", snapshot as f64);
    set(
        "paimon_scan_last_scan_skipped_table_files",
        found.saturating_sub(resulted) as f64,
    );
    set("paimon_scan_last_scan_resulted_table_files", resulted as f64);
}
