//! Every command on a small table, for people and for machines.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::Shell;

/// Six commits: enough for a pick.
async fn shop() -> Shell {
    let shell = Shell::new();
    shell.create().await;
    for commit in 0..6 {
        let line = |op: &str, id: i32, city: &str| {
            format!("{{\"op\":\"{op}\",\"id\":{id},\"city\":\"{city}\",\"amount\":\"{commit}.50\"}}\n")
        };
        shell
            .write(&format!("{}{}", line("+I", commit, "Wien"), line("+U", 100, "Praha")))
            .await;
    }
    shell
}

#[tokio::test]
async fn a_table_is_shown_from_all_sides() {
    let shell = shop().await;
    assert_snapshot!("schema", shell.ok(&["schema", "@t"]).await);
    assert_snapshot!("snapshots", shell.ok(&["snapshots", "@t", "--limit", "3"]).await);
    assert_snapshot!("files", shell.ok(&["files", "@t", "--snapshot", "2"]).await);
    assert_snapshot!("levels", shell.ok(&["levels", "@t"]).await);
    assert_snapshot!("explain", shell.ok(&["explain", "@t"]).await);
    assert_snapshot!("explain_full", shell.ok(&["explain", "@t", "--full"]).await);
}

/// A table that the Java engine wrote: three rows of one file and one of another are deleted.
#[tokio::test]
async fn deleted_rows_are_shown() {
    let table = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/golden/dv_lookup/warehouse/default.db/t"
    );
    let shell = Shell::new();
    assert_snapshot!("files_deleted", shell.ok(&["files", table, "--snapshot", "8"]).await);
    assert_snapshot!("levels_deleted", shell.ok(&["levels", table, "--snapshot", "8"]).await);
    let json = shell.ok(&["levels", table, "--snapshot", "8", "--json"]).await;
    let bucket: Value = serde_json::from_str(&json).unwrap();
    let deleted: Vec<Option<i64>> = bucket["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["deletedRows"].as_i64())
        .collect();
    assert_eq!(deleted, [Some(1), Some(3)]);
}

#[tokio::test]
async fn changelogs_are_counted_with_the_snapshot_that_brought_them() {
    let shell = Shell::new();
    let options = ["bucket=2", "write-only=true", "changelog-producer=lookup"];
    shell.create_table(&["id BIGINT"], &options).await;
    let rows: String = (0..5).map(|id| format!("{{\"op\":\"+I\",\"id\":{id}}}\n")).collect();
    shell.write(&rows).await;
    shell.ok(&["compact", "@t", "--full"]).await;
    assert_snapshot!("levels_changelog", shell.ok(&["levels", "@t"]).await);
    let counted = async |args: &[&str]| -> Vec<Value> {
        let json = shell.ok(&[&["levels", "@t", "--json"], args].concat()).await;
        let buckets = json.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        buckets.map(|bucket| masked(bucket["changelog"].clone())).collect()
    };
    let brought = |files: i64, rows: i64| json!({"files": files, "bytes": "#", "rows": rows});
    assert_eq!(counted(&[]).await, [brought(1, 3), brought(1, 2)]);
    assert_eq!(counted(&["--bucket", "1"]).await, [brought(1, 2)]);
    // The rows that were written had not been compared with anything yet.
    assert_eq!(counted(&["--snapshot", "1"]).await, [brought(0, 0), brought(0, 0)]);
    assert_eq!(
        counted(&["-D", "changelog-producer=none"]).await,
        [Value::Null, Value::Null]
    );
}

