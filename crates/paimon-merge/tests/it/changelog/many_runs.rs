//! Keys with thousands of versions.

use std::sync::Arc;

use paimon_format::types::TypeKind;
use paimon_merge::changelog::{ChangelogSettings, LookupChangelogMergeFunctionWrapper};
use paimon_merge::plan::{MergePlan, PlanOptions, Step};
use paimon_merge::testing::batches_of;

use super::play::{Cut, play, run, text};
use crate::table::Table;

const RUNS: i64 = 3000;

fn sum() -> Table {
    Table::new(
        "aggregation",
        &[("v", TypeKind::Int)],
        &[("fields.v.aggregate-function", "sum")],
    )
}

#[test]
fn every_version_counts_once() {
    let table = sum();
    let runs: Vec<_> = (0..RUNS)
        .map(|at| run(&table, 0, 100 + 10 * at, "+I 1 1; +I 2 1; +I 3 1"))
        .collect();
    let old = [run(&table, 5, 1, "+I 1 100; +I 3 300")];
    let engine = table.engine.as_ref();
    let changelog = ChangelogSettings::default();
    let mut stage = LookupChangelogMergeFunctionWrapper::new(engine, &table.schema, Some(&changelog)).unwrap();
    for (batch_rows, block_keys) in [(100, 100), (1, 1), (2, 2)] {
        let cut = Cut {
            batch_rows,
            block_keys,
            ..Cut::default()
        };
        let played = play(&table, &mut stage, &runs, &old, cut).unwrap();
        assert_eq!(text(&played.rows), "+I 1 3100; +I 2 3000; +I 3 3300");
        assert_eq!(
            text(&played.changes),
            "-U 1 100; +U 1 3100; +I 2 3000; -U 3 300; +U 3 3300"
        );
    }
}

#[test]
fn a_block_of_whole_keys_holds_a_batch_or_two_of_each_run() {
    let table = sum();
    let rows: Vec<String> = (0..40).map(|key| format!("+I {key} 1")).collect();
    let rows = rows.join("; ");
    let mut runs: Vec<_> = (0..200)
        .map(|at| batches_of(&run(&table, 0, 100 * at, &rows), 4).into_iter())
        .collect();
    let options = PlanOptions {
        block_keys: 1,
        block_bytes: 1,
        cut_keys: false,
        passes: Arc::new(|_| false),
    };
    let mut plan = MergePlan::new(runs.len(), &table.schema, options).unwrap();
    let mut keys = 0;
    loop {
        match plan.step().unwrap() {
            Step::NeedInput(run) => match runs[run].next() {
                Some(batch) => plan.push(run, batch).unwrap(),
                None => plan.end(run).unwrap(),
            },
            Step::Block(block) => {
                let groups = block.groups();
                assert_eq!((groups.len(), groups.rows.len(), groups.open), (1, 200, false));
                assert!(block.sources.len() <= 400, "{} batches", block.sources.len());
                keys += 1;
            }
            Step::Done => break,
        }
    }
    assert_eq!(keys, 40);
}
