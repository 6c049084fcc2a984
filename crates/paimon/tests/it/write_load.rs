//! Writers that are faster than compaction.

use arrow_array::{Int8Array, RecordBatch};
use paimon::format::env::{Budget, Env};
use paimon::{Context, ErrorKind, SchemaBuilder, Table};

use crate::support::{Place, kv, kv_schema, rows};

const ROUNDS: i32 = 40;
const STOP_TRIGGER: usize = 4;

/// Each batch of more than 192 KiB is flushed at once.
fn schema() -> SchemaBuilder {
    kv_schema()
        .option("num-sorted-run.compaction-trigger", "2")
        .option("num-sorted-run.stop-trigger", STOP_TRIGGER.to_string())
        .option("write-buffer-size", "192 kb")
        .option("write-buffer-spillable", "false")
}

fn batch(round: i32) -> (RecordBatch, Int8Array) {
    let text = "x".repeat(2000);
    let rows: Vec<_> = (0..100)
        .map(|row| ("+I", (round * 37 + row) % 1000, text.as_str()))
        .collect();
    kv(&rows)
}

async fn distinct_keys(table: &Table) -> usize {
    let all = rows(table).await;
    let mut keys: Vec<_> = all.iter().map(|row| row.split(' ').next().unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all.len(), "a key twice");
    keys.len()
}

/// All work runs on one thread here: a compaction only gets on while its writer waits for it, so the writer is always the faster one.
#[tokio::test]
async fn a_writer_that_is_faster_than_compaction_waits_and_ends() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let watch = write.watch();
    let mut most_runs = 0;
    for round in 0..ROUNDS {
        let (batch, kinds) = batch(round);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        let state = watch.state();
        most_runs = most_runs.max(state.buckets["bucket-0"].sorted_runs);
        assert_eq!(state.stalled().count(), 0, "it waits in no call");
    }
    let state = watch.state().buckets["bucket-0"];
    assert!(state.stalls > 5, "{state:?}");
    assert!(
        (STOP_TRIGGER..=STOP_TRIGGER + 2).contains(&most_runs),
        "{most_runs} sorted runs"
    );
    let messages = write.prepare_commit(true).await.unwrap();
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    write.abort().await;
    assert_eq!(distinct_keys(&table).await, 1000);
}

#[tokio::test]
async fn a_write_only_writer_never_waits_and_the_job_catches_up() {
    let place = Place::new();
    let table = place.create(schema().option("write-only", "true")).await;
    let builder = table.write_builder();
    let (mut write, commit) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    let runs = async || {
        let buckets = table
            .buckets(&paimon::TimeTravel::Latest, &paimon::Selection::all())
            .await
            .unwrap();
        buckets[0].runs().len()
    };
    for round in 0..ROUNDS {
        let (batch, kinds) = batch(round);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        if round % 10 == 9 {
            let messages = write.prepare_commit(true).await.unwrap();
            commit.commit(i64::from(round), messages).await.unwrap();
        }
    }
    let state = write.watch().state().buckets["bucket-0"];
    assert_eq!((state.stalls, state.sorted_runs), (0, 0));
    write.abort().await;
    let before = runs().await;
    assert!(before >= ROUNDS as usize, "{before} runs");
    while table.compact_builder().run().await.unwrap().snapshot.is_some() {}
    let after = runs().await;
    assert!(after <= 2, "{after} runs");
    assert_eq!(distinct_keys(&table).await, 1000);
}

#[tokio::test]
async fn the_smallest_budgets_work_and_less_is_refused_at_once() {
    const MIB: u64 = 1 << 20;
    for (memory, buffer, message) in [
        (12 * MIB, "192 kb", ""),
        (
            12 * MIB,
            "191 kb",
            "option 'write-buffer-size': expected at least 196608 bytes (3 times 'page-size'), found 195584",
        ),
        (
            12 * MIB - 1,
            "192 kb",
            "the memory budget is 12582911 bytes: compactions need at least 12582912",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut env = Env::fixed(dir.path());
        env.memory = Budget::new(memory);
        let context = Context::new(env);
        let location = dir.path().join("t");
        let schema = schema().option("write-buffer-size", buffer).option("bucket", "4");
        let location = location.to_str().unwrap();
        let outcome = match Table::create(location, schema, &context).await {
            Ok(table) => table.write_builder().new_write().map(|write| (table, write)),
            Err(error) => Err(error),
        };
        let (table, mut write) = match outcome {
            Ok(opened) => opened,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid);
                assert!(!message.is_empty() && error.to_string().contains(message), "{error}");
                continue;
            }
        };
        assert_eq!(message, "", "{memory} {buffer}");
        for round in 0..ROUNDS {
            let (batch, kinds) = batch(round);
            write.write_with_kinds(&batch, &kinds).await.unwrap();
        }
        let messages = write.prepare_commit(true).await.unwrap();
        table
            .write_builder()
            .new_commit()
            .unwrap()
            .commit(1, messages)
            .await
            .unwrap();
        write.abort().await;
        table.compact_builder().full(true).run().await.unwrap();
        assert_eq!(distinct_keys(&table).await, 1000);
    }
}
