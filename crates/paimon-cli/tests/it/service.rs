//! `paimon compact --watch` as a process: it compacts what another writes, tells its metrics, and ends when it is told to.

#![expect(clippy::disallowed_methods, reason = "real processes run for a real time")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Shell, create_table, paimon};

fn create(table: &str) {
    create_table(table, &["k BIGINT", "v BIGINT"], &["bucket=1", "write-only=true"]);
}

fn write(table: &str, commit: i64) {
    let line = format!("{{\"k\":{},\"v\":{commit}}}\n", commit % 5);
    paimon(&["write", table, "--format", "json"], &line);
}

fn scrape(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nHost: paimon\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[cfg(unix)]
#[test]
fn a_service_compacts_tells_its_metrics_and_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let warehouse = dir.path().to_str().unwrap();
    let table = dir.path().join("shop.db/orders");
    let table = table.to_str().unwrap();
    create(table);
    let mut service = Command::new(env!("CARGO_BIN_EXE_paimon"))
        .args(["compact", "--watch", "--warehouse", warehouse, "--tables", "shop.*"])
        .args(["--interval", "20 ms", "--metrics", "127.0.0.1:0", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut errors = BufReader::new(service.stderr.take().unwrap());
    errors.read_line(&mut said).unwrap();
    let address = said.trim().strip_prefix("metrics at http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_owned();

    for commit in 0..12 {
        write(table, commit);
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    let runs = || paimon(&["levels", table], "")[0]["runs"].as_array().unwrap().len();
    while runs() >= 5 {
        assert!(Instant::now() < deadline, "the debt is not paid");
        std::thread::sleep(Duration::from_millis(20));
    }
    let metrics = scrape(&address, "/metrics");
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{metrics}");
    let completed = "paimon_compaction_compaction_completed_count{table=\"shop.orders\"}";
    let completed = metrics.lines().find_map(|line| line.strip_prefix(completed));
    assert!(completed.unwrap().trim().parse::<u64>().unwrap() > 0, "{metrics}");
    assert!(scrape(&address, "/other").starts_with("HTTP/1.1 404 "));

    let kill = Command::new("kill").args(["-TERM", &service.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = service.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let rounds = String::from_utf8(output.stdout).unwrap();
    let rounds: Vec<Value> = rounds.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let compacted: usize = rounds
        .iter()
        .map(|round| round["buckets"].as_array().unwrap().len())
        .sum();
    assert!(compacted > 0, "{rounds:?}");
    assert!(rounds.iter().all(|round| round["failures"] == serde_json::json!([])));
    let rows = paimon(&["read", table], "");
    assert_eq!(rows.len(), 5);

    // Every file in the bucket is in some snapshot.
    let files = std::fs::read_dir(Path::new(table).join("bucket-0")).unwrap().count();
    assert_eq!(files, 12 + compacted);
}

#[tokio::test]
async fn a_dry_run_says_what_comes_first() {
    let shell = Shell::new();
    shell.create().await;
    for id in 0..6 {
        shell
            .write(&format!("{{\"op\":\"+I\",\"id\":{id},\"city\":\"x\"}}\n"))
            .await;
    }
    let told = shell.ok(&["compact", "@t", "--watch", "--dry-run"]).await;
    assert!(told.contains("1 bucket to compact"), "{told}");
    let told = shell.ok(&["compact", "@t", "--watch", "--dry-run", "--json"]).await;
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["result"], &told["buckets"][0]["runs"]),
        (&"dry run".into(), &6.into())
    );
    assert_eq!(told["buckets"][0]["snapshot"], Value::Null);
    // Nothing was changed.
    let levels: Value = serde_json::from_str(&shell.ok(&["levels", "@t", "--json"]).await).unwrap();
    assert_eq!(levels["runs"].as_array().unwrap().len(), 6);
    assert_eq!(
        (
            &levels["compactionTrigger"],
            &levels["stopTrigger"],
            &levels["backPressure"]
        ),
        (&5.into(), &8.into(), &"compaction due".into())
    );
}

#[tokio::test]
async fn arguments_that_do_not_fit_together_are_refused() {
    let shell = Shell::new();
    shell.create().await;
    for (args, expected) in [
        (vec!["compact"], "required arguments were not provided"),
        (vec!["compact", "@t", "--full", "--watch"], "add --idle-time"),
        (vec!["compact", "--warehouse", "@w"], "--watch"),
        (
            vec!["compact", "--watch", "--warehouse", "@w", "--tables", "x"],
            "--tables \"x\": expected a pattern database.table",
        ),
        (
            vec!["compact", "@t", "--idle-time", "soon"],
            "expected a time such as '10 s'",
        ),
        (vec!["compact", "@t", "--part-bytes", "1mb"], "--plan"),
    ] {
        let ran = shell.run(&args).await;
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
}
