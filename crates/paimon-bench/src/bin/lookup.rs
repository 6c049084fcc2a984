//! Old values: compactions that look them up, and point look-ups, against Java and against a key-value store.
//!
//! ```text
//! lookup compact [--rows 2000000] [--delta 200000] [--rounds 3] [--repeat 3]      the first round finds cold caches, the others warm ones
//! lookup points  [--rows 2000000] [--queries 300000] [--batch 1000] [--cache-mb 256]
//! lookup prices  [--rows 2000000] [--keys 100000] [--cache-mb 256]                without Java: what the choice between data file and lookup file costs
//! ```
//!
//! All take `--dir` and `--oracle`. The table, made by Java: the even keys below twice `--rows` in the top level,
//! `changelog-producer = lookup`. Half of a delta's rows are updates, half are new. Measures are CPU time of one thread.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use fjall::{Database, KeyspaceCreateOptions};
use paimon::format::kv::{KeyCodec, KvSchema};
use paimon::format::row::BinaryRow;
use paimon::format::row::compacted::CompactedRowEncoder;
use paimon::lsm::lookup::{LookupSource, LookupView, SortedKeys};
use paimon::merge::changelog::LookupNeed;
use paimon::{Selection, Table, TimeTravel};
use paimon_bench::cost::{measured, median};
use paimon_bench::flags::Flags;
use paimon_bench::oracle::{Line, Oracle, number};
use paimon_bench::worker::{Kept, Worker};
use paimon_bench::{Result, rows};
use paimon_lookup::{LookupFileCache, LookupLevels, LookupSettings};

fn main() -> Result<()> {
    let flags = Flags::of_process();
    let rows = flags.number("rows", 2_000_000)?;
    let oracle = Oracle::new(&flags);
    let name = format!("lookup_{rows}");
    let table = oracle.made(&name, &[("lookup", "true"), ("rows", &rows.to_string())])?;
    match flags.command("compact") {
        "compact" => compactions(&flags, &oracle, &name, &table, rows),
        "points" => points(&flags, &oracle, &name, &table, rows),
        "prices" => prices(&flags, &table, rows),
        other => Err(format!("{other:?} is none of compact, points, prices").into()),
    }
}

fn compactions(flags: &Flags, oracle: &Oracle, name: &str, table: &Path, rows: u64) -> Result<()> {
    let (delta, rounds) = (flags.number("delta", 200_000)?, flags.number("rounds", 3)?);
    let worker = Worker::start()?;
    let mut measures: [[Vec<f64>; 2]; 2] = Default::default();
    // Java has warm-up rounds, too; caches are cold again after this one.
    our_compactions(&worker, table, rows, delta, rounds)?;
    for _ in 0..flags.number("repeat", 3)? {
        let ours = our_compactions(&worker, table, rows, delta, rounds)?;
        let (delta, rounds) = (delta.to_string(), rounds.to_string());
        let lines = oracle.bench("lookup-changelog", name, &[("delta", &delta), ("repeat", &rounds)])?;
        let lines = lines.iter().filter(|line| line["bench"] == "lookup-changelog");
        let theirs = lines
            .map(|line| number(line, "threadCpuSeconds"))
            .collect::<Result<Vec<_>>>()?;
        println!("ours {ours:.3?} s, Java {theirs:.3?} s");
        for (side, seconds) in measures.iter_mut().zip([ours, theirs]) {
            let (cold, warm) = seconds.split_first().ok_or("no rounds")?;
            side[0].push(*cold);
            side[1].extend(warm);
        }
    }
    let [ours, theirs] = measures;
    for (cache, (ours, theirs)) in ["cold", "warm"].into_iter().zip(ours.into_iter().zip(theirs)) {
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{cache}: ours {ours:.3} s, Java {theirs:.3} s: {:.2} times",
            theirs / ours
        );
    }
    Ok(())
}

