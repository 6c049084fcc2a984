//! `paimon ingest`: whole streams, in small commits, and killed and started again.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::FutureExt;
use paimon::format::env::{Env, FileIds};
use serde_json::{Map, Value};

use crate::support::Shell;

const STREAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cdc");

/// A stream, the table for it and the rows that are right.
struct Stream {
    format: &'static str,
    path: String,
    columns: Vec<(String, String)>,
    primary_key: String,
    options: BTreeMap<String, String>,
    rows: Vec<Value>,
}

fn streams() -> Vec<Stream> {
    let mut streams = Vec::new();
    for (folder, format) in [
        ("debezium", "debezium-json"),
        ("canal", "canal-json"),
        ("maxwell", "maxwell-json"),
    ] {
        let expected = std::fs::read(format!("{STREAMS}/{folder}/expected.json")).unwrap();
        let expected: Map<String, Value> = serde_json::from_slice(&expected).unwrap();
        for (file, stream) in expected {
            let columns: Vec<(String, String)> = serde_json::from_value(stream["columns"].clone()).unwrap();
            let rows = stream["rows"].as_array().unwrap().iter().map(|row| {
                let values = row.as_array().unwrap().iter().skip(1).cloned();
                let names = columns.iter().map(|(name, _)| name.clone());
                Value::Object(names.zip(values).collect())
            });
            let key: Vec<String> = serde_json::from_value(stream["primaryKey"].clone()).unwrap();
            streams.push(Stream {
                format,
                path: format!("{STREAMS}/{folder}/{file}"),
                rows: rows.collect(),
                columns,
                primary_key: key.join(","),
                options: serde_json::from_value(stream.get("options").cloned().unwrap_or_default()).unwrap_or_default(),
            });
        }
    }
    assert_eq!(streams.len(), 8);
    streams
}

impl Stream {
    /// A shell with a table for it, without the columns named `without`.
    async fn shell(&self, without: &[&str]) -> Shell {
        let shell = Shell::new();
        let mut args: Vec<String> = ["create", "@t", "--primary-key", &self.primary_key, "-D", "bucket=2"]
            .map(str::to_owned)
            .to_vec();
        for (name, data_type) in self
            .columns
            .iter()
            .filter(|(name, _)| !without.contains(&name.as_str()))
        {
            args.extend(["--column".to_owned(), format!("{name} {data_type}")]);
        }
        for (key, value) in &self.options {
            args.extend(["-D".to_owned(), format!("{key}={value}")]);
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        shell.ok(&args).await;
        shell
    }

    fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let args = ["ingest", "@t", "--format", self.format, self.path.as_str()];
        args.iter().chain(more).copied().collect()
    }

    async fn check(&self, shell: &Shell, what: &str) {
        let read = shell.ok(&["read", "@t", "--json"]).await;
        let mut rows: Vec<Value> = read.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut expected = self.rows.clone();
        rows.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(rows, expected, "{} {what}", self.path);
    }
}

#[tokio::test]
async fn whole_streams_give_their_rows() {
    for stream in streams() {
        let shell = stream.shell(&[]).await;
        shell.ok(&stream.args(&[])).await;
        stream.check(&shell, "whole").await;
    }
}

#[tokio::test]
async fn small_commits_give_the_same_rows() {
    for stream in streams() {
        for rows in ["1", "3"] {
            let shell = stream.shell(&[]).await;
            shell.ok(&stream.args(&["--commit-rows", rows])).await;
            stream.check(&shell, "in small commits").await;
        }
    }
}

/// Dies when so many names were drawn: before a data file, a manifest or a snapshot is made.
#[derive(Debug)]
struct DyingIds {
    ids: Arc<dyn FileIds>,
    left: AtomicI64,
}

impl FileIds for DyingIds {
    fn uuid(&self) -> String {
        assert!(self.left.fetch_sub(1, Ordering::Relaxed) > 0, "killed");
        self.ids.uuid()
    }

    fn jitter(&self, bound: u64) -> u64 {
        self.ids.jitter(bound)
    }
}

#[tokio::test]
async fn killed_at_any_point_and_started_again_gives_the_same_rows() {
    let mut kills = 0;
    for stream in streams() {
        let args = stream.args(&["--commit-rows", "3", "--commit-user", "job"]);
        for left in (1..).step_by(9) {
            let shell = stream.shell(&[]).await;
            let dying = Env {
                ids: Arc::new(DyingIds {
                    ids: Arc::clone(&shell.env.ids),
                    left: AtomicI64::new(left),
                }),
                ..shell.env.clone()
            };
            let killed = AssertUnwindSafe(shell.run_in(dying, &args, "")).catch_unwind().await;
            let done = matches!(&killed, Ok(ran) if ran.code == 0);
            kills += usize::from(!done);
            shell.ok(&args).await;
            stream.check(&shell, &format!("killed after {left} names")).await;
            if done {
                break;
            }
        }
    }
    assert!(kills > 20, "{kills}");
}

