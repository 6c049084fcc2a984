//! Runs commands: in a folder, with a clock and names that are the same in every run, or as processes.

use std::env;
use std::ffi::OsString;
use std::io::{Cursor, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paimon::Registry;
use paimon::format::env::Env;
use paimon_cli::{Console, execute};
use serde_json::Value;
use tempfile::TempDir;

/// A folder to run commands in.
pub(crate) struct Shell {
    pub(crate) dir: TempDir,
    pub(crate) env: Env,
}

/// What a command printed.
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Shell {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::fixed(dir.path());
        Self { dir, env }
    }

    /// Runs `paimon ARGS`; `@t` stands for the table `t` in the folder.
    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        self.run_with_input(args, "").await
    }

    pub(crate) async fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        self.run_in(self.env.clone(), args, input).await
    }

    /// As [`run_with_input`](Self::run_with_input), in another environment.
    pub(crate) async fn run_in(&self, env: Env, args: &[&str], input: &str) -> Ran {
        let input = Cursor::new(input.as_bytes().to_vec());
        self.run_reading(env, args, Box::new(input)).await
    }

    /// As [`run_in`](Self::run_in), of any input.
    pub(crate) async fn run_reading(&self, env: Env, args: &[&str], input: Box<dyn Read + Send>) -> Ran {
        let root = self.dir.path().to_str().unwrap();
        let args =
            std::iter::once("paimon".to_owned()).chain(args.iter().map(|arg| arg.replace('@', &format!("{root}/"))));
        let (out, err) = (Shared::default(), Shared::default());
        let mut console = Console {
            input,
            out: Box::new(out.clone()),
            err: Box::new(err.clone()),
            progress: false,
        };
        // On the heap: the compiler takes only so many futures around each other.
        let code = Box::pin(execute(
            Registry::default(),
            args.map(OsString::from),
            env,
            &mut console,
        ))
        .await;
        let text = |shared: &Shared| {
            String::from_utf8(shared.0.lock().unwrap().clone())
                .unwrap()
                .replace(root, "DIR")
        };
        Ran {
            code,
            out: text(&out),
            err: text(&err),
        }
    }

    /// The output of a command that must succeed.
    pub(crate) async fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}\n{}", ran.out);
        ran.out
    }

    /// The table `t`: `id BIGINT, city STRING, amount DECIMAL(10, 2)`, write-only, one bucket.
    pub(crate) async fn create(&self) {
        let columns = ["id BIGINT", "city STRING", "amount DECIMAL(10, 2)"];
        let args = create_args("@t", &columns, &["bucket=1", "write-only=true"]);
        self.ok(&args).await;
    }

    /// The table `t`. Its primary key is the first of the columns, each a name and a type.
    pub(crate) async fn create_table(&self, columns: &[&str], options: &[&str]) {
        self.ok(&create_args("@t", columns, options)).await;
    }

    /// The names of all data and index files in the folder of the table `t`, sorted, whether a snapshot names them or not.
    pub(crate) fn data_files(&self) -> Vec<String> {
        let (mut folders, mut names) = (vec![self.dir.path().join("t")], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let name = entry.file_name().into_string().unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else if name.starts_with("data-") || name.starts_with("index-") {
                    names.push(name);
                }
            }
        }
        names.sort();
        names
    }

    /// Writes JSON lines.
    pub(crate) async fn write(&self, lines: &str) {
        let ran = self
            .run_with_input(&["write", "@t", "-", "--kind-field", "op"], lines)
            .await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    }
}

/// How long tests with real processes run. `PAIMON_TEST_SECONDS=60` for a minute.
pub(crate) fn run_time() -> Duration {
    let seconds = env::var("PAIMON_TEST_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(8))
}

/// As [`Shell::create_table`], by a process.
pub(crate) fn create_table(table: &str, columns: &[&str], options: &[&str]) {
    paimon(&create_args(table, columns, options), "");
}

fn create_args<'a>(table: &'a str, columns: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
    let key = columns[0].split(' ').next().unwrap();
    let columns = columns.iter().flat_map(|column| ["--column", column]);
    let options = options.iter().flat_map(|option| ["-D", option]);
    let args = ["create", table, "--primary-key", key].into_iter();
    args.chain(columns).chain(options).collect()
}

/// Runs `paimon ARGS` as a process of its own; gives its lines of JSON.
pub(crate) fn paimon(args: &[&str], input: &str) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_paimon"))
        .args(args)
        .arg("--json")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
