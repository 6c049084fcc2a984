//! What is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::support::{Bucket, rows};

/// Counters by name and label.
#[derive(Default)]
struct Counters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counters {
    fn values(&self) -> BTreeMap<String, u64> {
        let counters = self.0.lock().unwrap();
        let values = counters
            .iter()
            .map(|(name, count)| (name.clone(), count.load(Ordering::Relaxed)));
        values.filter(|(_, count)| *count > 0).collect()
    }
}

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels: Vec<&str> = key.labels().map(|label| label.value()).collect();
        let name = format!("{} {}", key.name(), labels.join(" "));
        let mut counters = self.0.lock().unwrap();
        Counter::from_arc(Arc::clone(counters.entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[test]
fn hits_misses_builds_and_what_goes() {
    let counters = Counters::default();
    metrics::with_local_recorder(&counters, || {
        let mut bucket = Bucket::building();
        bucket.add(5, &rows(0..20, 1));
        let levels = bucket.levels();
        bucket.values(&levels, &[1, 2, 50]);
        bucket.values(&levels, &[3]);
        bucket.settings.build_after = u32::MAX;
        bucket.cache.clear();
        bucket.values(&bucket.levels(), &[4, 30]);
    });
    let mut values = counters.values();
    assert!(
        values
            .remove("paimon_lookup_file_bytes_total build")
            .is_some_and(|bytes| bytes > 100)
    );
    let expected = [
        ("paimon_lookup_files_gone_total cleared", 1),
        ("paimon_lookup_files_made_total build", 1),
        ("paimon_lookup_keys_total hit", 4),
        ("paimon_lookup_keys_total miss", 2),
        ("paimon_lookup_probes_total file", 2),
        ("paimon_lookup_probes_total scan", 1),
    ];
    assert_eq!(values, expected.map(|(name, count)| (name.to_owned(), count)).into());
}
