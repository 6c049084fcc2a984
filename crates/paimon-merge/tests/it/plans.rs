//! Plans against a sort of everything.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels};
use paimon_format::types::TypeKind;
use paimon_merge::plan::{Block, MergePlan, PlanOptions, Span, Step};
use paimon_merge::testing::batches_of;
use proptest::prelude::*;

use crate::schema;

/// Key, sequence number, level.
type Record = (i64, i64, i32);

fn batch(schema: &Arc<KvSchema>, records: &[Record]) -> KvBatch {
    let keys: ArrayRef = match schema.fields[0].data_type.kind {
        TypeKind::Int => Arc::new(
            records
                .iter()
                .map(|&(key, ..)| Some(key as i32))
                .collect::<Int32Array>(),
        ),
        TypeKind::BigInt => Arc::new(records.iter().map(|&(key, ..)| Some(key)).collect::<Int64Array>()),
        // Long equal beginnings: the first eight bytes do not decide.
        _ => Arc::new(
            records
                .iter()
                .map(|&(key, ..)| Some(format!("a long beginning {key:05}")))
                .collect::<StringArray>(),
        ),
    };
    let rows = records.len();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            records
                .iter()
                .map(|&(_, sequence, _)| Some(sequence))
                .collect::<Int64Array>(),
        ),
        Arc::new(Int8Array::from(vec![0; rows])),
        keys,
        Arc::new(Int32Array::from(vec![1; rows])),
        Arc::new(StringArray::from(vec!["s"; rows])),
        Arc::new(Int64Array::from(vec![7; rows])),
    ];
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    let levels = RowLevels::Each(records.iter().map(|&(.., level)| level).collect());
    KvBatch::new(schema, columns, &KeyCodec::new(schema).unwrap(), levels).unwrap()
}

fn blocks(schema: &Arc<KvSchema>, runs: &[Vec<Record>], batch_rows: usize, options: PlanOptions) -> Vec<Block> {
    let mut plan = MergePlan::new(runs.len(), schema, options).unwrap();
    let mut inputs: Vec<_> = runs
        .iter()
        .map(|run| batches_of(&batch(schema, run), batch_rows).into_iter())
        .collect();
    let mut blocks = Vec::new();
    loop {
        match plan.step().unwrap() {
            Step::NeedInput(run) => match inputs[run].next() {
                Some(batch) => plan.push(run, batch).unwrap(),
                None => plan.end(run).unwrap(),
            },
            Step::Block(block) => blocks.push(block),
            Step::Done => return blocks,
        }
    }
}

/// The records of a block in order, each as (sequence number, level): keys are told by the sorted model.
fn records(block: &Block) -> Vec<(i64, i32)> {
    let record = |batch: &KvBatch, row: usize| (batch.sequence_numbers()[row], batch.levels.get(row));
    block
        .all_rows()
        .map(|at| record(&block.sources[at.batch as usize], at.row as usize))
        .collect()
}

/// How many versions each key has, open groups joined: `None` for a pass.
fn group_sizes(blocks: &[Block]) -> Vec<(bool, usize)> {
    let mut sizes: Vec<(bool, usize)> = Vec::new();
    let mut open = false;
    for block in blocks {
        let groups = block.groups();
        let mut versions = groups.iter();
        for span in &block.spans {
            match span {
                Span::Pass { rows, .. } => sizes.extend(rows.clone().map(|_| (true, 1))),
                Span::Groups(count) => {
                    for _ in 0..*count {
                        let size = versions.next().unwrap().len();
                        assert!(size > 0);
                        match sizes.last_mut() {
                            Some(last) if open => last.1 += size,
                            _ => sizes.push((false, size)),
                        }
                        open = false;
                    }
                }
            }
        }
        assert_eq!(versions.len(), 0);
        open = groups.open;
    }
    assert!(!open);
    sizes
}

fn runs() -> impl Strategy<Value = Vec<Vec<Record>>> {
    let record = |keys: i64| (0..keys, 0..20i64, 0..4i32);
    let run = (1..200i64).prop_flat_map(move |keys| prop::collection::vec(record(keys), 0..120));
    prop::collection::vec(run, 0..6).prop_map(|mut runs| {
        for run in &mut runs {
            // Key, sequence number, deeper level first.
            run.sort_by_key(|&(key, sequence, level)| (key, sequence, -level));
        }
        runs
    })
}

