//! A compaction that loses against another job's: the rows are committed, the command goes on and says what became of them.

use std::io::{self, Cursor, Read};

use crate::support::{Shell, paimon};

/// Rows that `write` takes in one batch.
const BATCH: usize = 8192;

/// Bytes that a read brings.
const PIECE_BYTES: usize = 8192;

/// Lines of input. When more than half of them are read, another job takes away all files that the reader's job knows.
struct Lines {
    text: Cursor<String>,
    table: String,
    met: bool,
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.met && self.text.position() > self.text.get_ref().len() as u64 / 2 {
            self.met = true;
            let row = r#"{"id":0,"v":-1}"#;
            paimon(
                &["write", &self.table, "--format", "json", "-D", "write-only=true"],
                row,
            );
            paimon(&["compact", &self.table, "--full"], "");
        }
        let piece = buffer.len().min(PIECE_BYTES);
        self.text.read(&mut buffer[..piece])
    }
}

#[tokio::test]
async fn rows_are_committed_though_their_compaction_is_lost() {
    let seen_at_once = "the rows are in the table, and the next compaction does it again";
    let seen_later = "the rows are committed, and reads see them after the next compaction";
    let write = ["write", "@t", "-", "--format", "json", "--commit-every", "1"];
    let ingest = ["ingest", "@t", "-", "--format", "json", "--commit-rows", "8192"];
    for (option, said) in [
        ("changelog-producer=lookup", seen_at_once),
        ("deletion-vectors.enabled=true", seen_later),
    ] {
        for args in [&write[..], &ingest] {
            let shell = Shell::new();
            // All runs are merged whenever there are two.
            let always = "compaction.max-size-amplification-percent=1";
            let options = ["bucket=1", option, "num-sorted-run.compaction-trigger=2", always];
            shell.create_table(&["id INT", "v INT"], &options).await;
            let lines = (0..3 * BATCH).map(|line| format!("{{\"id\":{},\"v\":{line}}}\n", line % BATCH));
            let input = Lines {
                text: Cursor::new(lines.collect()),
                table: shell.dir.path().join("t").to_str().unwrap().to_owned(),
                met: false,
            };
            let ran = shell.run_reading(shell.env.clone(), args, Box::new(input)).await;
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?} {option}");
            assert!(ran.out.contains(said), "{args:?} {option}: {}", ran.out);
            let read = shell.ok(&["read", "@t", "--output", "csv"]).await;
            let mut rows: Vec<&str> = read.lines().skip(1).collect();
            let mut expected: Vec<String> = (0..BATCH).map(|id| format!("{id},{}", 2 * BATCH + id)).collect();
            rows.sort_unstable();
            expected.sort_unstable();
            assert_eq!(rows, expected, "{args:?} {option}");
        }
    }
}
