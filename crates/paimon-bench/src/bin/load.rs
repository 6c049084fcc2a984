//! Memory of writing and compacting under load: many buckets, many runs, rows of all sizes.
//!
//! ```text
//! load memory [--memory-mib 128] [--buffer-mib 64] [--buckets 64] [--runs 600] [--dir DIR]
//! ```
//!
//! Each step runs in a process of its own, whose peak of resident memory is compared with its budget and 64 MiB:
//!
//! | Step | What it does | Budget |
//! |---|---|---|
//! | `spread` | writes all buckets, write-only, until the table has `--runs` sorted runs in all | `write-buffer-size` |
//! | `deep` | writes one bucket, write-only, until it has `--runs` sorted runs | `write-buffer-size` |
//! | `compact spread`, `compact deep` | one full compaction, four buckets at once | memory |
//! | `both` | writes all buckets and compacts them meanwhile | both |
//!
//! Rows have 20 bytes to 8 MiB of random bytes.
//!
//! The steps run with `MALLOC_MMAP_THRESHOLD_=131072` unless it is set otherwise: by default glibc raises that threshold when it meets large
//! blocks, keeps what is freed for later, and shows two to four times of what is in use.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, Int64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use paimon::format::env::{Env, TokioRuntime};
use paimon::format::options::Options;
use paimon::{Context, Table, TableSchema};
use paimon_bench::Result;
use paimon_bench::cost::peak_memory_bytes;
use paimon_bench::flags::Flags;
use tokio::runtime::Runtime;

const MIB: u64 = 1 << 20;
/// What a process may need besides its budgets.
const SLACK: u64 = 64 * MIB;
/// From this size on glibc gives freed blocks back to the system.
const MMAP_THRESHOLD: &str = "MALLOC_MMAP_THRESHOLD_";
/// The keys of each table.
const KEYS: u64 = 200_000;

#[derive(Clone)]
struct Arguments(Flags);

impl Arguments {
    fn memory(&self) -> Result<u64> {
        Ok(self.0.number("memory-mib", 128)? * MIB)
    }

    fn buffer(&self) -> Result<u64> {
        Ok(self.0.number("buffer-mib", 64)? * MIB)
    }

    fn buckets(&self) -> Result<u64> {
        self.0.number("buckets", 64)
    }

    fn runs(&self) -> Result<u64> {
        self.0.number("runs", 600)
    }

    fn dir(&self) -> PathBuf {
        let given = self.0.text("dir").map(PathBuf::from);
        given.unwrap_or_else(|| env::temp_dir().join("paimon-bench-load"))
    }
}

fn main() -> Result<()> {
    let arguments = Arguments(Flags::of_process());
    let step = |work: fn(Arguments, Context, Runtime) -> Result<()>| {
        let runtime = Runtime::new()?;
        let threads = TokioRuntime::with_threads(runtime.handle().clone(), 0)?;
        let temp = arguments.dir().join("temp");
        fs::create_dir_all(&temp)?;
        let env = Env::system(Arc::new(threads), arguments.memory()?, 16 << 30, temp);
        work(arguments.clone(), Context::new(env), runtime)
    };
    match arguments.0.command("memory") {
        "memory" => memory(&arguments),
        "spread" => step(|arguments, context, runtime| {
            let (buckets, commits) = (arguments.buckets()?, arguments.runs()?.div_ceil(arguments.buckets()?));
            runtime.block_on(write(&arguments, &context, "spread", buckets, commits, true))
        }),
        "deep" => step(|arguments, context, runtime| {
            let commits = arguments.runs()?;
            runtime.block_on(write(&arguments, &context, "deep", 1, commits, true))
        }),
        "both" => step(|arguments, context, runtime| {
            let (buckets, commits) = (arguments.buckets()?, arguments.runs()?.div_ceil(arguments.buckets()?));
            runtime.block_on(write(&arguments, &context, "both", buckets, commits, false))
        }),
        "compact-spread" => {
            step(|arguments, context, runtime| runtime.block_on(compact(&arguments, &context, "spread")))
        }
        "compact-deep" => step(|arguments, context, runtime| runtime.block_on(compact(&arguments, &context, "deep"))),
        other => Err(format!("{other:?} is none of memory, spread, deep, both, compact-spread, compact-deep").into()),
    }
}