#[tokio::test]
async fn a_finished_job_goes_on_with_what_is_new() {
    let stream = &streams()[0];
    let shell = stream.shell(&[]).await;
    let text = std::fs::read_to_string(&stream.path).unwrap();
    let (first, last) = text.trim_end().rsplit_once('\n').unwrap();
    let path = shell.dir.path().join("in.jsonl");
    let args = [
        "ingest",
        "@t",
        "--format",
        stream.format,
        "@in.jsonl",
        "--commit-user",
        "job",
        "--json",
    ];
    std::fs::write(&path, format!("{first}\n")).unwrap();
    let ran: Value = serde_json::from_str(&shell.ok(&args).await).unwrap();
    let records = first.lines().count();
    assert_eq!(
        (&ran["records"], &ran["resumedAt"]),
        (&Value::from(records), &Value::Null)
    );
    std::fs::write(&path, format!("{first}\n{last}")).unwrap();
    let ran: Value = serde_json::from_str(&shell.ok(&args).await).unwrap();
    assert_eq!(
        (&ran["records"], &ran["resumedAt"]["line"]),
        (&Value::from(1), &Value::from(records))
    );
    stream.check(&shell, "in two runs").await;
    // A tombstone or statement at the end makes no snapshot: it is read again, and changes nothing again.
    shell.ok(&args).await;
    stream.check(&shell, "in three runs").await;

    // Another file in its place is noticed.
    std::fs::write(&path, text.replace("\"op\"", "\"po\"")).unwrap();
    let ran = shell.run(&args).await;
    assert_eq!(ran.code, 2);
    assert!(
        ran.err
            .contains("in.jsonl: it does not hold what the last commit of this user ends with"),
        "{}",
        ran.err
    );
    let other = [
        "ingest",
        "@t",
        "--format",
        stream.format,
        "@other.jsonl",
        "--commit-user",
        "job",
    ];
    let ran = shell.run(&other).await;
    assert!(
        ran.err.ends_with("in.jsonl, which is not among the inputs\n"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn columns_are_added_as_the_stream_declares_them() {
    for (file, without, added) in [
        (
            "mysql_schema.jsonl",
            vec!["price", "day", "bin"],
            vec!["price DECIMAL(10, 2)", "bin BYTES", "day DATE"],
        ),
        ("mysql_plain_tx_ddl.jsonl", vec!["note"], vec!["note STRING"]),
        ("canal/basic.jsonl", vec!["extra"], vec!["extra INT"]),
        (
            "basic_bootstrap_ddl.jsonl",
            vec!["torvalds"],
            vec!["torvalds DECIMAL(20, 0)"],
        ),
        ("types_out_of_order.jsonl", vec!["tags"], vec!["tags STRING"]),
    ] {
        let stream = streams()
            .into_iter()
            .find(|stream| stream.path.ends_with(file))
            .unwrap();
        for commit_rows in ["1", "100"] {
            let shell = stream.shell(&without).await;
            shell
                .ok(&stream.args(&["--add-columns", "--commit-rows", commit_rows]))
                .await;
            stream.check(&shell, "with new columns").await;
            let schema: Value = serde_json::from_str(&shell.ok(&["schema", "@t", "--json"]).await).unwrap();
            let fields = schema["fields"].as_array().unwrap();
            let new = fields[fields.len() - added.len()..].iter();
            let new = new.map(|field| {
                format!(
                    "{} {}",
                    field["name"].as_str().unwrap(),
                    field["type"].as_str().unwrap()
                )
            });
            assert_eq!(new.collect::<Vec<_>>(), added, "{file}");
            assert_eq!(schema["highestFieldId"], fields.len() - 1);
        }
    }
}

#[tokio::test]
async fn a_column_that_the_table_has_not_is_a_bad_record_unless_asked_for() {
    let stream = streams()
        .into_iter()
        .find(|stream| stream.path.ends_with("canal/basic.jsonl"))
        .unwrap();
    let shell = stream.shell(&["extra"]).await;
    let ran = shell.run(&stream.args(&[])).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err
            .ends_with("basic.jsonl, line 8: \"extra\" is no column of the table\n"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn columns_get_wider_when_asked_for() {
    let shell = Shell::new();
    shell
        .create_table(&["id INT", "n INT", "s VARCHAR(2)"], &["bucket=1"])
        .await;
    let record = |id: &str, n: &str, types: &str| {
        format!(
            "{{\"type\":\"INSERT\",\"data\":[{{\"id\":\"{id}\",\"n\":\"{n}\",\"s\":\"ab\"}}],\"mysqlType\":{types}}}\n"
        )
    };
    let narrow = "{\"id\":\"int\",\"n\":\"int\",\"s\":\"varchar(2)\"}";
    let wide = "{\"id\":\"bigint\",\"n\":\"bigint\",\"s\":\"varchar(5)\"}";
    let input = record("1", "7", narrow) + &record("2", "5000000000", wide) + &record("3", "8", narrow);
    let args = ["ingest", "@t", "--format", "canal-json"];
    let ran = shell.run_with_input(&args, &input).await;
    assert_eq!(
        ran.err,
        "error: standard input, line 2: column n: \"5000000000\" is no value of INT\n"
    );
    let ran = shell
        .run_with_input(&[&args[..], &["--widen-columns"]].concat(), &input)
        .await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,n,s\n1,7,ab\n2,5000000000,ab\n3,8,ab\n"
    );
    let schema: Value = serde_json::from_str(&shell.ok(&["schema", "@t", "--json"]).await).unwrap();
    let types: Vec<&str> = schema["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["INT NOT NULL", "BIGINT", "VARCHAR(5)"]);
}

#[tokio::test]
async fn bad_records_are_noted_and_limited() {
    let shell = Shell::new();
    shell.create().await;
    let deep = format!("{{\"id\":{}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let long = format!("{{\"id\":4,\"city\":\"{}\"}}", "x".repeat(20_000));
    let lines: Vec<&[u8]> = vec![
        b"{\"id\":1,\"city\":\"Brno\",\"amount\":1.50}",
        b"{\"id\":2",
        b"",
        b"{\"id\":3,\"city\":\"\xff\"}",
        long.as_bytes(),
        deep.as_bytes(),
        b"{\"id\":99999999999999999999999}",
        b"{\"city\":\"without key\"}",
        b"{\"id\":5,\"amount\":\"1e9\"}",
        b"null",
        b"{\"id\":6,\"city\":\"Graz\"}",
    ];
    std::fs::write(shell.dir.path().join("in.jsonl"), lines.join(&b'\n')).unwrap();
    let bad = shell.dir.path().join("bad.jsonl");
    let bad = bad.to_str().unwrap();
    let args = [
        "ingest",
        "@t",
        "--format",
        "json",
        "@in.jsonl",
        "--max-record-bytes",
        "16kb",
        "--bad-records",
        bad,
    ];
    assert_eq!(
        shell.ok(&args).await,
        "took in 11 records: 2 rows (+I 2, -U 0, +U 0, -D 0), 2 without rows, 7 bad\nmade 1 snapshot, the last is 1\n"
    );
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n1,Brno,1.50\n6,Graz,\n"
    );
    let noted = std::fs::read_to_string(bad).unwrap();
    let noted = noted.lines().map(|line| {
        let note: Value = serde_json::from_str(line).unwrap();
        let record = note["record"]
            .as_str()
            .map(|text| text.chars().take(40).collect::<String>());
        format!(
            "line {}, byte {}: {}\n    {record:?}\n",
            note["line"],
            note["byte"],
            note["error"].as_str().unwrap()
        )
    });
    insta::assert_snapshot!(noted.collect::<String>());

    let ran = shell.run(&[&args[..], &["--max-bad-records", "2"]].concat()).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.ends_with("line 5: a record of 20019 bytes: longer than --max-record-bytes (bad record 3, but --max-bad-records is 2)\n"),
        "{}",
        ran.err
    );
    let snapshots = shell.ok(&["snapshots", "@t", "--json"]).await;
    assert_eq!(
        snapshots.lines().count(),
        1,
        "what is not committed is not in the table"
    );
}

#[tokio::test]
async fn plain_rows_come_from_standard_input() {
    let shell = Shell::new();
    shell.create().await;
    let args = [
        "ingest",
        "@t",
        "--format",
        "json",
        "--kind-field",
        "op",
        "--commit-seconds",
        "1",
    ];
    let rows = "{\"op\":\"+I\",\"id\":1,\"city\":\"Wien\"}\n{\"op\":\"-D\",\"id\":1}\n{\"op\":\"+U\",\"id\":2,\"amount\":\"7.00\"}";
    let ran = shell.run_with_input(&args, rows).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n2,,7.00\n"
    );
    assert_eq!(
        shell.run_with_input(&args, "").await.out,
        "took in 0 records: 0 rows (+I 0, -U 0, +U 0, -D 0), 0 without rows, 0 bad\nnothing to commit\n"
    );
}

#[tokio::test]
async fn wrong_arguments_are_refused() {
    let shell = Shell::new();
    shell.create().await;
    for (args, expected) in [
        (
            vec!["--format", "ogg-json"],
            "expected debezium-json, canal-json, maxwell-json, json",
        ),
        (
            vec!["--format", "json", "--commit-user", "job"],
            "--commit-user with standard input: it cannot be rewound",
        ),
        (
            vec!["--format", "canal-json", "--kind-field", "op"],
            "--kind-field: records of canal-json say themselves",
        ),
        (vec!["--format", "json", "--commit-rows", "0"], "0 is not in 1.."),
        (
            vec!["--format", "json", "--max-bad-records", "1"],
            "--bad-records <FILE>",
        ),
    ] {
        let ran = shell.run(&[&["ingest", "@t"], args.as_slice()].concat()).await;
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.contains(expected), "{args:?}: {}", ran.err);
    }
    let ran = shell.run(&["ingest", "@t", "--format", "json", "@none.jsonl"]).await;
    assert_eq!(
        (ran.code, ran.err.starts_with("error: DIR/none.jsonl: ")),
        (1, true),
        "{}",
        ran.err
    );
    // The last commit of this user was made by another command.
    let rows = "{\"id\":1}";
    shell
        .run_with_input(&["write", "@t", "--commit-user", "u", "--identifier", "1"], rows)
        .await;
    std::fs::write(shell.dir.path().join("in.jsonl"), rows).unwrap();
    let ran = shell
        .run(&["ingest", "@t", "--format", "json", "@in.jsonl", "--commit-user", "u"])
        .await;
    assert_eq!(
        ran.err,
        "error: the last commit of user \"u\" (snapshot 1) is not one of an ingest job: it has no property 'ingest.input'\n"
    );
}

/// A changelog that full compactions tell comes with every so many commits, and with the last one.
#[tokio::test]
async fn full_compactions_come_after_so_many_commits_and_at_the_end() {
    let shell = Shell::new();
    let options = [
        "bucket=1",
        "changelog-producer=full-compaction",
        "full-compaction.delta-commits=2",
    ];
    shell.create_table(&["id BIGINT", "city STRING"], &options).await;
    let args = ["ingest", "@t", "--format", "json", "--commit-rows", "1"];
    let rows = "{\"id\":1,\"city\":\"Wien\"}\n{\"id\":1,\"city\":\"Brno\"}\n{\"id\":2,\"city\":\"Graz\"}\n{\"id\":2,\"city\":\"Linz\"}\n{\"id\":3,\"city\":\"Bern\"}";
    let ran = shell.run_with_input(&args, rows).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let changes = shell.ok(&["changelog", "@t", "--from", "earliest", "--json"]).await;
    let found: Vec<String> = changes
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            format!("{} {} {}", line["rowkind"], line["id"], line["city"]).replace('"', "")
        })
        .collect();
    assert_eq!(found, ["+I 1 Brno", "+I 2 Linz", "+I 3 Bern"]);
}

#[tokio::test]
async fn inputs_that_would_be_spoilt_or_cannot_be_told_apart_are_refused() {
    let shell = Shell::new();
    shell.create().await;
    let path = |name: &str| shell.dir.path().join(name);
    let text = "\u{feff}{\"id\":1}\nnot json\n";
    std::fs::write(path("s.json"), text).unwrap();
    std::fs::hard_link(path("s.json"), path("other")).unwrap();
    let ingest = ["ingest", "@t", "--format", "json", "@s.json"];
    for (more, expected) in [
        (
            ["--bad-records", "@s.json"].as_slice(),
            "error: --bad-records DIR/s.json: this file is read too, as DIR/s.json; write to another one\n",
        ),
        (
            &["--bad-records", "@other"],
            "error: --bad-records DIR/other: this file is read too, as DIR/s.json; write to another one\n",
        ),
        (
            &["@s.json", "--commit-user", "u"],
            "error: --commit-user with DIR/s.json twice: a run that was killed could not tell from which of them to go on\n",
        ),
    ] {
        let ran = shell.run(&[&ingest, more].concat()).await;
        assert_eq!((ran.code, ran.err.as_str()), (2, expected));
    }
    assert_eq!(std::fs::read_to_string(path("s.json")).unwrap(), text);
    assert!(!path("t/snapshot").exists());
    // The byte order mark belongs to the first record's bytes, and is not of its text: a later run finds its place again.
    let named = [
        ingest.as_slice(),
        &["--bad-records", "@bad", "--commit-user", "u", "--commit-rows", "1"],
    ]
    .concat();
    shell.ok(&named).await;
    assert!(
        shell
            .ok(&named)
            .await
            .starts_with("went on behind line 1 of DIR/s.json")
    );
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n1,,\n"
    );
}
