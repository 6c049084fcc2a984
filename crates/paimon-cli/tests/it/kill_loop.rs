//! Writers and compactors that are killed at random moments, and started again.

#![expect(clippy::disallowed_methods, reason = "real processes run for a real time")]

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{create_table, paimon, run_time};
use crate::table_files::Leftovers;

/// How many kills `PAIMON_TEST_KILLS` asks for. Without it the loop goes on for [`run_time`].
fn kills_wanted() -> Option<usize> {
    env::var("PAIMON_TEST_KILLS").ok().and_then(|text| text.parse().ok())
}

/// Each commit adds one to each of these keys, and makes a key of its own.
const SHARED_KEYS: i64 = 10;
const WRITERS: usize = 2;

/// Numbers that look random and are the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// The key that says that a commit is there: its count must be one.
fn marker(writer: usize, commit: i64) -> i64 {
    (writer as i64 + 1) * 1_000_000 + commit
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Killed,
    Well,
    /// A compaction to which others were first each time that it tried: it says so, and has changed nothing.
    Conflict,
}

/// Runs a process, with this input, and kills it after a while, unless it ends before.
fn run(args: &[&str], input: &str, after: Duration) -> End {
    let mut child: Child = Command::new(env!("CARGO_BIN_EXE_paimon"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    thread::sleep(after);
    let killed = child.try_wait().unwrap().is_none();
    if killed {
        child.kill().unwrap();
    }
    let end = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&end.stderr);
    match end.status.code() {
        None => End::Killed,
        Some(0) => End::Well,
        Some(1) if args[0] == "compact" && said.starts_with("error: commit conflict") => End::Conflict,
        _ => panic!("{args:?}: {said}"),
    }
}

/// What the processes have done so far.
struct Progress {
    started: Instant,
    kills: AtomicUsize,
    /// The last commit of each writer that was acknowledged: its process ended well.
    acknowledged: [AtomicI64; WRITERS],
}

impl Progress {
    /// Whether there is more to kill, or a writer that has not come to anything yet.
    fn goes_on(&self) -> bool {
        let more = match kills_wanted() {
            Some(kills) => self.kills.load(Ordering::SeqCst) < kills,
            None => self.started.elapsed() < run_time(),
        };
        more || self.acknowledged().contains(&0)
    }

    fn acknowledged(&self) -> [i64; WRITERS] {
        self.acknowledged.each_ref().map(|last| last.load(Ordering::SeqCst))
    }
}

/// Runs processes one after the other, and kills each at a random moment, unless it ends before.
struct Killer<'a> {
    progress: &'a Progress,
    random: Numbers,
    /// The latest moment. It grows while none ends, as a machine may be slow.
    patience_ms: u64,
}

impl<'a> Killer<'a> {
    const PATIENCE_MS: u64 = 500;

    fn new(progress: &'a Progress, seed: u64) -> Self {
        let (random, patience_ms) = (Numbers(seed), Self::PATIENCE_MS);
        Self {
            progress,
            random,
            patience_ms,
        }
    }

    /// Whether the process did what it was to do before it was killed.
    fn run(&mut self, args: &[&str], input: &str) -> bool {
        let end = run(args, input, Duration::from_millis(self.random.below(self.patience_ms)));
        if end == End::Killed {
            self.progress.kills.fetch_add(1, Ordering::SeqCst);
            self.patience_ms += Self::PATIENCE_MS / 10;
        } else {
            self.patience_ms = Self::PATIENCE_MS;
        }
        end == End::Well
    }
}

/// The lines of one commit.
fn lines_of(writer: usize, commit: i64) -> String {
    let mut lines = String::new();
    for key in (0..SHARED_KEYS).chain([marker(writer, commit)]) {
        writeln!(lines, "{{\"k\":{key},\"n\":1}}").unwrap();
    }
    lines
}

/// Commits again and again; what was not acknowledged is tried again under the same number.
fn keep_writing(table: &str, progress: &Progress) {
    const WRITER: usize = 0;
    let mut killer = Killer::new(progress, 1);
    let acknowledged = &progress.acknowledged[WRITER];
    while progress.goes_on() {
        let commit = acknowledged.load(Ordering::SeqCst) + 1;
        let identifier = commit.to_string();
        let named = ["--commit-user", "writer", "--identifier", &identifier];
        let args = [&["write", table, "--format", "json"][..], &named].concat();
        let ended = killer.run(&args, &lines_of(WRITER, commit));
        acknowledged.fetch_add(i64::from(ended), Ordering::SeqCst);
    }
}

/// Takes in a stream that grows by some commits whenever all of it was acknowledged; otherwise it goes on where it was killed.
fn keep_ingesting(table: &str, stream: &Path, progress: &Progress) {
    const WRITER: usize = 1;
    const STEP: i64 = 4;
    let mut killer = Killer::new(progress, 2);
    let mut file = OpenOptions::new().create(true).append(true).open(stream).unwrap();
    let acknowledged = &progress.acknowledged[WRITER];
    let rows = (SHARED_KEYS + 1).to_string();
    let job = ["--commit-user", "job", "--commit-rows", &rows, "--format", "json"];
    let args = [&["ingest", table, stream.to_str().unwrap()][..], &job].concat();
    let mut ended = true;
    while progress.goes_on() {
        if ended {
            let last = acknowledged.load(Ordering::SeqCst);
            let more: String = (last + 1..=last + STEP)
                .map(|commit| lines_of(WRITER, commit))
                .collect();
            file.write_all(more.as_bytes()).unwrap();
        }
        ended = killer.run(&args, "");
        acknowledged.fetch_add(if ended { STEP } else { 0 }, Ordering::SeqCst);
    }
}

