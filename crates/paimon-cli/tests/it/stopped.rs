//! Processes that are asked to end in the middle of their work: what was committed stays, and nothing else is left.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "real processes run for a real time")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{create_table, paimon};

/// A table of one bucket that counts, whose full buffer becomes a file at once.
struct Place {
    dir: tempfile::TempDir,
    table: String,
}

impl Place {
    fn new(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("t").to_str().unwrap().to_owned();
        let fixed = [
            "bucket=1",
            "merge-engine=aggregation",
            "fields.n.aggregate-function=sum",
            "write-buffer-size=192 kb",
            "write-buffer-spillable=false",
            "target-file-size=64 kb",
        ];
        create_table(
            &table,
            &["k BIGINT", "n BIGINT", "v STRING"],
            &[fixed.as_slice(), options].concat(),
        );
        Self { dir, table }
    }

    /// The rows of a table with these keys: each wide, and counting one.
    fn lines(keys: std::ops::Range<usize>) -> String {
        let mut lines = String::new();
        for key in keys {
            writeln!(
                lines,
                "{{\"k\":{key},\"n\":1,\"v\":\"{}\"}}",
                format!("{key:x}").repeat(40)
            )
            .unwrap();
        }
        lines
    }

    /// All files of the table.
    fn files(&self) -> BTreeSet<String> {
        files_below(Path::new(&self.table))
    }

    fn snapshots(&self) -> usize {
        std::fs::read_dir(Path::new(&self.table).join("snapshot")).map_or(0, |files| {
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            names.filter(|name| name.starts_with("snapshot-")).count()
        })
    }

    /// Files of the bucket that no snapshot names.
    fn strays(&self) -> Vec<String> {
        let mut strays = files_below(&Path::new(&self.table).join("bucket-0"));
        for id in 1..=self.snapshots() {
            for file in paimon(&["files", &self.table, "--snapshot", &id.to_string()], "") {
                strays.retain(|stray| !stray.ends_with(file["file"].as_str().unwrap()));
            }
        }
        strays.into_iter().collect()
    }

    /// How often each key was counted.
    fn counts(&self) -> Vec<u64> {
        let rows = paimon(&["read", &self.table], "");
        rows.iter().map(|row| row["n"].as_u64().unwrap()).collect()
    }
}

fn files_below(folder: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let Ok(entries) = std::fs::read_dir(folder) else {
        return files;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => {
                files.insert(path.to_str().unwrap().to_owned());
            }
        }
    }
    files
}

/// A process in the middle of its work.
struct Working {
    child: Child,
    /// Kept open: its input has no end yet.
    input: Option<ChildStdin>,
}

