//! A process that takes a stream in is killed, and started again.

#![expect(clippy::disallowed_methods, reason = "a real process runs for a real time")]

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::create_table;

const RECORDS: usize = 20_000;
const KEYS: usize = 100;

fn paimon(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paimon"));
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn ok(args: &[&str]) -> String {
    let output = paimon(args).output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn snapshots(table: &str) -> usize {
    std::fs::read_dir(Path::new(table).join("snapshot")).map_or(0, Iterator::count)
}

/// A table that counts: a record that is taken in twice, or not at all, makes another sum.
#[test]
fn every_record_counts_once_however_often_it_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let (table, input) = (dir.path().join("t"), dir.path().join("in.jsonl"));
    let (table, input) = (table.to_str().unwrap(), input.to_str().unwrap());
    let mut lines = String::new();
    for record in 0..RECORDS {
        writeln!(lines, "{{\"k\":{},\"n\":1}}", record % KEYS).unwrap();
    }
    std::fs::write(input, lines).unwrap();
    let options = [
        "bucket=2",
        "merge-engine=aggregation",
        "fields.n.aggregate-function=sum",
    ];
    create_table(table, &["k INT", "n BIGINT"], &options);

    let ingest = [
        "ingest",
        table,
        input,
        "--format",
        "json",
        "--commit-rows",
        "500",
        "--commit-user",
        "job",
        "--json",
    ];
    let mut kills = 0;
    for round in 1..=5 {
        let before = snapshots(table);
        let mut process = paimon(&ingest).spawn().unwrap();
        while snapshots(table) < before + round && process.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(2));
        }
        if process.try_wait().unwrap().is_none() {
            process.kill().unwrap();
            kills += 1;
        }
        process.wait().unwrap();
    }
    assert!(kills > 1, "killed {kills} times");
    let report: Value = serde_json::from_str(&ok(&ingest)).unwrap();
    assert!(report["resumedAt"]["line"].as_u64().unwrap() > 0, "{report}");
    let rows = ok(&["read", table, "--json"]);
    let counts: Vec<u64> = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap()["n"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [(RECORDS / KEYS) as u64; KEYS]);
}
