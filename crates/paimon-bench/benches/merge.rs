//! Merging alone: five runs of random keys that overlap everywhere, nothing decoded or encoded.

#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use paimon_bench::rows::run_keys;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels};
use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_merge::engine::Registry;
use paimon_merge::plan::{MergePlan, PlanOptions, Step};
use paimon_merge::testing::{batches_of, merge_runs};

const RUNS: u64 = 5;
const ROWS: u64 = 500_000;

/// Keys and a value column, cut into batches as a reader does.
fn runs(kind: TypeKind) -> (Arc<KvSchema>, Vec<Vec<KvBatch>>) {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(kind.clone())),
        DataField::new(1, "v", DataType::not_null(TypeKind::BigInt)),
    ];
    let schema = Arc::new(KvSchema::new(0, fields, vec![0], None).expect("a legal schema"));
    let codec = KeyCodec::new(&schema).expect("a legal key");
    let run = |run| {
        let keys = run_keys(run, RUNS, ROWS);
        let column: ArrayRef = match kind {
            TypeKind::Int => Arc::new(Int32Array::from_iter_values(keys.iter().map(|key| key.0 as i32))),
            TypeKind::BigInt => Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| key.0))),
            _ => Arc::new(StringArray::from_iter_values(
                keys.iter().map(|key| format!("user-{:012}", key.0)),
            )),
        };
        let sequence: ArrayRef = Arc::new(Int64Array::from_iter_values(keys.iter().map(|key| key.1)));
        let kinds = Arc::new(Int8Array::from(vec![0; keys.len()]));
        let columns = vec![Arc::clone(&sequence), kinds, column, sequence];
        let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).expect("columns of the schema");
        let all = KvBatch::new(&schema, columns, &codec, RowLevels::All(0)).expect("legal records");
        batches_of(&all, 8192)
    };
    let runs = (0..RUNS).map(run).collect();
    (schema, runs)
}

/// The plan alone: which versions meet.
fn plan(schema: &KvSchema, runs: &[Vec<KvBatch>]) -> usize {
    let mut plan = MergePlan::new(runs.len(), schema, PlanOptions::default()).expect("a legal plan");
    let mut inputs: Vec<_> = runs.iter().map(|run| run.iter()).collect();
    let mut spans = 0;
    loop {
        match plan.step().expect("sorted runs") {
            Step::NeedInput(run) => match inputs[run].next() {
                Some(batch) => plan.push(run, batch.clone()).expect("sorted runs"),
                None => plan.end(run).expect("a run"),
            },
            Step::Block(block) => spans += block.spans.len(),
            Step::Done => return spans,
        }
    }
}

fn merge(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("merge");
    for (name, kind) in [
        ("int", TypeKind::Int),
        ("bigint", TypeKind::BigInt),
        ("string", TypeKind::VarChar(40)),
    ] {
        let (schema, runs) = runs(kind);
        let rows: usize = runs.iter().flatten().map(KvBatch::len).sum();
        let engine = Registry::default()
            .for_options(&schema, &Options::new())
            .expect("the default engine");
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_with_input(BenchmarkId::new("plan", name), &runs, |bencher, runs| {
            bencher.iter(|| black_box(plan(&schema, runs)));
        });
        group.bench_with_input(BenchmarkId::new("deduplicate", name), &runs, |bencher, runs| {
            bencher.iter(|| merge_runs(engine.as_ref(), &schema, runs.clone(), PlanOptions::default()));
        });
    }
    group.finish();
}

criterion_group!(benches, merge);
criterion_main!(benches);
