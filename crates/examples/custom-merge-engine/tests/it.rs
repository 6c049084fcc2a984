//! Both keep the law of merge engines, and are used by write, compaction, changelog and read.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ffi::OsString;
use std::io::{Cursor, Write};
use std::process::Command;
use std::sync::{Arc, Mutex};

use custom_merge_engine::{highest_score, registry};
use paimon_cli::{Console, execute};
use paimon_format::env::Env;
use paimon_format::kv::KvSchema;
use paimon_format::options::Options;
use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_merge::testing::{check_created, check_engine};
use serde_json::Value;

fn schema(column: &str) -> Arc<KvSchema> {
    let fields = vec![
        DataField::new(0, "id", DataType::not_null(TypeKind::BigInt)),
        DataField::new(1, column, DataType::nullable(TypeKind::BigInt)),
    ];
    Arc::new(KvSchema::new(0, fields, vec![0], None).unwrap())
}

#[test]
fn the_engine_is_lawful() {
    check_engine(&highest_score(), &schema("score"), &Options::new()).unwrap();
}

#[test]
fn the_function_is_lawful() {
    let options = Options::from_iter([
        ("merge-engine", "aggregation"),
        ("fields.flags.aggregate-function", "bit_or"),
    ]);
    let schema = schema("flags");
    let engine = registry().for_options(&schema, &options).unwrap();
    check_created(engine.as_ref(), &schema).unwrap();
}

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A folder and its environment.
struct Shell {
    dir: tempfile::TempDir,
    env: Env,
}

impl Shell {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::fixed(dir.path());
        Self { dir, env }
    }

    async fn run(&self, args: &[&str], input: &str) -> (u8, String, String) {
        let table = self.dir.path().join("t").to_str().unwrap().to_owned();
        let args = ["paimon"]
            .iter()
            .chain(args)
            .map(|arg| OsString::from(arg.replace("@t", &table)));
        let (out, err) = (Output::default(), Output::default());
        let mut console = Console {
            input: Box::new(Cursor::new(input.as_bytes().to_vec())),
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            progress: false,
        };
        let code = execute(registry(), args, self.env.clone(), &mut console).await;
        let text = |output: &Output| String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        (code, text(&out), text(&err))
    }

    async fn ok(&self, args: &[&str], input: &str) -> String {
        let (code, out, err) = self.run(args, input).await;
        assert_eq!((code, err.as_str()), (0, ""), "{args:?} {out}");
        out
    }
}

async fn walk(column: &str, options: &[&str], commits: [&str; 3], expected: &str) {
    let shell = Shell::new();
    let column = format!("{column} BIGINT");
    let mut create = vec![
        "create",
        "@t",
        "--column",
        "id BIGINT",
        "--column",
        &column,
        "--primary-key",
        "id",
    ];
    create.extend(["-D", "bucket=1", "-D", "write-only=true"]);
    create.extend(options);
    shell.ok(&create, "").await;
    for rows in commits {
        shell.ok(&["write", "@t", "-"], rows).await;
    }
    let read = ["read", "@t", "--json"];
    assert_eq!(shell.ok(&read, "").await.trim(), expected);
    shell.ok(&["compact", "@t", "--full"], "").await;
    assert_eq!(shell.ok(&read, "").await.trim(), expected);
}

#[tokio::test]
async fn the_engine_writes_compacts_and_reads() {
    let commits = [
        "{\"id\":1,\"score\":5}\n{\"id\":2,\"score\":1}",
        "{\"id\":1,\"score\":3}\n{\"id\":2,\"score\":4}",
        "{\"id\":1,\"score\":4}",
    ];
    let expected = "{\"id\":1,\"score\":5}\n{\"id\":2,\"score\":4}";
    walk("score", &["-D", "merge-engine=highest-score"], commits, expected).await;
}

