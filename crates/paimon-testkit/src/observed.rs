//! What code tells through `metrics` and `tracing`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};

/// Remembers the value of every metric, by `name{label=value}`: the sum of a counter, the last value of a gauge, how many values a histogram got.
/// To be given to [`metrics::with_local_recorder`].
#[derive(Clone, Debug, Default)]
pub struct RecordedMetrics(Arc<Mutex<BTreeMap<String, f64>>>);

impl RecordedMetrics {
    /// The value of a metric; `None`: it was never told.
    pub fn get(&self, key: &str) -> Option<f64> {
        self.with(|values| values.get(key).copied())
    }

    /// A line a metric, by name: `name{label=value} 3`.
    pub fn print(&self) -> String {
        self.with(|values| {
            let mut text = String::new();
            for (key, value) in values {
                // Writing to a text does not fail.
                let _ = writeln!(text, "{key} {value}");
            }
            text
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, f64>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn handle(&self, key: &Key) -> Arc<Handle> {
        let labels: Vec<String> = key
            .labels()
            .map(|label| format!("{}={}", label.key(), label.value()))
            .collect();
        Arc::new(Handle {
            metrics: self.clone(),
            key: match labels.is_empty() {
                true => key.name().to_owned(),
                false => format!("{}{{{}}}", key.name(), labels.join(",")),
            },
        })
    }
}

/// One metric.
struct Handle {
    metrics: RecordedMetrics,
    key: String,
}

impl Handle {
    fn change(&self, change: impl FnOnce(&mut f64)) {
        self.metrics
            .with(|values| change(values.entry(self.key.clone()).or_default()));
    }
}

impl CounterFn for Handle {
    fn increment(&self, value: u64) {
        self.change(|sum| *sum += value as f64);
    }

    fn absolute(&self, value: u64) {
        self.change(|sum| *sum = value as f64);
    }
}

impl GaugeFn for Handle {
    fn increment(&self, value: f64) {
        self.change(|now| *now += value);
    }

    fn decrement(&self, value: f64) {
        self.change(|now| *now -= value);
    }

    fn set(&self, value: f64) {
        self.change(|now| *now = value);
    }
}

impl HistogramFn for Handle {
    fn record(&self, _value: f64) {
        self.change(|count| *count += 1.0);
    }
}

impl Recorder for RecordedMetrics {
    fn describe_counter(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn describe_gauge(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn describe_histogram(&self, _key: KeyName, _unit: Option<Unit>, _description: SharedString) {}

    fn register_counter(&self, key: &Key, _metadata: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.handle(key))
    }

    fn register_gauge(&self, key: &Key, _metadata: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.handle(key))
    }

    fn register_histogram(&self, key: &Key, _metadata: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.handle(key))
    }
}

/// Remembers every span that is opened: `name field=value …`, fields as they were when it was opened.
#[derive(Clone, Debug, Default)]
pub struct RecordedSpans {
    spans: Arc<Mutex<Vec<String>>>,
    next: Arc<AtomicU64>,
}

impl RecordedSpans {
    /// Remembers the spans that some work opens on this thread.
    pub fn record_while<T>(&self, work: impl FnOnce() -> T) -> T {
        // With one subscriber alone, a place in the code that another thread comes to first would be switched off for good, as that thread
        // has none: `tracing` then asks the subscriber of the thread alone.
        let _second = tracing::Dispatch::new(self.clone());
        tracing::subscriber::with_default(self.clone(), work)
    }

    /// The spans, in the order of their beginning.
    pub fn spans(&self) -> Vec<String> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Fields(String);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = write!(self.0, " {}={value}", field.name());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl Subscriber for RecordedSpans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).push(fields.0);
        Id::from_u64(self.next.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