/// CPU seconds of the compaction thread, a round each.
fn our_compactions(worker: &Worker, path: &Path, rows: u64, delta: u64, rounds: u64) -> Result<Vec<f64>> {
    let kept = Kept::of(path)?;
    let table = worker.open(path, &[("write-only", "false")])?;
    let mut write = table.write_builder().new_write()?;
    let mut seconds = Vec::new();
    for round in 1..=rounds {
        let key = |i: u64| (rows::mix(round << 40 | i) % rows * 2 + (i & 1)) as i64;
        let keys: Vec<i64> = (0..delta).map(key).collect();
        for keys in keys.chunks(8192) {
            worker.block_on(write.write(&rows::rows(keys, round)?))?;
        }
        let before = worker.cpu_seconds()?;
        let messages = worker.block_on(write.prepare_commit(true))?;
        seconds.push(worker.cpu_seconds()? - before);
        let changelog = messages
            .iter()
            .flat_map(|message| &message.increment.compact.changelog_files);
        if changelog.map(|file| file.row_count).sum::<i64>() == 0 {
            return Err("no changelog was made".into());
        }
    }
    worker.block_on(write.abort());
    kept.restore()?;
    Ok(seconds)
}

fn points(flags: &Flags, oracle: &Oracle, name: &str, path: &Path, rows: u64) -> Result<()> {
    let (queries, batch) = (flags.number("queries", 300_000)?, flags.number("batch", 1000)?);
    let cache_mb = flags.number("cache-mb", 256)?;
    let worker = Worker::start()?;
    let table = worker.open(path, &[])?;
    // As Java does: there is a lookup file before the first answer.
    let levels = Levels::open(&worker, &table, cache_mb << 20, 0)?;
    let store = Store::fill(&levels.schema, rows, cache_mb << 20)?;
    let cache = format!("lookup.cache-max-memory-size={cache_mb}mb");
    let java = oracle.bench(
        "lookup",
        name,
        &[("queries", &queries.to_string()), ("options", &cache)],
    )?;
    for (miss, kind) in ["hit", "miss"].into_iter().enumerate() {
        let mut best = [0.0_f64; 3];
        for round in 0..4 {
            let key = |i: u64| (rows::mix(round << 40 | i) % rows * 2 + miss as u64) as i64;
            let keys: Vec<i64> = (0..queries).map(key).collect();
            let measures = [
                measured(|| levels.ask(&worker, &keys, 1))?,
                measured(|| levels.ask(&worker, &keys, batch as usize))?,
                measured(|| store.ask(&keys))?,
            ];
            for (best, (found, seconds)) in best.iter_mut().zip(measures) {
                if found?[1 - miss] > 0 {
                    return Err(format!("a {kind} was none").into());
                }
                *best = best.max(queries as f64 / seconds);
            }
        }
        let of_kind = |line: &&Line| line["kind"] == kind;
        let theirs = java.iter().filter(of_kind).map(|line| number(line, "perCpuSecond"));
        let theirs = theirs.collect::<Result<Vec<_>>>()?.into_iter().fold(0.0, f64::max);
        let [single, batched, store] = best.map(|best| best / 1000.0);
        println!(
            "{kind}: thousands a CPU second, the best of 4 rounds: ours {single:.0} one by one, {batched:.0} in batches of {batch}, \
             Java {:.0}, fjall {store:.0}",
            theirs / 1000.0
        );
    }
    Ok(())
}

/// Nanoseconds a row of the data file for reading it, anew and again, and for building its lookup file; nanoseconds a key for finding it there,
/// with and without the blocks in memory. The keys lie all over the file.
fn prices(flags: &Flags, path: &Path, rows: u64) -> Result<()> {
    let (count, cache_mb) = (flags.number("keys", 100_000)?, flags.number("cache-mb", 256)?);
    let worker = Worker::start()?;
    let table = worker.open(path, &[])?;
    let keys: Vec<i64> = (0..count).map(|i| (rows::mix(i) % rows * 2) as i64).collect();
    let mut nanos: [Vec<f64>; 6] = Default::default();
    for _ in 0..3 {
        for (read, cache_bytes) in [(0, 0), (1, cache_mb << 20)] {
            let levels = Levels::open(&worker, &table, cache_bytes, u32::MAX)?;
            if cache_bytes > 0 {
                levels.ask(&worker, &keys, 8192)?;
            }
            let (found, seconds) = measured(|| levels.ask(&worker, &keys, count as usize))?;
            found?;
            nanos[read].push(seconds * 1e9 / rows as f64);
        }
        for (found_at, cache_bytes) in [(3, 0), (4, cache_mb << 20)] {
            let levels = Levels::open(&worker, &table, cache_bytes, 0)?;
            let (built, seconds) = measured(|| levels.ask(&worker, &keys[..1], 1))?;
            built?;
            nanos[2].push(seconds * 1e9 / rows as f64);
            if cache_bytes > 0 {
                levels.ask(&worker, &keys, 8192)?;
            }
            for (place, at_once) in [(found_at, 8192), (5, 1)] {
                let keys = &keys[..if at_once == 1 { keys.len() / 20 } else { keys.len() }];
                let (found, seconds) = measured(|| levels.ask(&worker, keys, at_once))?;
                found?;
                if place != 5 || cache_bytes > 0 {
                    nanos[place].push(seconds * 1e9 / keys.len() as f64);
                }
            }
        }
    }
    let [read, again, build, stored, cached, single] = nanos.map(median);
    println!("a row: {read:.0} ns to read, {again:.0} ns to read again, {build:.0} ns to build");
    println!(
        "a key: {stored:.0} ns in a lookup file, {cached:.0} ns with its blocks in memory, {single:.0} ns one by one"
    );
    Ok(())
}

