//! Tables on a real S3 server: `.ci/with_s3.py cargo test -p paimon-cli s3`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use paimon::format::storage::testing::S3Server;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::paimon;

/// Commits of each writer.
const COMMITS: i64 = 6;

/// A table's URL on the server, and how to reach it.
struct Place {
    table: String,
    /// Holds the options file.
    dir: TempDir,
}

impl Place {
    /// `None`: there is no server.
    fn new() -> Option<Self> {
        let server = S3Server::from_env()?;
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().file_name().unwrap().to_str().unwrap().replace('.', "");
        let place = Self {
            table: format!("s3://{}/{name}/shop.db/orders", server.bucket),
            dir,
        };
        let lines = server.options.iter().map(|(key, value)| format!("{key}={value}\n"));
        fs::write(place.options_file(), lines.collect::<String>()).unwrap();
        Some(place)
    }

    fn options_file(&self) -> String {
        self.dir.path().join("s3.properties").to_str().unwrap().to_owned()
    }

    /// Runs `paimon COMMAND TABLE ARGS` as a process of its own; gives its lines of JSON.
    fn run(&self, command: &str, args: &[&str], input: &str) -> Vec<Value> {
        let file = self.options_file();
        let all = [&[command, &self.table, "--options-file", &file], args].concat();
        paimon(&all, input)
    }

    fn create(&self) {
        let columns = ["--column", "k BIGINT", "--column", "v STRING", "--primary-key", "k"];
        let options = ["-D", "bucket=2", "-D", "write-only=true"];
        self.run("create", &[columns.as_slice(), &options].concat(), "");
    }

    fn write(&self, rows: &[Value]) {
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        self.run("write", &["--format", "json", "--kind-field", "kind"], &lines);
    }

    fn compact(&self, args: &[&str]) -> Value {
        let all = [&["-D", "write-only=false"], args].concat();
        self.run("compact", &all, "").remove(0)
    }

    fn rows(&self, args: &[&str]) -> BTreeMap<i64, String> {
        let read = self.run("read", args, "");
        let rows = read
            .iter()
            .map(|row| (row["k"].as_i64().unwrap(), row["v"].as_str().unwrap().to_owned()));
        let rows: BTreeMap<_, _> = rows.collect();
        assert_eq!(rows.len(), read.len(), "a key twice");
        rows
    }

    /// All ids, ascending.
    fn snapshots(&self) -> Vec<i64> {
        let listed = self.run("snapshots", &["--limit", "1000"], "");
        let mut ids: Vec<i64> = listed.iter().map(|snapshot| snapshot["id"].as_i64().unwrap()).collect();
        ids.sort_unstable();
        ids
    }
}

fn row(kind: &str, key: i64, value: &str) -> Value {
    json!({"kind": kind, "k": key, "v": value})
}

fn expected(rows: &[(i64, &str)]) -> BTreeMap<i64, String> {
    rows.iter().map(|&(key, value)| (key, value.to_owned())).collect()
}

#[test]
fn a_table_on_s3_is_written_compacted_and_read() {
    let Some(place) = Place::new() else { return };
    place.create();
    place.write(&[row("+I", 1, "a"), row("+I", 2, "b"), row("+I", 3, "c")]);
    place.write(&[row("+U", 1, "a2"), row("-D", 2, ""), row("+I", 4, "d")]);
    let rows = expected(&[(1, "a2"), (3, "c"), (4, "d")]);
    assert_eq!(place.rows(&[]), rows);
    let report = place.compact(&["--full"]);
    assert_eq!(
        (&report["result"], &report["rowsIn"], &report["rowsOut"]),
        (&json!("done"), &json!(6), &json!(3))
    );
    assert_eq!(place.compact(&["--full"])["result"], "nothing to do");
    assert_eq!(place.rows(&[]), rows);
    assert_eq!(
        place.rows(&["--snapshot", "1"]),
        expected(&[(1, "a"), (2, "b"), (3, "c")])
    );
    assert_eq!(place.rows(&["--where", "v = 'd'"]), expected(&[(4, "d")]));
    assert_eq!(place.snapshots(), [1, 2, 3]);
    let levels = place.run("levels", &[], "");
    let runs = levels.iter().flat_map(|bucket| bucket["runs"].as_array().unwrap());
    assert!(runs.map(|run| run["level"].as_i64().unwrap()).all(|level| level == 5));
}

#[test]
fn writers_and_a_compactor_race_for_snapshots_on_s3() {
    let Some(place) = Place::new() else { return };
    place.create();
    let done = AtomicBool::new(false);
    let compacted = thread::scope(|scope| {
        let place = &place;
        let writers = [0, 1].map(|writer| {
            scope.spawn(move || {
                for commit in 0..COMMITS {
                    let value = format!("{writer}-{commit}");
                    // A key of its own, one that this writer writes anew, one that it takes back.
                    let own = writer * 1000 + commit;
                    place.write(&[
                        row("+I", own, &value),
                        row("+U", writer * 1000 + 500, &value),
                        row("-D", own - 1, ""),
                    ]);
                }
            })
        });
        let compactor = scope.spawn(|| {
            let mut compacted = 0;
            while !done.load(Ordering::SeqCst) {
                let args: &[&str] = if compacted % 2 == 0 { &["--full"] } else { &[] };
                compacted += usize::from(place.compact(args)["result"] == "done");
            }
            compacted
        });
        let written = writers.map(thread::ScopedJoinHandle::join);
        done.store(true, Ordering::SeqCst);
        for written in written {
            written.unwrap();
        }
        compactor.join().unwrap()
    });
    let last = COMMITS - 1;
    let rows: BTreeMap<i64, String> = [0, 1]
        .into_iter()
        .flat_map(|writer| [(writer * 1000 + last), (writer * 1000 + 500)].map(|key| (key, format!("{writer}-{last}"))))
        .collect();
    assert!(compacted > 0, "the compactor found no work");
    assert_eq!(place.rows(&[]), rows);
    place.compact(&["--full"]);
    assert_eq!(place.rows(&[]), rows);
    let ids = place.snapshots();
    assert_eq!(ids, (1..=ids.len() as i64).collect::<Vec<_>>());
    assert!(ids.len() as i64 > 2 * COMMITS, "each commit is a snapshot");
    for id in &ids {
        place.rows(&["--snapshot", &id.to_string()]);
    }
}