impl Working {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_paimon"))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        Self { child, input }
    }

    fn feed(&mut self, lines: &str) {
        self.input.as_mut().unwrap().write_all(lines.as_bytes()).unwrap();
    }

    fn wait_until(&mut self, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended");
            assert!(Instant::now() < deadline, "it does not come so far");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Gives its exit code and what it said.
    fn ask(self, signal: &str) -> (Option<i32>, String) {
        let process = self.child.id().to_string();
        let kill = Command::new("kill").args([signal, &process]).status();
        assert!(kill.unwrap().success());
        let output = self.child.wait_with_output().unwrap();
        drop(self.input);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn a_write() {
    for (signal, code, name) in [("-TERM", 143, "SIGTERM"), ("-INT", 130, "ctrl-c")] {
        let place = Place::new(&[]);
        paimon(&["write", &place.table], &Place::lines(0..10));
        let before = place.files();
        let mut writing = Working::start(&["write", &place.table]);
        writing.feed(&Place::lines(0..9000));
        writing.wait_until(|| place.files() != before);
        let (exit, said) = writing.ask(signal);
        assert_eq!(
            (exit, said),
            (Some(code), format!("error: stopped by {name}: nothing was committed\n"))
        );
        assert_eq!(place.files(), before);
        assert_eq!(place.counts(), [1; 10]);
    }
}

/// It commits with the second batch of 8192 rows, and has the third in its files.
#[test]
fn a_write_that_has_committed() {
    let place = Place::new(&[]);
    let mut writing = Working::start(&["write", &place.table, "--commit-every", "16000"]);
    writing.feed(&Place::lines(0..25_000));
    writing.wait_until(|| place.snapshots() > 0 && !place.strays().is_empty());
    let (exit, said) = writing.ask("-TERM");
    let expected = "error: stopped by SIGTERM: 1 commit made before, nothing of the rest is in the table\n";
    assert_eq!((exit, said.as_str()), (Some(143), expected));
    assert_eq!(place.strays(), [""; 0]);
    assert_eq!(place.counts(), [1; 16_384]);
}

/// Its input is a pipe that stays open; what it goes on with is a file.
#[test]
fn an_ingest_goes_on_where_its_last_commit_ended() {
    let place = Place::new(&[]);
    let input = place.dir.path().join("in.jsonl");
    assert!(Command::new("mkfifo").arg(&input).status().unwrap().success());
    let args = ["ingest", &place.table, input.to_str().unwrap(), "--format", "json"];
    let args = [&args[..], &["--commit-user", "job", "--commit-rows", "5000"]].concat();
    let mut taking = Working::start(&args);
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&input).unwrap();
    pipe.write_all(Place::lines(0..9_900).as_bytes()).unwrap();
    taking.wait_until(|| place.snapshots() > 0 && !place.strays().is_empty());
    let (exit, said) = taking.ask("-TERM");
    assert_eq!(exit, Some(143), "{said}");
    let ends = format!("what is in the table ends with line 5000 of {}", input.display());
    assert!(said.contains(&ends), "{said}");
    assert_eq!(place.strays(), [""; 0]);
    assert_eq!(place.counts(), [1; 5000]);

    drop(pipe);
    std::fs::remove_file(&input).unwrap();
    std::fs::write(&input, Place::lines(0..12_000)).unwrap();
    let report = paimon(&args, "");
    assert_eq!(report[0]["resumedAt"]["line"], Value::from(5000));
    assert_eq!(place.counts(), [1; 12_000]);
}

/// Eight runs of all keys. With little memory they are merged in many steps, and many files are ended between them.
fn to_compact() -> Place {
    let place = Place::new(&["write-only=true"]);
    for _ in 0..8 {
        let flushed = Place::lines(0..30_000);
        paimon(&["write", &place.table, "-D", "write-buffer-size=256 mb"], &flushed);
    }
    place
}

#[test]
fn compactions() {
    let place = to_compact();
    let before = place.files();
    let mut compacting = Working::start(&["compact", &place.table, "--full", "--memory", "12mb"]);
    compacting.wait_until(|| place.files().len() > before.len() + 1);
    let (exit, said) = compacting.ask("-TERM");
    assert_eq!(
        (exit, said.as_str()),
        (Some(143), "error: stopped by SIGTERM: compacted nothing\n")
    );
    assert_eq!(place.files(), before);

    let (tasks, results) = (place.dir.path().join("tasks"), place.dir.path().join("results"));
    let (tasks, results) = (tasks.to_str().unwrap(), results.to_str().unwrap());
    paimon(&["compact", &place.table, "--full", "--plan", tasks], "");
    let mut running = Working::start(&["compact-task", "run", tasks, "--out", results, "--memory", "12mb"]);
    running.wait_until(|| place.files().len() > before.len() + 1);
    let (exit, said) = running.ask("-INT");
    assert_eq!(
        (exit, said.as_str()),
        (Some(130), "error: stopped by ctrl-c: no result was written\n")
    );
    assert_eq!(place.files(), before);
    assert!(!Path::new(results).exists());
    assert_eq!(place.counts(), [8; 30_000]);
}
