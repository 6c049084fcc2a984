//! One compaction in three kinds of processes: one plans, several run, one commits.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::{create_table, paimon};

/// A folder with a table that has a large top level and level-0 files across it.
struct Place {
    dir: tempfile::TempDir,
    table: String,
}

impl Place {
    fn new(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("t").to_str().unwrap().to_owned();
        let fixed = ["bucket=1", "write-only=true", "target-file-size=16 kb"];
        create_table(&table, &["k BIGINT", "v STRING"], &[fixed.as_slice(), options].concat());
        let place = Self { dir, table };
        place.write((0..3000).map(|key| (key, "+I", format!("{:x}", key * 7919 % 65521))));
        place.ok(&["compact", &place.table, "--full"]);
        for round in 0..3 {
            place.write((0..3000).step_by(7 + round).map(|key| {
                let kind = if key % 5 == 0 { "-D" } else { "+U" };
                (key, kind, format!("{round}-{:x}", key * 104_729 % 65_521))
            }));
        }
        place
    }

    fn write(&self, rows: impl Iterator<Item = (usize, &'static str, String)>) {
        let mut lines = String::new();
        for (key, kind, value) in rows {
            writeln!(lines, "{{\"k\":{key},\"v\":\"{value}\",\"op\":\"{kind}\"}}").unwrap();
        }
        paimon(
            &["write", &self.table, "--format", "json", "--kind-field", "op"],
            &lines,
        );
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn ok(&self, args: &[&str]) -> Value {
        paimon(args, "").into_iter().next().unwrap_or(Value::Null)
    }

    /// What a command that must fail says.
    fn refused(&self, args: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_paimon")).args(args).output().unwrap();
        assert!(!output.status.success(), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn rows(&self, table: &str) -> Vec<String> {
        let mut rows: Vec<String> = paimon(&["read", table], "").iter().map(Value::to_string).collect();
        rows.sort_unstable();
        rows
    }

    fn changes(&self, table: &str) -> Vec<String> {
        let changes = paimon(&["changelog", table, "--from", "earliest"], "");
        let mut changes: Vec<String> = changes.iter().map(Value::to_string).collect();
        changes.sort_unstable();
        changes
    }

    fn snapshots(&self) -> usize {
        std::fs::read_dir(Path::new(&self.table).join("snapshot"))
            .unwrap()
            .count()
    }

    /// A copy of the table, compacted by one process.
    fn compacted_copy(&self) -> String {
        let copy = self.path("copy");
        copy_folder(Path::new(&self.table), Path::new(&copy));
        self.ok(&["compact", &copy, "--full"]);
        copy
    }

    /// Plans in parts; gives the number of tasks.
    fn plan(&self) -> usize {
        let tasks = self.path("tasks.jsonl");
        let planned = self.ok(&[
            "compact",
            &self.table,
            "--full",
            "--plan",
            &tasks,
            "--part-bytes",
            "20kb",
        ]);
        usize::try_from(planned["tasks"].as_u64().unwrap()).unwrap()
    }

    /// Runs each task in a process of its own.
    fn run(&self, tasks: usize) -> Vec<String> {
        let plan = self.path("tasks.jsonl");
        let results = (1..=tasks).map(|number| {
            let result = self.path(&format!("{number}.jsonl"));
            paimon(
                &[
                    "compact-task",
                    "run",
                    &plan,
                    "--number",
                    &number.to_string(),
                    "--out",
                    &result,
                ],
                "",
            );
            result
        });
        results.collect()
    }

    fn commit(&self, results: &[String]) -> Value {
        let results = results.iter().map(String::as_str);
        self.ok(&["compact-task", "commit"]
            .into_iter()
            .chain(results)
            .collect::<Vec<_>>())
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
}

fn check_equal_to_one_process(options: &[&str]) {
    let place = Place::new(options);
    let copy = place.compacted_copy();
    let tasks = place.plan();
    assert!(tasks > 2, "{tasks} tasks");
    let results = place.run(tasks);
    let before = place.snapshots();
    // In any order.
    let reversed: Vec<String> = results.iter().rev().cloned().collect();
    let report = place.commit(&reversed);
    assert_eq!(place.snapshots(), before + 1);
    assert_eq!(place.rows(&place.table), place.rows(&copy));
    assert_eq!(place.changes(&place.table), place.changes(&copy));
    let level = |table: &str| {
        let bucket = place.ok(&["levels", table]);
        let runs = bucket["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 1, "{bucket}");
        (runs[0]["level"].clone(), runs[0]["rows"].clone())
    };
    assert_eq!(level(&place.table), level(&copy));
    // Done twice it is done once.
    let again = place.commit(&results);
    assert_eq!(again["snapshot"], report["snapshot"]);
    assert_eq!(place.snapshots(), before + 1);
    let refused = place.refused(&["compact-task", "abort", &results[0]]);
    assert!(refused.contains("it is committed, in snapshot"), "{refused}");
    assert_eq!(place.rows(&place.table), place.rows(&copy));
}

#[test]
fn parts_in_processes_of_their_own_make_the_same_table_as_one_process() {
    check_equal_to_one_process(&[]);
}

#[test]
fn with_a_changelog_by_look_ups() {
    check_equal_to_one_process(&["changelog-producer=lookup"]);
}

#[test]
fn with_a_changelog_by_full_compactions() {
    check_equal_to_one_process(&["changelog-producer=full-compaction"]);
}

/// Parts to a level below the top find old rows in files that they share, and mark them in one index file.
#[test]
fn with_deletion_vectors() {
    let place = Place::new(&["deletion-vectors.enabled=true", "num-sorted-run.compaction-trigger=2"]);
    let copy = place.path("copy");
    copy_folder(Path::new(&place.table), Path::new(&copy));
    place.ok(&["compact", &copy]);
    let tasks = place.path("tasks.jsonl");
    let planned = place.ok(&["compact", &place.table, "--plan", &tasks, "--part-bytes", "4kb"]);
    let results = place.run(usize::try_from(planned["tasks"].as_u64().unwrap()).unwrap());
    place.commit(&results);
    assert_eq!(place.rows(&place.table), place.rows(&copy));
    let deleted = |table: &str| -> Vec<Value> {
        let bucket = place.ok(&["levels", table]);
        let runs = bucket["runs"].as_array().unwrap();
        runs.iter().map(|run| run["deletedRows"].clone()).collect()
    };
    assert_eq!(deleted(&place.table), deleted(&copy));
    assert!(deleted(&place.table).iter().any(|rows| rows.as_i64() != Some(0)));
}

/// What a result names must be what was written; the latest snapshot would be unreadable.
#[test]
fn results_whose_files_or_levels_are_not_those_written_are_refused() {
    let place = Place::new(&[]);
    let results = place.run(place.plan());
    let rows = place.rows(&place.table);
    let commit = |first: &str| {
        let rest = results.iter().skip(1).map(String::as_str);
        let args: Vec<&str> = ["compact-task", "commit", first].into_iter().chain(rest).collect();
        place.refused(&args)
    };
    let result: Value = serde_json::from_str(&std::fs::read_to_string(&results[0]).unwrap()).unwrap();
    let edited = place.path("edited.jsonl");
    for level in [-5, 0, 1, 99] {
        let mut result = result.clone();
        result["result"]["after"][0]["level"] = level.into();
        std::fs::write(&edited, format!("{result}\n")).unwrap();
        let refused = commit(&edited);
        assert!(refused.contains(&format!("is on level {level}, where ")), "{refused}");
    }
    let name = result["result"]["after"][0]["file_name"].as_str().unwrap();
    let file = Path::new(&place.table).join("bucket-0").join(name);
    let bytes = std::fs::read(&file).unwrap();
    for length in [0, 100] {
        std::fs::write(&file, &bytes[..length]).unwrap();
        let refused = commit(&results[0]);
        let expected = format!("{name}: corrupt: it was to be committed, but has {length} bytes, not ");
        assert!(refused.contains(&expected), "{refused}");
    }
    assert_eq!(place.rows(&place.table), rows);
    std::fs::write(&file, &bytes).unwrap();
    place.commit(&results);
    assert_eq!(place.rows(&place.table), rows);
}

#[test]
fn lost_doubled_mixed_and_stale_results_are_refused_and_change_nothing() {
    let place = Place::new(&[]);
    let tasks = place.plan();
    let results = place.run(tasks);
    let (before, rows) = (place.snapshots(), place.rows(&place.table));
    let commit = |results: &[&str]| place.refused(&[&["compact-task", "commit"], results].concat());
    let all: Vec<&str> = results.iter().map(String::as_str).collect();
    let refused = commit(&all[1..]);
    assert!(
        refused.contains(&format!("the result of task 1 of {tasks} is missing")),
        "{refused}"
    );
    let refused = commit(&[all.as_slice(), &all[..1]].concat());
    assert!(
        refused.contains(&format!("task 1 of {tasks} (bucket-0, part 1 of ")),
        "{refused}"
    );
    assert!(refused.contains("its result is there twice"), "{refused}");
    let other_plan = place.plan();
    assert_eq!(other_plan, tasks);
    let other = place.path("other.jsonl");
    place.ok(&[
        "compact-task",
        "run",
        &place.path("tasks.jsonl"),
        "--number",
        "1",
        "--out",
        &other,
    ]);
    let refused = commit(&[&all[1..], &[other.as_str()]].concat());
    assert!(refused.contains("results of several plans"), "{refused}");

    place.ok(&["compact", &place.table, "--full"]);
    assert_eq!(place.snapshots(), before + 1);
    let refused = commit(&all);
    assert!(refused.contains("its result is stale"), "{refused}");
    assert!(refused.contains("plan again"), "{refused}");
    assert_eq!((place.snapshots(), place.rows(&place.table)), (before + 1, rows));

    // What will never be committed is removed.
    let files = || {
        std::fs::read_dir(Path::new(&place.table).join("bucket-0"))
            .unwrap()
            .count()
    };
    let with_results = files();
    let abort: Vec<&str> = ["compact-task", "abort"].into_iter().chain(all).collect();
    place.ok(&abort);
    place.ok(&["compact-task", "abort", &other]);
    assert!(files() < with_results);
    place.rows(&place.table);

    let broken = place.path("broken.jsonl");
    std::fs::write(&broken, "{}\n").unwrap();
    let refused = commit(&[&broken]);
    assert!(
        refused.contains("broken.jsonl, line 1: not what paimon wrote there"),
        "{refused}"
    );
}

#[test]
fn a_committed_plan_is_not_run_and_what_cannot_be_handed_on_is_removed() {
    let place = Place::new(&[]);
    let files = || {
        std::fs::read_dir(Path::new(&place.table).join("bucket-0"))
            .unwrap()
            .count()
    };
    let tasks = place.path("tasks.jsonl");
    let count = place.plan();
    let planned = std::fs::read(&tasks).unwrap();
    let refused = place.refused(&["compact-task", "run", &tasks, "--out", &tasks]);
    assert!(refused.contains("this file is read too"), "{refused}");
    assert_eq!(std::fs::read(&tasks).unwrap(), planned);

    let before = files();
    let out = place.path("none/out.jsonl");
    let refused = place.refused(&["compact-task", "run", &tasks, "--out", &out]);
    assert!(refused.contains("none/out.jsonl: No such file"), "{refused}");
    assert_eq!(files(), before);

    place.commit(&place.run(count));
    let after = files();
    let refused = place.refused(&["compact-task", "run", &tasks, "--out", &out]);
    assert!(refused.contains("it is committed, in snapshot"), "{refused}");
    assert_eq!(files(), after);
}
