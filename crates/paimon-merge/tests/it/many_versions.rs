//! A key with a million versions in one sorted run, as a write buffer and its spills have it.

use std::sync::{Arc, Weak};

use arrow_array::{Array, ArrayRef, Int8Array, Int32Array, Int64Array, ListArray, RecordBatch};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType as ArrowType;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels};
use paimon_format::options::Options;
use paimon_format::types::{DataType, Datum, RowKind, TypeKind};
use paimon_merge::MergeError;
use paimon_merge::engine::{MergeEngine, Promises, Registry};
use paimon_merge::kernel::{AssembleOptions, Assembler, MergeFunction, Merged, MergedRows, RowEngine, Versions};
use paimon_merge::plan::{MergePlan, PlanOptions, Step};
use rstest::rstest;

use crate::table::{options, records, schema};

const INT: TypeKind = TypeKind::Int;
const BATCH: i64 = 4096;

/// `k` = 1, `a` and `g` the version's number, `c` an array of it.
fn batch(schema: &Arc<KvSchema>, from: i64, to: i64) -> KvBatch {
    let numbers = || (from..to).map(|number| number as i32);
    let rows = (to - from) as usize;
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(from..to)),
        Arc::new(Int8Array::from(vec![RowKind::Insert as i8; rows])),
        Arc::new(Int32Array::from(vec![1; rows])),
        Arc::new(Int32Array::from_iter_values(numbers())),
        Arc::new(Int32Array::from_iter_values(numbers())),
    ];
    if let Some(ArrowType::List(element)) = schema.arrow.fields().get(5).map(|field| field.data_type()) {
        let offsets = OffsetBuffer::new(ScalarBuffer::from_iter(0..=rows as i32));
        let values = Arc::new(Int32Array::from_iter_values(numbers()));
        columns.push(Arc::new(ListArray::new(Arc::clone(element), offsets, values, None)));
    }
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    KvBatch::new(schema, columns, &KeyCodec::new(schema).unwrap(), RowLevels::All(-1)).unwrap()
}

/// Merges so many versions of one key, batch by batch. Never are more than a few batches alive.
fn merge(engine: &dyn MergeEngine, schema: &Arc<KvSchema>, versions: i64) -> Vec<Datum> {
    let mut plan = MergePlan::new(1, schema, PlanOptions::default()).unwrap();
    let mut kernel = engine.kernel(schema).unwrap();
    let mut assembler = Assembler::new(Arc::clone(schema), AssembleOptions::default()).unwrap();
    let mut merged = MergedRows::default();
    let mut given: Vec<Weak<dyn Array>> = Vec::new();
    let mut next = 0;
    loop {
        match plan.step().unwrap() {
            Step::NeedInput(run) if next < versions => {
                let to = (next + BATCH).min(versions);
                let batch = batch(schema, next, to);
                given.push(Arc::downgrade(batch.columns.column(3)));
                plan.push(run, batch).unwrap();
                next = to;
            }
            Step::NeedInput(run) => plan.end(run).unwrap(),
            Step::Block(block) => {
                merged.clear();
                kernel.merge(&block.groups(), &mut merged).unwrap();
                let extras = assembler.extras(merged.made.as_ref(), None).unwrap();
                assembler.add_merged(&block, &merged, &extras).unwrap();
            }
            Step::Done => break,
        }
        given.retain(|batch| batch.strong_count() > 0);
        assert!(given.len() <= 6, "{} batches are alive", given.len());
    }
    assembler.finish().unwrap();
    let rows = records(&assembler.next_batch().unwrap());
    assert_eq!(rows.len(), 1);
    rows.into_iter().next().unwrap().1
}

const VERSIONS: i64 = 1_000_000;
const LAST: Datum = Datum::Int32(VERSIONS as i32 - 1);

#[rstest]
#[case("deduplicate", &[], LAST)]
#[case("first-row", &[], Datum::Int32(0))]
#[case("partial-update", &[], LAST)]
#[case("partial-update", &[("fields.g.sequence-group", "a")], LAST)]
#[case("partial-update", &[("fields.g.sequence-group", "a"), ("fields.a.aggregate-function", "min")], Datum::Int32(0))]
#[case("aggregation", &[("fields.a.aggregate-function", "max")], LAST)]
#[case("aggregation", &[("fields.a.aggregate-function", "first_value")], Datum::Int32(0))]
fn memory_is_bounded(#[case] engine: &str, #[case] given: &[(&str, &str)], #[case] expected: Datum) {
    let options = options(engine, given);
    let schema = schema(&[("a", INT), ("g", INT)], &options);
    let engine = Registry::default().for_options(&schema, &options).unwrap();
    let row = merge(engine.as_ref(), &schema, VERSIONS);
    assert_eq!(row[..2], [Datum::Int32(1), expected]);
}

/// What a row-wise engine has made of earlier blocks is one row.
#[test]
fn memory_of_row_engines_is_bounded() {
    struct Highest;
    impl MergeFunction for Highest {
        fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
            assert!(versions.len() < 20_000, "{} versions at once", versions.len());
            let highest = (0..versions.len()).max_by_key(|&at| versions.get(at).and_then(|v| v.get::<i32>(1).ok()?));
            Ok(highest.map_or(Merged::Nothing, Merged::Version))
        }
    }
    let mut registry = Registry::default();
    registry.engine(RowEngine::new("highest", Promises::insert_only(), ["a"], |_, _| {
        Ok(Box::new(Highest))
    }));
    let options = Options::from_iter([("merge-engine", "highest")]);
    let schema = schema(&[("a", INT), ("g", INT)], &options);
    let engine = registry.for_options(&schema, &options).unwrap();
    assert_eq!(merge(engine.as_ref(), &schema, VERSIONS), [Datum::Int32(1), LAST, LAST]);
}

/// A set of so many elements must not be searched anew for every version: that would take minutes.
#[test]
fn sets_grow_without_beginning_anew() {
    let given = [
        ("fields.c.aggregate-function", "collect"),
        ("fields.c.distinct", "true"),
    ];
    let options = options("aggregation", &given);
    let array = TypeKind::Array(Box::new(DataType::nullable(INT)));
    let schema = schema(&[("a", INT), ("g", INT), ("c", array)], &options);
    let engine = Registry::default().for_options(&schema, &options).unwrap();
    let row = merge(engine.as_ref(), &schema, 100_000);
    assert_eq!(
        row.last(),
        Some(&Datum::Array((0..100_000).map(Datum::Int32).collect()))
    );
}
