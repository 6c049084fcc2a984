//! What the buffers of a table's writers are measured by.

use metrics::{counter, gauge};
use paimon_format::env::Budget;

const GAUGES: [&str; 3] = [
    "paimon_writer_buffer_num_writers",
    "paimon_writer_buffer_used_write_buffer_size_byte",
    "paimon_writer_buffer_total_write_buffer_size_byte",
];

/// Tells about the buffers of one [`TableWrite`](crate::TableWrite). Those of one table add up; what ended is taken off.
///
/// Source: `org.apache.paimon.operation.metrics.WriterBufferMetric`.
#[derive(Debug)]
pub(super) struct WriterBufferMetrics {
    table: String,
    /// What the gauges have got.
    told: [f64; 3],
}

impl WriterBufferMetrics {
    /// Of a table with this name.
    pub(super) fn new(table: &str) -> Self {
        Self {
            table: table.to_owned(),
            told: [0.0; 3],
        }
    }

    /// So many writers of buckets share these buffers.
    pub(super) fn tell(&mut self, writers: usize, buffers: &Budget) {
        let (total, free) = (buffers.total(), buffers.free());
        self.set([writers as f64, total.saturating_sub(free) as f64, total as f64]);
    }

    /// A writer gave its memory to another one.
    pub(super) fn preempted(&self) {
        counter!("paimon_writer_buffer_buffer_preempt_count", "table" => self.table.clone()).increment(1);
    }

    fn set(&mut self, values: [f64; 3]) {
        for ((name, told), value) in GAUGES.into_iter().zip(&mut self.told).zip(values) {
            gauge!(name, "table" => self.table.clone()).increment(value - *told);
            *told = value;
        }
    }
}

impl Drop for WriterBufferMetrics {
    fn drop(&mut self) {
        self.set([0.0; 3]);
    }
}
