//! `paimon changelog`: what changed, once or as it comes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};

use insta::assert_snapshot;

use crate::support::{Shell, create_table, paimon};

/// Two writes, a full compaction, a delete.
async fn shop() -> Shell {
    let shell = Shell::new();
    shell.create().await;
    shell
        .write(
            "{\"op\":\"+I\",\"id\":1,\"city\":\"Wien\",\"amount\":\"1.50\"}\n\
             {\"op\":\"+I\",\"id\":2,\"city\":\"Praha, \\\"1\\\"\"}\n",
        )
        .await;
    shell
        .write("{\"op\":\"+U\",\"id\":1,\"city\":\"Brno\",\"amount\":\"2.00\"}\n")
        .await;
    shell.ok(&["compact", "@t", "--full"]).await;
    shell.write("{\"op\":\"-D\",\"id\":2}\n").await;
    shell
}

/// Commands and what they print.
async fn session(shell: &Shell, commands: &[&[&str]]) -> String {
    let mut all = String::new();
    for command in commands {
        let ran = shell.run(command).await;
        all += &format!("$ paimon {}\n{}", command.join(" "), ran.out);
        if ran.code != 0 {
            all += &format!("{}exit code {}\n", ran.err, ran.code);
        }
        all += "\n";
    }
    all
}

#[tokio::test]
async fn changes_are_printed_with_their_kinds() {
    let shell = shop().await;
    let commands: &[&[&str]] = &[
        &["changelog", "@t"],
        &["changelog", "@t", "--from", "earliest"],
        &["changelog", "@t", "--from", "earliest", "--json"],
        &["changelog", "@t", "--from", "snapshot=2", "--format", "csv"],
        &["changelog", "@t", "--from", "latest"],
        &[
            "changelog",
            "@t",
            "--from",
            "earliest",
            "--columns",
            "city",
            "--where",
            "id = 1",
        ],
        &["changelog", "@t", "--between", "1,4"],
        &["changelog", "@t", "--between", "0,1", "--mode", "changelog"],
    ];
    assert_snapshot!(session(&shell, commands).await);
}

#[tokio::test]
async fn wrong_calls_are_told() {
    let shell = shop().await;
    let commands: &[&[&str]] = &[
        &["changelog", "@t", "--from", "yesterday"],
        &["changelog", "@t", "--between", "4,1"],
        &["changelog", "@t", "--between", "3"],
        &["changelog", "@t", "--from", "snapshot=9"],
        &["changelog", "@t", "--consumer", "a/b"],
        &["changelog", "@t", "--columns", "price"],
    ];
    assert_snapshot!(session(&shell, commands).await);
}

#[tokio::test]
async fn a_consumer_gets_each_change_once() {
    let shell = shop().await;
    let consume = [
        "changelog",
        "@t",
        "--consumer",
        "c",
        "--from",
        "earliest",
        "--format",
        "csv",
    ];
    assert_eq!(shell.ok(&consume).await.lines().count(), 1 + 4);
    assert_eq!(shell.ok(&consume).await, "rowkind,id,city,amount\n");
    shell.write("{\"op\":\"+I\",\"id\":7}\n").await;
    assert_eq!(shell.ok(&consume).await, "rowkind,id,city,amount\n+I,7,,\n");
    let again = [consume.as_slice(), &["--restart"]].concat();
    assert_eq!(shell.ok(&again).await.lines().count(), 1 + 5);
}

/// `paimon changelog TABLE --follow` as a process.
struct Follower {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Follower {
    fn start(table: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_paimon"))
            .args([
                "changelog",
                table,
                "--from",
                "earliest",
                "--follow",
                "--consumer",
                "c",
                "--json",
            ])
            .args(["-D", "continuous.discovery-interval=50 ms"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    /// Ends it by a signal; gives what it printed besides.
    fn end(mut self, signal: &str) -> (ExitStatus, Vec<String>) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
        (self.child.wait().unwrap(), self.lines.map(Result::unwrap).collect())
    }
}

#[test]
fn a_follower_goes_on_after_a_kill_and_ends_when_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t");
    let table = table.to_str().unwrap();
    create_table(table, &["k BIGINT"], &["bucket=1"]);
    let write = |k: i64| paimon(&["write", table, "--format", "json"], &format!("{{\"k\":{k}}}\n"));
    let row = |k: i64| format!("{{\"rowkind\":\"+I\",\"k\":{k}}}");
    // It waits for the first snapshot, and for each further one.
    let mut follower = Follower::start(table);
    for k in 1..=3 {
        write(k);
        assert_eq!(follower.line(), row(k));
    }
    let (status, rest) = follower.end("-KILL");
    assert!(!status.success());
    assert!(rest.is_empty(), "{rest:?}");
    write(4);
    // A row that was printed may come again, when the kill came before it was noted; none is lost.
    let mut follower = Follower::start(table);
    let mut first = follower.line();
    if first == row(3) {
        first = follower.line();
    }
    assert_eq!(first, row(4));
    write(5);
    assert_eq!(follower.line(), row(5));
    let (status, rest) = follower.end("-INT");
    assert!(status.success(), "an interrupt is no failure: {status:?}");
    assert!(rest.is_empty(), "{rest:?}");
}

#[tokio::test]
async fn there_is_no_state_before_that_without_snapshots() {
    let shell = Shell::new();
    shell.create().await;
    shell.write("{\"op\":\"+I\",\"id\":1}\n").await;
    for mode in ["delta", "diff"] {
        let ran = shell.run(&["changelog", "@t", "--between=-1,1", "--mode", mode]).await;
        let expected = "error: the changes after snapshot -1 up to 1 are not all there: snapshots 1 to 1 are there\n";
        assert_eq!((ran.code, ran.err.as_str()), (1, expected), "{mode}");
    }
}
