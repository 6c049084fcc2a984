//! Metrics of a table's merge trees, through the `metrics` facade.
//!
//! Names are the reference's, in snake case behind `paimon_` and the group; all have the label `table`. The list is in `docs/operations.md`.

mod distribution;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrics::{counter, gauge};
use paimon_format::env::Clock;

use self::distribution::Distribution;
use crate::compact::CompactResult;
use crate::levels::{Levels, total_bytes};

/// How far back the busy time is looked at.
const BUSY_MEASURE_MS: i64 = 60_000;
/// Compactions whose times are averaged.
const COMPACTION_TIME_WINDOW: usize = 100;

/// Metrics of the compactions of one table: sums and largest values over its buckets. Cheap to clone; clones share everything.
///
/// Source: `org.apache.paimon.operation.metrics.CompactionMetrics`.
#[derive(Clone)]
pub struct CompactionMetrics {
    table: Arc<str>,
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    buckets: HashMap<Arc<str>, BucketState>,
    /// The numbers of all buckets, in the order of [`GAUGES`].
    distributions: [Distribution; GAUGES.len()],
    /// Of the last compactions, milliseconds.
    times_ms: VecDeque<i64>,
    /// When compactions ran: from, and to unless they still do.
    busy: Vec<(i64, Option<i64>)>,
}

/// What is known of a bucket.
#[derive(Clone, Copy, Debug, Default)]
struct BucketState {
    level0_files: u64,
    sorted_runs: u64,
    total_bytes: u64,
    input_bytes: u64,
    output_bytes: u64,
    buffer_bytes: u64,
    buffer_percent: u64,
}

/// One of the numbers of a bucket.
type Number = fn(&BucketState) -> u64;

/// Gauges over the buckets: the names of the largest value and of the average, and what they are of.
const GAUGES: [(&str, &str, Number); 7] = [
    (
        "paimon_compaction_max_level0_file_count",
        "paimon_compaction_avg_level0_file_count",
        |bucket| bucket.level0_files,
    ),
    (
        "paimon_compaction_max_sorted_run_count",
        "paimon_compaction_avg_sorted_run_count",
        |bucket| bucket.sorted_runs,
    ),
    (
        "paimon_compaction_max_total_file_size",
        "paimon_compaction_avg_total_file_size",
        |bucket| bucket.total_bytes,
    ),
    (
        "paimon_compaction_max_compaction_input_size",
        "paimon_compaction_avg_compaction_input_size",
        |bucket| bucket.input_bytes,
    ),
    (
        "paimon_compaction_max_compaction_output_size",
        "paimon_compaction_avg_compaction_output_size",
        |bucket| bucket.output_bytes,
    ),
    (
        "paimon_compaction_max_sort_buffer_used_bytes",
        "paimon_compaction_avg_sort_buffer_used_bytes",
        |bucket| bucket.buffer_bytes,
    ),
    (
        "paimon_compaction_max_sort_buffer_utilisation_percent",
        "paimon_compaction_avg_sort_buffer_utilisation_percent",
        |bucket| bucket.buffer_percent,
    ),
];

impl State {
    /// Notes what a bucket is like now; `None`: it is forgotten.
    fn set(&mut self, bucket: &Arc<str>, now: Option<BucketState>) {
        let before = match now {
            Some(now) => self.buckets.insert(Arc::clone(bucket), now),
            None => self.buckets.remove(bucket),
        };
        for ((_, _, of), distribution) in GAUGES.iter().zip(&mut self.distributions) {
            if let Some(before) = &before {
                distribution.remove(of(before));
            }
            if let Some(now) = &now {
                distribution.add(of(now));
            }
        }
    }
}