/// Compacts again and again, now with one pick, now fully.
fn keep_compacting(table: &str, progress: &Progress) {
    let (mut killer, mut random) = (Killer::new(progress, 3), Numbers(99));
    while progress.goes_on() {
        match random.below(3) {
            0 => killer.run(&["compact", table, "--full"], ""),
            _ => killer.run(&["compact", table], ""),
        };
    }
}

/// A service that would go on for good.
fn keep_watching(table: &str, progress: &Progress) {
    let mut killer = Killer::new(progress, 4);
    while progress.goes_on() {
        // It never ends by itself, and shall come to some rounds.
        killer.patience_ms = 4 * Killer::PATIENCE_MS;
        killer.run(&["compact", table, "--watch", "--interval", "20 ms"], "");
    }
}

/// Counts by key.
type Counts = BTreeMap<i64, i64>;

fn key_and_count(row: &Value) -> (i64, i64) {
    (row["k"].as_i64().unwrap(), row["n"].as_i64().unwrap())
}

fn read(table: &str, snapshot: Option<&str>) -> Counts {
    let mut args = vec!["read", table];
    args.extend(snapshot.iter().flat_map(|id| ["--snapshot", id]));
    paimon(&args, "").iter().map(key_and_count).collect()
}

/// Checks that every commit is there wholly or not at all, and once, and that those are there that were acknowledged before it was read.
fn check(counts: &Counts, acknowledged: [i64; WRITERS]) {
    let markers: Vec<(&i64, &i64)> = counts.range(SHARED_KEYS..).collect();
    assert!(
        markers.iter().all(|(_, count)| **count == 1),
        "counted twice: {markers:?}"
    );
    let commits = markers.len() as i64;
    for key in 0..SHARED_KEYS {
        assert_eq!(
            counts.get(&key).copied().unwrap_or(0),
            commits,
            "half a commit, key {key}"
        );
    }
    for (writer, last) in acknowledged.into_iter().enumerate() {
        for commit in 1..=last {
            assert!(
                counts.contains_key(&marker(writer, commit)),
                "commit {commit} of writer {writer} is lost"
            );
        }
    }
}

/// What the changelog makes of an empty table. Every change must fit what is there.
fn replay(table: &str) -> Counts {
    let mut counts = Counts::new();
    for change in paimon(&["changelog", table, "--from", "earliest"], "") {
        let (key, count) = key_and_count(&change);
        let held = counts.remove(&key);
        match change["rowkind"].as_str().unwrap() {
            "-U" => assert_eq!(held, Some(count), "{change}"),
            "+I" | "+U" => {
                assert_eq!(held, None, "{change}");
                counts.insert(key, count);
            }
            kind => panic!("nothing was deleted: {kind} {change}"),
        }
    }
    counts
}

/// The ids of all snapshots; nothing else may be in their folder but hints, and leftovers whose names begin with a dot.
fn snapshots(table: &str) -> Vec<u64> {
    let names = fs::read_dir(Path::new(table).join("snapshot")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let known = names.filter(|name| !name.starts_with('.') && name != "LATEST" && name != "EARLIEST");
    let mut ids: Vec<u64> = known
        .map(|name| name.strip_prefix("snapshot-").unwrap().parse().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

/// A table whose compactions make data files, changelog files, deletion vectors and lookup files.
fn create(table: &str) {
    let options = [
        "bucket=2",
        "write-only=true",
        "merge-engine=aggregation",
        "fields.n.aggregate-function=sum",
        "changelog-producer=lookup",
        "deletion-vectors.enabled=true",
        "deletion-vectors.merge-on-read=true",
        "lookup.remote-file.enabled=true",
        "manifest.merge-min-count=5",
    ];
    create_table(table, &["k BIGINT", "n BIGINT"], &options);
}

#[test]
fn whatever_is_killed_every_commit_is_there_once_and_leftovers_are_in_no_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let (table, stream) = (dir.path().join("t"), dir.path().join("stream.jsonl"));
    let table = table.to_str().unwrap();
    create(table);
    let progress = Progress {
        started: Instant::now(),
        kills: AtomicUsize::new(0),
        acknowledged: Default::default(),
    };
    thread::scope(|scope| {
        scope.spawn(|| keep_writing(table, &progress));
        scope.spawn(|| keep_ingesting(table, &stream, &progress));
        // Two compactors get into each other's way, too.
        scope.spawn(|| keep_compacting(table, &progress));
        scope.spawn(|| keep_watching(table, &progress));
        while progress.goes_on() {
            if Path::new(table).join("snapshot/snapshot-1").exists() {
                let acknowledged = progress.acknowledged();
                check(&read(table, None), acknowledged);
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    let acknowledged = progress.acknowledged();
    let counts = read(table, None);
    check(&counts, acknowledged);
    let ids = snapshots(table);
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());

    let leftovers = Leftovers::of(table);
    println!(
        "{} kills, {acknowledged:?} commits acknowledged, {} snapshots, {leftovers}",
        progress.kills.into_inner(),
        ids.len()
    );
    leftovers.remove(table);
    assert_eq!(read(table, None), counts);
    for id in &ids {
        check(&read(table, Some(&id.to_string())), [0; WRITERS]);
    }

    paimon(&["compact", table, "--full"], "");
    assert_eq!(read(table, None), counts);
    assert_eq!(replay(table), counts);
}
