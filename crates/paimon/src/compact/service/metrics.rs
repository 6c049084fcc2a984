//! What a service is measured by. These metrics have no counterpart in the reference.

use metrics::{counter, gauge};

use super::report::RoundReport;
use crate::compact::job::BucketJob;

/// What waits in a table.
pub(super) fn waiting(table: &str, jobs: &[BucketJob]) {
    let bytes: u64 = jobs.iter().map(|job| job.debt().1).fold(0, u64::saturating_add);
    gauge!("paimon_service_buckets_waiting", "table" => table.to_owned()).set(jobs.len() as f64);
    gauge!("paimon_service_bytes_waiting", "table" => table.to_owned()).set(bytes as f64);
}

/// What a round came to.
pub(super) fn round(report: &RoundReport) {
    counter!("paimon_service_rounds").increment(1);
    counter!("paimon_service_buckets_compacted").increment(report.buckets.len() as u64);
    let conflicts = report.failures.iter().filter(|failure| failure.conflict).count();
    counter!("paimon_service_conflicts").increment(conflicts as u64);
    counter!("paimon_service_failures").increment((report.failures.len() - conflicts) as u64);
}