#[tokio::test]
async fn the_function_writes_compacts_and_reads() {
    let options = [
        "-D",
        "merge-engine=aggregation",
        "-D",
        "fields.flags.aggregate-function=bit_or",
    ];
    let commits = [
        "{\"id\":1,\"flags\":1}\n{\"id\":2,\"flags\":8}",
        "{\"id\":1,\"flags\":6}",
        "{\"id\":1,\"flags\":null}\n{\"id\":2,\"flags\":9}",
    ];
    let expected = "{\"id\":1,\"flags\":7}\n{\"id\":2,\"flags\":9}";
    walk("flags", &options, commits, expected).await;
}

/// The changes of a table whose compactions look old rows up, as `+I 1 5`; each commit is compacted at once.
async fn changes(column: &str, options: &[&str], commits: &[&str]) -> Vec<String> {
    let shell = Shell::new();
    let declared = format!("{column} BIGINT");
    let mut create = vec!["create", "@t", "--column", "id BIGINT", "--column", &declared];
    create.extend([
        "--primary-key",
        "id",
        "-D",
        "bucket=1",
        "-D",
        "changelog-producer=lookup",
    ]);
    create.extend(["-D", "changelog-producer.row-deduplicate=true"]);
    create.extend(options);
    shell.ok(&create, "").await;
    for rows in commits {
        shell.ok(&["write", "@t", "-"], rows).await;
    }
    let told = shell.ok(&["changelog", "@t", "--from", "earliest", "--json"], "").await;
    let lines = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|line| format!("{} {} {}", line["rowkind"].as_str().unwrap(), line["id"], line[column]))
        .collect()
}

#[tokio::test]
async fn the_engine_tells_what_changed() {
    let commits = [
        "{\"id\":1,\"score\":5}\n{\"id\":2,\"score\":1}",
        "{\"id\":1,\"score\":3}\n{\"id\":2,\"score\":4}",
        "{\"id\":1,\"score\":4}\n{\"id\":3,\"score\":1}\n{\"id\":3,\"score\":2}",
    ];
    let found = changes("score", &["-D", "merge-engine=highest-score"], &commits).await;
    assert_eq!(found, ["+I 1 5", "+I 2 1", "-U 2 1", "+U 2 4", "+I 3 2"]);
}

#[tokio::test]
async fn the_function_tells_what_changed() {
    let options = [
        "-D",
        "merge-engine=aggregation",
        "-D",
        "fields.flags.aggregate-function=bit_or",
    ];
    let commits = [
        "{\"id\":1,\"flags\":1}\n{\"id\":2,\"flags\":8}",
        "{\"id\":1,\"flags\":6}\n{\"id\":2,\"flags\":8}",
    ];
    let found = changes("flags", &options, &commits).await;
    assert_eq!(found, ["+I 1 1", "+I 2 8", "-U 1 1", "+U 1 7"]);
}

/// The binary itself knows both.
#[test]
fn the_command_line_is_a_binary() {
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_custom-merge-engine"));
        let output = command.args(&args[..1]).arg(&table).args(&args[1..]).output().unwrap();
        assert!(output.status.success(), "{args:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let column = [
        "create",
        "--column",
        "id BIGINT",
        "--column",
        "score BIGINT",
        "--primary-key",
        "id",
    ];
    run(&[&column[..], &["-D", "bucket=1", "-D", "merge-engine=highest-score"]].concat());
    assert_eq!(run(&["read"]), "id  score\n");
}

#[tokio::test]
async fn an_unknown_name_is_refused_with_the_known_ones() {
    let shell = Shell::new();
    let create = [
        "create",
        "@t",
        "--column",
        "id BIGINT",
        "--primary-key",
        "id",
        "-D",
        "bucket=1",
    ];
    let (code, _, error) = shell
        .run(&[&create[..], &["-D", "merge-engine=lowest-score"]].concat(), "")
        .await;
    assert_eq!(code, 1);
    assert!(
        error.contains("known are: aggregation, deduplicate, first-row, highest-score, partial-update"),
        "{error}"
    );
}
