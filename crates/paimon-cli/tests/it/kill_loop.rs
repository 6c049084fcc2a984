//! Writers and compactors that are killed at random moments, and started again.

#![expect(clippy::disallowed_methods, reason = "real processes run for a real time")]

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::paimon;

/// How often a process is killed. `PAIMON_TEST_KILLS=200` for a long run.
fn kills_wanted() -> usize {
    let kills = env::var("PAIMON_TEST_KILLS").ok().and_then(|text| text.parse().ok());
    kills.unwrap_or(12)
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

/// Runs a process, with this input, and kills it after a while, unless it ends before. Whether it ended, which must be well.
fn run(args: &[&str], input: &str, after: Duration) -> bool {
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
    let died = end.status.code().is_none();
    assert!(
        died || end.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&end.stderr)
    );
    !died
}

/// What the processes have done so far.
#[derive(Default)]
struct Progress {
    kills: AtomicUsize,
    /// The last commit of each writer that was acknowledged: its process ended well.
    acknowledged: [AtomicI64; WRITERS],
    compactions: AtomicUsize,
}

impl Progress {
    fn goes_on(&self) -> bool {
        self.kills.load(Ordering::SeqCst) < kills_wanted()
    }
}

/// Commits again and again; what was not acknowledged is tried again under the same number.
fn keep_writing(table: &str, writer: usize, progress: &Progress) {
    let (user, mut random) = (format!("writer-{writer}"), Numbers(writer as u64));
    let acknowledged = &progress.acknowledged[writer];
    while progress.goes_on() {
        let commit = acknowledged.load(Ordering::SeqCst) + 1;
        let mut lines = String::new();
        for key in (0..SHARED_KEYS).chain([marker(writer, commit)]) {
            writeln!(lines, "{{\"k\":{key},\"n\":1}}").unwrap();
        }
        let identifier = commit.to_string();
        let named = ["--commit-user", &user, "--identifier", &identifier];
        let args = [&["write", table, "--format", "json"][..], &named].concat();
        let ended = run(&args, &lines, Duration::from_millis(random.below(500)));
        acknowledged.fetch_add(i64::from(ended), Ordering::SeqCst);
        progress.kills.fetch_add(usize::from(!ended), Ordering::SeqCst);
    }
}

/// Compacts again and again, now with one pick, now fully.
fn keep_compacting(table: &str, progress: &Progress) {
    let mut random = Numbers(99);
    while progress.goes_on() {
        let mut args = vec!["compact", table];
        if random.below(3) == 0 {
            args.push("--full");
        }
        let ended = run(&args, "", Duration::from_millis(random.below(700)));
        let count = if ended { &progress.compactions } else { &progress.kills };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads the table. Every commit is there wholly or not at all, and once; those that were acknowledged before are there.
fn check(table: &str, snapshot: Option<&str>, progress: Option<&Progress>) {
    let acknowledged =
        progress.map(|progress| progress.acknowledged.each_ref().map(|last| last.load(Ordering::SeqCst)));
    let mut args = vec!["read", table];
    args.extend(snapshot.iter().flat_map(|id| ["--snapshot", id]));
    let counts: BTreeMap<i64, i64> = paimon(&args, "")
        .iter()
        .map(|row| (row["k"].as_i64().unwrap(), row["n"].as_i64().unwrap()))
        .collect();
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
    for (writer, last) in acknowledged.iter().flatten().enumerate() {
        for commit in 1..=*last {
            assert!(
                counts.contains_key(&marker(writer, commit)),
                "commit {commit} of writer {writer} is lost"
            );
        }
    }
}

/// The ids of all snapshots; nothing else may be in their folder but hints, and leftovers whose names begin with a dot.
fn snapshots(table: &str) -> Vec<u64> {
    let names = std::fs::read_dir(Path::new(table).join("snapshot")).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let known = names.filter(|name| !name.starts_with('.') && name != "LATEST" && name != "EARLIEST");
    let mut ids: Vec<u64> = known
        .map(|name| name.strip_prefix("snapshot-").unwrap().parse().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn acknowledged_commits_are_there_once_whatever_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t");
    let table = table.to_str().unwrap();
    let columns = [
        "create",
        table,
        "--column",
        "k BIGINT",
        "--column",
        "n BIGINT",
        "--primary-key",
        "k",
    ];
    let options = [
        "bucket=2",
        "write-only=true",
        "merge-engine=aggregation",
        "fields.n.aggregate-function=sum",
    ];
    let options = options.iter().flat_map(|option| ["-D", option]);
    paimon(&columns.into_iter().chain(options).collect::<Vec<_>>(), "");

    let progress = Progress::default();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let progress = &progress;
            scope.spawn(move || keep_writing(table, writer, progress));
        }
        // Two compactors get into each other's way, too.
        for _ in 0..2 {
            scope.spawn(|| keep_compacting(table, &progress));
        }
        while progress.goes_on() {
            if Path::new(table).join("snapshot/snapshot-1").exists() {
                check(table, None, Some(&progress));
            }
            thread::sleep(Duration::from_millis(50));
        }
    });
    check(table, None, Some(&progress));
    let ids = snapshots(table);
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    for id in ids.iter().step_by(ids.len().div_ceil(50)) {
        check(table, Some(&id.to_string()), None);
    }
    paimon(&["compact", table, "--full"], "");
    check(table, None, Some(&progress));
    let acknowledged = progress.acknowledged.each_ref().map(|last| last.load(Ordering::SeqCst));
    let (kills, compactions) = (progress.kills.into_inner(), progress.compactions.into_inner());
    println!(
        "{kills} kills, {acknowledged:?} commits acknowledged, {compactions} compactions ended, {} snapshots",
        ids.len()
    );
    assert!(acknowledged.iter().all(|last| *last > 0) && compactions > 0);
}
