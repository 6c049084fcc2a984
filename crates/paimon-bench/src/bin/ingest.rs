//! Ingest against Java: rows into level 0, and with the compactions that they cause.
//!
//! ```text
//! ingest [--rows 500000] [--commits 10] [--repeat 3] [--dir DIR] [--oracle testdata/oracle/run.sh]
//! ```
//!
//! Rows are made beforehand: Arrow batches of 8 K here, row objects in Java. Measures are CPU time of the writing thread and of the compacting
//! one; Java's garbage collector and compiler are not counted. The first is one commit of all rows, `write-only`; the second several
//! commits, each waiting for its compaction.

use std::path::Path;

use arrow_array::RecordBatch;
use paimon_bench::cost::{measured, median};
use paimon_bench::flags::Flags;
use paimon_bench::oracle::{Oracle, number};
use paimon_bench::worker::{Kept, Worker};
use paimon_bench::{Result, rows};

fn main() -> Result<()> {
    let flags = Flags::of_process();
    let (rows, commits) = (flags.number("rows", 500_000)?, flags.number("commits", 10)?);
    let oracle = Oracle::new(&flags);
    let name = "ingest";
    let table = oracle.made(name, &[("rows", "0"), ("runs", "0")])?;
    let worker = Worker::start()?;
    // The keys of run 1 of a table with twice as many rows.
    let keys: Vec<i64> = (0..rows)
        .map(|i| (rows::mix(1 << 32 | i) % rows.max(1)) as i64)
        .collect();
    let batches: Vec<RecordBatch> = keys
        .chunks(8192)
        .map(|keys| rows::rows(keys, 1))
        .collect::<std::result::Result<_, _>>()?;
    for (what, write_only, commits) in [("into level 0", "true", 1), ("with compaction", "false", commits)] {
        let options = format!("write-only={write_only}");
        let (rows_flag, commits_flag) = (rows.to_string(), commits.to_string());
        let java_flags = [
            ("rows", rows_flag.as_str()),
            ("commits", &commits_flag),
            ("options", &options),
            ("repeat", "6"),
        ];
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        // Java has warm-up rounds, too.
        ingest(&worker, &table, &batches, commits as usize, write_only)?;
        for _ in 0..flags.number("repeat", 3)? {
            let seconds = ingest(&worker, &table, &batches, commits as usize, write_only)?;
            let lines = oracle.bench("write", name, &java_flags)?;
            // The last line is the warmest round.
            let java = rows as f64 / number(lines.last().ok_or("Java measured nothing")?, "rowsPerCpuSecond")?;
            println!("{what}: ours {seconds:.3} s, Java {java:.3} s");
            ours.push(seconds);
            theirs.push(java);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{what}: {:.0} thousand rows a CPU second, Java {:.0}: {:.2} times",
            rows as f64 / ours / 1000.0,
            rows as f64 / theirs / 1000.0,
            theirs / ours
        );
    }
    Ok(())
}

/// CPU seconds of both threads.
fn ingest(worker: &Worker, path: &Path, batches: &[RecordBatch], commits: usize, write_only: &str) -> Result<f64> {
    let kept = Kept::of(path)?;
    let table = worker.open(path, &[("write-only", write_only)])?;
    let before = worker.cpu_seconds()?;
    let (written, seconds) = measured(|| -> Result<()> {
        let mut write = table.write_builder().new_write()?;
        for commit in batches.chunks(batches.len().div_ceil(commits.max(1)).max(1)) {
            for batch in commit {
                worker.block_on(write.write(batch))?;
            }
            worker.block_on(write.prepare_commit(true))?;
        }
        worker.block_on(write.abort());
        Ok(())
    })?;
    written?;
    let seconds = seconds + worker.cpu_seconds()? - before;
    kept.restore()?;
    Ok(seconds)
}