/// Without sizes of files, which change with every version of an encoder.
fn masked(mut json: Value) -> Value {
    match &mut json {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                let size = name.starts_with("bytes") || name.ends_with("Size");
                *value = match value.take() {
                    Value::Number(_) if size => Value::from("#"),
                    Value::String(text) if name == "why" => {
                        let words: Vec<&str> = text.split(' ').collect();
                        let number = |at: usize| words.get(at + 1).is_some_and(|next| next.starts_with("bytes"));
                        let words = words.iter().enumerate();
                        let words = words.map(|(at, word)| if number(at) { "#" } else { word });
                        Value::from(words.collect::<Vec<_>>().join(" "))
                    }
                    value => masked(value),
                };
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| *value = masked(value.take())),
        _ => {}
    }
    json
}

#[tokio::test]
async fn machines_get_json() {
    let shell = shop().await;
    let mut all = String::new();
    for command in [
        ["schema", "@t"].as_slice(),
        &["snapshots", "@t", "--limit", "1"],
        &["files", "@t", "--snapshot", "1"],
        &["levels", "@t"],
        &["explain", "@t"],
        &["compact", "@t", "--full", "--dry-run"],
        &["compact", "@t", "--full"],
        &["compact", "@t"],
        &["read", "@t", "--limit", "1"],
    ] {
        let out = shell.ok(&[command, &["--json"]].concat()).await;
        let lines = out
            .lines()
            .map(|line| masked(serde_json::from_str(line).unwrap()).to_string() + "\n");
        let out: String = lines.collect();
        all.push_str(&format!("$ paimon {}\n{out}", command.join(" ")));
    }
    assert_snapshot!(all);
}

#[tokio::test]
async fn compaction_tells_what_it_did() {
    let shell = shop().await;
    assert_snapshot!("dry_run", shell.ok(&["compact", "@t", "--dry-run"]).await);
    assert_snapshot!("one_pick", shell.ok(&["compact", "@t"]).await);
    assert_snapshot!("nothing_due", shell.ok(&["compact", "@t"]).await);
    shell.write("{\"op\":\"-D\",\"id\":0}\n").await;
    assert_snapshot!(
        "full",
        shell
            .ok(&["compact", "@t", "--full", "--jobs", "2", "--memory", "64mb"])
            .await
    );
    assert_snapshot!("already_full", shell.ok(&["compact", "@t", "--full"]).await);
    assert_snapshot!("explain_already_full", shell.ok(&["explain", "@t", "--full"]).await);
}

#[tokio::test]
async fn rows_that_wait_get_a_bucket() {
    let shell = Shell::new();
    shell
        .create_table(&["id INT"], &["bucket=-2", "postpone.default-bucket-num=2"])
        .await;
    shell
        .write("{\"op\":\"+I\",\"id\":1}\n{\"op\":\"+I\",\"id\":2}\n{\"op\":\"+I\",\"id\":7}\n")
        .await;
    let mut all = shell.ok(&["compact", "@t", "--dry-run"]).await;
    all += &shell.ok(&["compact", "@t", "--full"]).await;
    all += &shell.ok(&["compact", "@t"]).await;
    assert_snapshot!("postponed", all);
    let rows = shell.ok(&["read", "@t", "--output", "csv"]).await;
    assert_eq!(rows.lines().count(), 4, "{rows}");
}

#[tokio::test]
async fn rows_are_printed_as_wanted() {
    let shell = shop().await;
    assert_snapshot!("rows_table", shell.ok(&["read", "@t"]).await);
    assert_snapshot!(
        "rows_csv",
        shell
            .ok(&[
                "read",
                "@t",
                "--output",
                "csv",
                "--columns",
                "city,id",
                "--where",
                "id < 2 OR id = 100"
            ])
            .await
    );
    assert_snapshot!(
        "rows_json",
        shell.ok(&["read", "@t", "--output", "json", "--snapshot", "1"]).await
    );
    assert_snapshot!("no_rows", shell.ok(&["read", "@t", "--where", "city LIKE 'B%'"]).await);
}

#[tokio::test]
async fn the_demo_runs_on_an_empty_machine() {
    let shell = Shell::new();
    assert_snapshot!(shell.ok(&["demo", "@demo"]).await);
}
