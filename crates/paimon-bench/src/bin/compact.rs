//! Compaction against its limit, and against Java.
//!
//! ```text
//! compact ratio  [--rows 4000000] [--runs 5] [--repeat 5] [--dir DIR]   merge + decode + encode against decode + encode
//! compact memory [--rows 4000000] [--runs 5] [--dir DIR]                peak memory of one compaction
//! compact java   [--rows 4000000] [--runs 5] [--repeat 3] [--dir DIR] [--oracle testdata/oracle/run.sh]
//! ```
//!
//! `--engine deduplicate` (the default), `partial-update` (half of the values are null) or `aggregation` (sum, max, last_non_null_value, listagg).
//!
//! Everything runs on one thread and is measured by its CPU time, the measures taken in turn.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use futures::executor::block_on;
use paimon_bench::Result;
use paimon_bench::bucket::Bucket;
use paimon_bench::cost::{measured, median, peak_memory_bytes};
use paimon_bench::flags::Flags;
use paimon_bench::oracle::{Oracle, number};
use paimon_format::options::Options;

/// What a compaction may take, as in a small process.
const MEMORY: u64 = 384 << 20;

/// Of `aggregation`.
const FUNCTIONS: [(&str, &str); 5] = [
    ("fields.default-aggregate-function", "sum"),
    ("fields.b.aggregate-function", "max"),
    ("fields.e.aggregate-function", "last_non_null_value"),
    ("fields.s.aggregate-function", "listagg"),
    ("fields.t.aggregate-function", "max"),
];

/// What was asked for.
struct Arguments {
    flags: Flags,
}

impl Arguments {
    fn number(&self, flag: &str, default: u64) -> Result<u64> {
        self.flags.number(flag, default)
    }

    fn rows(&self) -> Result<u64> {
        self.number("rows", 4_000_000)
    }

    fn runs(&self) -> Result<u64> {
        self.number("runs", 5)
    }

    fn dir(&self) -> PathBuf {
        self.flags.dir()
    }

    fn engine(&self) -> &str {
        self.flags.text("engine").unwrap_or("deduplicate")
    }

    /// Values are not all there.
    fn nulls(&self) -> bool {
        self.engine() == "partial-update"
    }

    /// How the table is merged.
    fn options(&self) -> Options {
        let mut options = Options::from_iter([("merge-engine", self.engine())]);
        if self.engine() == "aggregation" {
            for (key, function) in FUNCTIONS {
                options.set(key, function);
            }
        }
        options
    }

    /// The folder of a table with these rows and runs.
    fn table(&self) -> Result<PathBuf> {
        let nulls = if self.nulls() { "-nulls" } else { "" };
        Ok(self
            .dir()
            .join(format!("rows-{}-runs-{}{nulls}", self.rows()?, self.runs()?)))
    }
}

fn main() -> Result<()> {
    let flags = Flags::of_process();
    let arguments = Arguments { flags };
    match arguments.flags.command("ratio") {
        "generate" => generate(&arguments),
        "ratio" => ratio(&arguments),
        "memory" => memory(&arguments),
        "java" => java(&arguments),
        other => Err(format!("{other:?} is none of ratio, memory, java").into()),
    }
}

fn generate(arguments: &Arguments) -> Result<()> {
    let table = arguments.table()?;
    fs::create_dir_all(&table)?;
    let bucket = Bucket::new(&table, MEMORY, &Options::new())?;
    block_on(bucket.generate(&table, arguments.rows()?, arguments.runs()?, arguments.nulls()))
}

/// The table's folder; made by another process if it is not there, so that its memory is not ours.
fn ready(arguments: &Arguments) -> Result<Bucket> {
    let table = arguments.table()?;
    if !table.join("runs.txt").exists() {
        let mut command = Command::new(env::current_exe()?);
        command.arg("generate").arg("--dir").arg(arguments.dir());
        command.arg("--rows").arg(arguments.rows()?.to_string());
        command.arg("--runs").arg(arguments.runs()?.to_string());
        command.arg("--engine").arg(arguments.engine());
        if !command.status()?.success() {
            return Err("the table could not be made".into());
        }
    }
    Bucket::new(&table, MEMORY, &arguments.options())?.open(&table)
}

fn ratio(arguments: &Arguments) -> Result<()> {
    let bucket = ready(arguments)?;
    let output = block_on(bucket.merged())?;
    let output_rows: usize = output.iter().map(|batch| batch.len()).sum();
    let (mut decodes, mut encodes, mut merges, mut compactions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut input_rows = 0;
    for _ in 0..arguments.number("repeat", 5)? {
        let (rows, decode) = measured(|| block_on(bucket.decode()))?;
        input_rows = rows?;
        let (files, encode) = measured(|| block_on(bucket.encode(&output)))?;
        block_on(bucket.remove(&files?))?;
        let (merged, merge) = measured(|| block_on(bucket.merged()))?;
        drop(merged?);
        let (files, compaction) = measured(|| block_on(bucket.compact()))?;
        block_on(bucket.remove(&files?))?;
        println!("decode {decode:.3}  encode {encode:.3}  decode+merge {merge:.3}  compaction {compaction:.3} s");
        decodes.push(decode);
        encodes.push(encode);
        merges.push(merge);
        compactions.push(compaction);
    }
    let limit = median(decodes.clone()) + median(encodes);
    let compaction = median(compactions);
    println!(
        "{} runs, {input_rows} rows in, {output_rows} out: limit {limit:.3} s, compaction {compaction:.3} s, ratio {:.3}; merging alone {:.3} s",
        bucket.runs(),
        compaction / limit,
        median(merges) - median(decodes),
    );
    Ok(())
}

fn memory(arguments: &Arguments) -> Result<()> {
    let bucket = ready(arguments)?;
    let before = peak_memory_bytes()?;
    let (files, seconds) = measured(|| block_on(bucket.compact()))?;
    let files = files?;
    let rows: i64 = files.iter().map(|file| file.row_count).sum();
    block_on(bucket.remove(&files))?;
    println!(
        "{} runs, {rows} rows out in {seconds:.3} s: peak memory {} MiB (before: {} MiB)",
        bucket.runs(),
        peak_memory_bytes()? >> 20,
        before >> 20,
    );
    Ok(())
}

fn java(arguments: &Arguments) -> Result<()> {
    let oracle = Oracle::new(&arguments.flags);
    let (rows, runs, engine) = (
        arguments.rows()?.to_string(),
        arguments.runs()?.to_string(),
        arguments.engine(),
    );
    let name = format!("rows_{rows}_runs_{runs}_{}", engine.replace('-', "_"));
    let table = oracle.made(&name, &[("rows", &rows), ("runs", &runs), ("engine", engine)])?;
    let functions = FUNCTIONS.map(|(key, function)| format!("{key}={function}")).join(",");
    let mut compact = vec![("repeat", "2")];
    if engine == "aggregation" {
        compact.push(("options", &functions));
    }
    let bucket = Bucket::new(&table, MEMORY, &arguments.options())?.open(&table)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.number("repeat", 3)? {
        let (files, seconds) = measured(|| block_on(bucket.compact()))?;
        block_on(bucket.remove(&files?))?;
        let lines = oracle.bench("compact", &name, &compact)?;
        // The last line is the warmest run.
        let java = number(lines.last().ok_or("Java measured nothing")?, "threadCpuSeconds")?;
        println!("ours {seconds:.3} s, Java {java:.3} s");
        ours.push(seconds);
        theirs.push(java);
    }
    println!("Java takes {:.2} times our CPU time", median(theirs) / median(ours));
    Ok(())
}