proptest! {
    #[test]
    fn every_row_comes_once_in_order(runs in runs(), batch_rows in 1usize..50, block_keys in 1usize..40, key in 0..3) {
        let kind = [TypeKind::Int, TypeKind::BigInt, TypeKind::VarChar(40)][key as usize].clone();
        let schema = schema(kind, None);
        let options = PlanOptions { block_keys, passes: Arc::new(|level| level > 0), ..PlanOptions::default() };
        let blocks = blocks(&schema, &runs, batch_rows, options);
        let mut all: Vec<Record> = runs.concat();
        all.sort_by_key(|&(key, sequence, level)| (key, sequence, -level));
        let found: Vec<(i64, i32)> = blocks.iter().flat_map(records).collect();
        let expected: Vec<(i64, i32)> = all.iter().map(|&(_, sequence, level)| (sequence, level)).collect();
        prop_assert_eq!(found, expected);
        let groups: Vec<(bool, usize)> = all
            .chunk_by(|a, b| a.0 == b.0)
            .map(|group| (group.len() == 1 && group[0].2 > 0, group.len()))
            .collect();
        prop_assert_eq!(group_sizes(&blocks), groups);
        for block in &blocks {
            let rows = block.groups().rows.len();
            prop_assert!(block.spans.len() <= 2 * block_keys + 1 && rows <= block_keys * block_keys.max(2), "{} spans, {} rows", block.spans.len(), rows);
        }
    }
}

#[test]
fn a_run_alone_in_its_range_passes_as_slices() {
    let schema = schema(TypeKind::BigInt, None);
    let runs: Vec<Vec<Record>> = (0..4)
        .map(|run| (0..5000).map(|i| (run * 10_000 + i, i, 1)).collect())
        .collect();
    let blocks = blocks(&schema, &runs, 1000, PlanOptions::default());
    let spans: usize = blocks.iter().map(|block| block.spans.len()).sum();
    assert!(spans < 40, "{spans} spans");
    assert!(blocks.iter().all(|block| block.groups().is_empty()));
}

#[test]
fn a_key_with_many_versions_is_cut_into_open_groups() {
    let schema = schema(TypeKind::Int, None);
    let run: Vec<Record> = (0..10_000).map(|sequence| (7, sequence, 0)).collect();
    let blocks = blocks(
        &schema,
        &[run, vec![(6, 1, 0), (8, 1, 0)]],
        100,
        PlanOptions {
            block_keys: 1000,
            ..PlanOptions::default()
        },
    );
    assert_eq!(group_sizes(&blocks), [(true, 1), (false, 10_000), (true, 1)]);
    assert!(blocks.iter().all(|block| block.groups().rows.len() <= 1000));
    assert!(
        blocks.iter().all(|block| block.sources.len() <= 12),
        "a block keeps few batches"
    );
}

#[test]
fn large_batches_end_a_block() {
    let schema = schema(TypeKind::Int, None);
    let run: Vec<Record> = (0..1000).map(|key| (key, key, 0)).collect();
    let options = PlanOptions {
        block_bytes: 1,
        ..PlanOptions::default()
    };
    assert!(blocks(&schema, &[run.clone(), run], 10, options).len() >= 100);
}

#[test]
fn descending_keys_are_refused() {
    let schema = schema(TypeKind::BigInt, None);
    let mut plan = MergePlan::new(2, &schema, PlanOptions::default()).unwrap();
    let error = plan.push(1, batch(&schema, &[(2, 0, 0), (1, 0, 0)])).unwrap_err();
    assert_eq!(error.to_string(), "the keys of sorted run 1 are not in order");
    plan.push(0, batch(&schema, &[(5, 0, 0), (9, 0, 0)])).unwrap();
    plan.push(0, batch(&schema, &[(8, 0, 0)])).unwrap();
    plan.end(1).unwrap();
    let error = plan.step().unwrap_err();
    assert_eq!(error.to_string(), "the keys of sorted run 0 are not in order");
    assert_eq!(error.kind(), paimon_format::ErrorKind::Corrupt);
}

#[test]
fn runs_that_do_not_exist_are_refused() {
    let schema = schema(TypeKind::BigInt, None);
    let mut plan = MergePlan::new(1, &schema, PlanOptions::default()).unwrap();
    assert_eq!(plan.end(1).unwrap_err().kind(), paimon_format::ErrorKind::Internal);
    assert_eq!(
        plan.push(3, batch(&schema, &[(1, 1, 1)])).unwrap_err().kind(),
        paimon_format::ErrorKind::Internal
    );
}