/// The look-ups of the table's only bucket.
struct Levels {
    levels: LookupLevels,
    view: LookupView,
    schema: Arc<KvSchema>,
    codec: KeyCodec,
}

impl Levels {
    fn open(worker: &Worker, table: &Table, cache_bytes: u64, build_after: u32) -> Result<Self> {
        let buckets = worker.block_on(table.buckets(&TimeTravel::Latest, &Selection::all()))?;
        let bucket = buckets.first().ok_or("an empty table")?;
        let schema = Arc::new(table.schema().kv_schema()?);
        let settings = LookupSettings {
            max_memory_bytes: cache_bytes,
            build_after,
            ..LookupSettings::from_options(table.options())?
        };
        let env = table.context().env().clone();
        let cache = LookupFileCache::new(env.clone(), &settings);
        let files = table.kv_files(&BinaryRow::default(), 0)?;
        Ok(Self {
            levels: LookupLevels::builder(env, files, Arc::clone(&schema), cache)
                .settings(settings)
                .build()?,
            view: LookupView {
                levels: bucket.levels().view(),
                deleted: Arc::default(),
            },
            codec: KeyCodec::new(&schema)?,
            schema,
        })
    }

    /// Hits and misses of the keys, `at_once` of which are asked together, each once.
    fn ask(&self, worker: &Worker, keys: &[i64], at_once: usize) -> Result<[usize; 2]> {
        let mut found = [0; 2];
        for keys in keys.chunks(at_once) {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            keys.dedup();
            let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys))];
            let keys = SortedKeys {
                schema: Arc::clone(&self.schema),
                keys: self.codec.keys_of_columns(&columns)?,
                columns,
            };
            let hits = worker.block_on(self.levels.lookup(&keys, &self.view, 1, LookupNeed::Value, u64::MAX))?;
            for hit in hits.found {
                found[usize::from(hit.is_none())] += 1;
            }
        }
        Ok(found)
    }
}

/// The same rows in a key-value store, its files in a temporary folder.
struct Store {
    rows: fjall::Keyspace,
    _database: Database,
    _folder: tempfile::TempDir,
}

impl Store {
    fn fill(schema: &KvSchema, count: u64, cache_bytes: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let database = Database::builder(folder.path()).cache_size(cache_bytes).open()?;
        let store = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        let types: Vec<_> = schema.fields.iter().map(|field| field.data_type.clone()).collect();
        let mut ingestion = store.start_ingestion()?;
        let keys: Vec<i64> = (0..count as i64).map(|i| 2 * i).collect();
        for keys in keys.chunks(64 << 10) {
            let rows = rows::rows(keys, 0)?;
            let values = CompactedRowEncoder::new(rows.columns(), &types)?.encode_all()?;
            for (i, key) in keys.iter().enumerate() {
                ingestion.write(key.to_be_bytes(), values.value(i))?;
            }
        }
        ingestion.finish()?;
        Ok(Self {
            rows: store,
            _database: database,
            _folder: folder,
        })
    }

    /// Hits and misses of the keys.
    fn ask(&self, keys: &[i64]) -> Result<[usize; 2]> {
        let mut found = [0; 2];
        for key in keys {
            found[usize::from(self.rows.get(key.to_be_bytes())?.is_none())] += 1;
        }
        Ok(found)
    }
}