impl CompactionMetrics {
    /// Of a table with this name.
    pub fn new(table: &str, clock: Arc<dyn Clock>) -> Self {
        Self {
            table: table.into(),
            clock,
            state: Arc::default(),
        }
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// What tells about a bucket, by its directory. Its numbers stay until they are replaced or [forgotten](Self::retain).
    pub fn reporter(&self, bucket: &str) -> CompactionReporter {
        self.reporter_of(bucket, false)
    }

    /// As [`reporter`](Self::reporter); the bucket is forgotten with the last clone: for writers, which come and go.
    pub fn passing_reporter(&self, bucket: &str) -> CompactionReporter {
        self.reporter_of(bucket, true)
    }

    fn reporter_of(&self, bucket: &str, passing: bool) -> CompactionReporter {
        CompactionReporter(Some(Arc::new(Reporting {
            metrics: self.clone(),
            bucket: bucket.into(),
            passing,
        })))
    }

    /// Forgets the other buckets.
    pub fn retain(&self, is_there: impl Fn(&str) -> bool) {
        let mut state = self.state();
        let gone = state.buckets.keys().filter(|bucket| !is_there(bucket));
        for bucket in gone.cloned().collect::<Vec<_>>() {
            state.set(&bucket, None);
        }
        self.tell(&state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, name: &'static str, value: f64) {
        gauge!(name, "table" => self.table.to_string()).set(value);
    }

    /// Sets the gauges over all buckets. Java's say -1 where there is no bucket.
    fn tell(&self, state: &State) {
        for ((name_max, name_avg, _), distribution) in GAUGES.iter().zip(&state.distributions) {
            self.set(name_max, distribution.max().map_or(-1.0, |max| max as f64));
            self.set(name_avg, distribution.average().unwrap_or(-1.0));
        }
        let times = state.times_ms.len();
        let average = match times {
            0 => 0.0,
            times => state.times_ms.iter().sum::<i64>() as f64 / times as f64,
        };
        self.set("paimon_compaction_avg_compaction_time", average);
    }

    /// Measures anew how busy compactions were: for who tells at intervals. Otherwise it is told when a compaction begins or ends.
    pub fn refresh(&self) {
        let now_ms = self.clock.now_ms();
        self.tell_busy(&mut self.state(), now_ms);
    }

    fn tell_busy(&self, state: &mut State, now_ms: i64) {
        let since_ms = now_ms.saturating_sub(BUSY_MEASURE_MS);
        state.busy.retain(|(_, to)| to.is_none_or(|to| to > since_ms));
        let busy_ms: i64 = state
            .busy
            .iter()
            .map(|(from, to)| (to.unwrap_or(now_ms) - (*from).max(since_ms)).max(0))
            .sum();
        self.set(
            "paimon_compaction_compaction_thread_busy",
            100.0 * busy_ms as f64 / BUSY_MEASURE_MS as f64,
        );
    }
}

impl fmt::Debug for CompactionMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionMetrics")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// Tells what happens in one bucket; the default tells nobody. Cheap to clone.
///
/// Source: `org.apache.paimon.operation.metrics.CompactionMetrics.Reporter`.
#[derive(Clone, Debug, Default)]
pub struct CompactionReporter(Option<Arc<Reporting>>);

#[derive(Debug)]
struct Reporting {
    metrics: CompactionMetrics,
    bucket: Arc<str>,
    passing: bool,
}

impl Drop for Reporting {
    fn drop(&mut self) {
        if self.passing {
            let mut state = self.metrics.state();
            state.set(&self.bucket, None);
            self.metrics.tell(&state);
        }
    }
}

impl CompactionReporter {
    /// The table's name, for spans; empty when it tells nobody.
    pub fn table(&self) -> &str {
        self.0.as_ref().map_or("", |reporting| reporting.metrics.table())
    }

    /// The bucket's directory, for spans; empty when it tells nobody.
    pub fn bucket(&self) -> &str {
        self.0.as_ref().map_or("", |reporting| &reporting.bucket)
    }

    fn update(&self, change: impl FnOnce(&mut State, &mut BucketState)) {
        let Some(reporting) = &self.0 else { return };
        let mut state = reporting.metrics.state();
        let mut bucket = state.buckets.get(&reporting.bucket).copied().unwrap_or_default();
        change(&mut state, &mut bucket);
        state.set(&reporting.bucket, Some(bucket));
        reporting.metrics.tell(&state);
    }

    /// The tree is this now.
    pub(crate) fn levels(&self, levels: &Levels) {
        self.update(|_, bucket| {
            bucket.level0_files = levels.level0().len() as u64;
            bucket.sorted_runs = levels.number_of_sorted_runs() as u64;
            bucket.total_bytes = levels.total_file_size();
        });
    }

    /// The write buffer when it is flushed, bytes.
    pub(crate) fn sort_buffer(&self, used: u64, total: u64) {
        self.update(|_, bucket| {
            bucket.buffer_bytes = used;
            bucket.buffer_percent = used.saturating_mul(100).checked_div(total).unwrap_or(0);
        });
    }

    /// A compaction is to be run.
    pub(crate) fn submitted(&self) {
        let Some(Reporting { metrics, .. }) = self.0.as_deref() else {
            return;
        };
        let table = metrics.table.to_string();
        gauge!("paimon_compaction_compaction_queued_count", "table" => table.clone()).increment(1.0);
        counter!("paimon_compaction_compaction_total_count", "table" => table).increment(1);
    }

    /// It runs: when it began, for [`ended`](Self::ended).
    pub(crate) fn began(&self) -> i64 {
        let Some(Reporting { metrics, .. }) = self.0.as_deref() else {
            return 0;
        };
        let now_ms = metrics.clock.now_ms();
        let mut state = metrics.state();
        state.busy.push((now_ms, None));
        metrics.tell_busy(&mut state, now_ms);
        now_ms
    }

    /// It has ended; with a result, if it was neither cancelled nor failed.
    pub(crate) fn ended(&self, began_ms: i64, result: Option<&CompactResult>) {
        let Some(Reporting { metrics, .. }) = self.0.as_deref() else {
            return;
        };
        let table = metrics.table.to_string();
        gauge!("paimon_compaction_compaction_queued_count", "table" => table.clone()).decrement(1.0);
        if result.is_some() {
            counter!("paimon_compaction_compaction_completed_count", "table" => table).increment(1);
        }
        let now_ms = metrics.clock.now_ms();
        self.update(|state, bucket| {
            let running = state.busy.iter_mut();
            if let Some((_, to)) = running.into_iter().find(|busy| **busy == (began_ms, None)) {
                *to = Some(now_ms);
            }
            metrics.tell_busy(state, now_ms);
            let Some(result) = result else { return };
            state.times_ms.push_back(now_ms.saturating_sub(began_ms));
            if state.times_ms.len() > COMPACTION_TIME_WINDOW {
                state.times_ms.pop_front();
            }
            bucket.input_bytes = total_bytes(&result.before);
            bucket.output_bytes = total_bytes(&result.after);
        });
    }
}