/// Runs all steps, and fails when one of them takes too much.
fn memory(arguments: &Arguments) -> Result<()> {
    let dir = arguments.dir();
    if dir.exists() {
        fs::remove_dir_all(&dir)?;
    }
    let (memory, buffer) = (arguments.memory()?, arguments.buffer()?);
    let mut too_much = Vec::new();
    for (step, budget) in [
        ("spread", buffer),
        ("deep", buffer),
        ("compact-spread", memory),
        ("compact-deep", memory),
        ("both", memory + buffer),
    ] {
        let mut command = Command::new(env::current_exe()?);
        command.arg(step);
        if env::var_os(MMAP_THRESHOLD).is_none() {
            command.env(MMAP_THRESHOLD, "131072");
        }
        for (flag, value) in arguments.0.all() {
            command.arg(format!("--{flag}")).arg(value);
        }
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let peak = text
            .lines()
            .find_map(|line| line.strip_prefix("peak ")?.parse::<u64>().ok());
        let Some(peak) = peak.filter(|_| output.status.success()) else {
            return Err(format!("{step}: {}", String::from_utf8_lossy(&output.stderr)).into());
        };
        println!("{step:15} budget {:4} MiB, peak {:4} MiB", budget / MIB, peak / MIB);
        if peak > budget + SLACK {
            too_much.push(step);
        }
    }
    match too_much.is_empty() {
        true => Ok(()),
        false => Err(format!("more than the budget and {} MiB: {}", SLACK / MIB, too_much.join(", ")).into()),
    }
}

/// Numbers that look random (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let words = length.div_ceil(8);
        let mut bytes: Vec<u8> = (0..words).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(length);
        bytes
    }

    /// `rows` rows of `length` bytes.
    fn batch(&mut self, rows: u64, length: usize) -> Result<RecordBatch> {
        let (mut keys, mut values) = (Int64Builder::new(), BinaryBuilder::new());
        for _ in 0..rows {
            keys.append_value(i64::try_from(self.next() % KEYS)?);
            values.append_value(self.bytes(length));
        }
        let columns: [(&str, ArrayRef); 2] = [("k", Arc::new(keys.finish())), ("v", Arc::new(values.finish()))];
        Ok(RecordBatch::try_from_iter(columns)?)
    }
}

/// Makes a table, and commits rows of all sizes to all of its buckets.
async fn write(
    arguments: &Arguments,
    context: &Context,
    name: &str,
    buckets: u64,
    commits: u64,
    write_only: bool,
) -> Result<()> {
    let schema = TableSchema::builder()
        .column("k", "BIGINT".parse()?)
        .column("v", "BYTES".parse()?)
        .primary_key(["k"])
        .option("bucket", buckets.to_string())
        .option("write-only", write_only.to_string())
        .option("write-buffer-size", format!("{} mb", arguments.buffer()? / MIB));
    let location = arguments.dir().join(name);
    let table = Table::create(&location.to_string_lossy(), schema, context).await?;
    let builder = table.write_builder();
    let (mut write, commit) = (builder.new_write()?, builder.new_commit()?);
    let mut random = Numbers(buckets);
    for identifier in 1..=i64::try_from(commits)? {
        for (rows, length) in [(buckets * 200, 20), (buckets * 4, 4 << 10), (buckets, 128 << 10)] {
            write.write(&random.batch(rows, length)?).await?;
        }
        // Rows of 8 MiB: one for every eighth bucket and commit.
        for _ in 0..buckets.div_ceil(8) {
            if buckets > 1 || identifier % 8 == 0 {
                write.write(&random.batch(1, 8 << 20)?).await?;
            }
        }
        commit.commit(identifier, write.prepare_commit(false).await?).await?;
    }
    let messages = write.prepare_commit(true).await?;
    commit.commit(i64::MAX, messages).await?;
    write.abort().await;
    println!("peak {}", peak_memory_bytes()?);
    Ok(())
}

async fn compact(arguments: &Arguments, context: &Context, name: &str) -> Result<()> {
    let location = arguments.dir().join(name);
    let table = Table::open(&location.to_string_lossy(), Options::new(), context).await?;
    let report = table.compact_builder().full(true).jobs(4).run().await?;
    let (input, output) = report.totals();
    println!("{} files to {}", input.files, output.files);
    println!("peak {}", peak_memory_bytes()?);
    Ok(())
}
