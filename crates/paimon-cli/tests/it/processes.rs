//! Two processes on one table: one writes, one compacts.

#![expect(clippy::disallowed_methods, reason = "real processes run for a real time")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::json;

use crate::support::{create_table, paimon, run_time};

/// Commits until the time is up; keys come back, some are deleted. Returns the rows that must be there.
fn write(table: &str, started: Instant) -> BTreeMap<i64, i64> {
    let mut expected = BTreeMap::new();
    let mut commit = 0;
    while started.elapsed() < run_time() {
        let mut lines = String::new();
        for step in 0..40 {
            let key = (commit * 17 + step * 7) % 500;
            let deleted = (commit + step) % 9 == 0;
            let value = commit * 1000 + step;
            let kind = if deleted { "-D" } else { "+U" };
            lines.push_str(&json!({"kind": kind, "k": key, "v": value}).to_string());
            lines.push('\n');
            match deleted {
                true => expected.remove(&key),
                false => expected.insert(key, value),
            };
        }
        paimon(&["write", table, "--format", "json", "--kind-field", "kind"], &lines);
        commit += 1;
    }
    expected
}

/// Compacts until the writer is done, now with one pick, now fully. Returns how often something was compacted.
fn compact(table: &str, done: &AtomicBool) -> usize {
    let mut compacted = 0;
    for round in 0.. {
        if done.load(Ordering::SeqCst) {
            break;
        }
        let mut args = vec!["compact", table, "-D", "write-only=false"];
        if round % 3 == 0 {
            args.push("--full");
        }
        let report = paimon(&args, "");
        compacted += usize::from(report[0]["result"] == "done");
    }
    compacted
}

fn rows(table: &str, snapshot: Option<&str>) -> BTreeMap<i64, i64> {
    let mut args = vec!["read", table];
    args.extend(snapshot.iter().flat_map(|id| ["--snapshot", id]));
    let read = paimon(&args, "");
    let rows: BTreeMap<i64, i64> = read
        .iter()
        .map(|row| (row["k"].as_i64().unwrap(), row["v"].as_i64().unwrap()))
        .collect();
    assert_eq!(rows.len(), read.len(), "a key twice");
    rows
}

/// Whose compaction another job's takes the place of has written its rows: a failure would be answered by writing them again.
#[test]
fn writers_whose_compactions_lose_have_written_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t");
    let table = table.to_str().unwrap();
    let options = [
        "bucket=1",
        "merge-engine=aggregation",
        "fields.v.aggregate-function=sum",
        "changelog-producer=lookup",
    ];
    create_table(table, &["k BIGINT", "v BIGINT"], &options);
    let lost = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..6 {
                    let report = paimon(&["write", table, "--format", "json"], "{\"k\":1,\"v\":1}\n");
                    assert_eq!(report[0]["rows"], 1);
                    lost.fetch_add(usize::from(report[0].get("compactionLost").is_some()), Ordering::SeqCst);
                }
            });
        }
    });
    assert!(lost.into_inner() > 0, "no two compactions met");
    paimon(&["compact", table], "");
    assert_eq!(rows(table, None), BTreeMap::from([(1, 18)]));
}

#[test]
fn a_writer_and_a_compactor_do_not_disturb_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t");
    let table = table.to_str().unwrap();
    create_table(table, &["k BIGINT", "v BIGINT"], &["bucket=2", "write-only=true"]);
    let started = Instant::now();
    let done = AtomicBool::new(false);
    let (expected, compacted) = thread::scope(|scope| {
        let compactor = scope.spawn(|| compact(table, &done));
        let writer = scope.spawn(|| write(table, started)).join();
        done.store(true, Ordering::SeqCst);
        (writer.unwrap(), compactor.join().unwrap())
    });
    assert!(compacted > 1, "the compactor found work {compacted} times");
    assert_eq!(rows(table, None), expected);
    paimon(&["compact", table, "--full", "-D", "write-only=false"], "");
    assert_eq!(rows(table, None), expected);

    // Every snapshot is there, without a gap, and can be read.
    let mut ids: Vec<u64> = std::fs::read_dir(Path::new(table).join("snapshot"))
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()?
                .strip_prefix("snapshot-")?
                .parse()
                .ok()
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    let step = ids.len().div_ceil(20);
    for id in ids.iter().step_by(step) {
        rows(table, Some(&id.to_string()));
    }
}
