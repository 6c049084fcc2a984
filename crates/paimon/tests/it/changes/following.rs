//! How a stream goes on from snapshot to snapshot.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use paimon::format::env::{Env, InlineRuntime, Runtime};
use paimon::format::predicate::Predicate;
use paimon::{Context, Selection, Snapshot, StreamStart, Table, TableSchema};

use super::support::{available, changes_from, delta_table, files, refused, stream_from, text, with};
use crate::support::{Place, commit, commit_batch, kv_schema};

#[tokio::test]
async fn compactions_give_nothing_and_are_passed() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut stream = stream_from(&table, StreamStart::FromSnapshot(3)).await;
    assert_eq!(available(&mut stream).await, ["4 -D 2 b"]);
    table.compact_builder().full(true).run().await.unwrap();
    assert!(available(&mut stream).await.is_empty());
    assert_eq!(stream.position().unwrap().snapshot, 6);
}

#[tokio::test]
async fn columns_rows_and_buckets_can_be_chosen() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let fields = table.schema().fields.clone();
    let builder = table.changelog_builder().start(StreamStart::earliest());
    let read = async |builder: paimon::ChangelogBuilder| available(&mut builder.stream().await.unwrap()).await;
    let values = builder.clone().projection(&["v"]).unwrap();
    assert_eq!(read(values).await, ["1 +I a", "1 +I b", "2 +U c", "2 +I d", "4 -D b"]);
    let none: [&str; 0] = [];
    assert_eq!(read(builder.clone().projection(&none).unwrap()).await.len(), 5);
    // The filter's column need not come out; each change is tested by itself.
    let filtered = builder.clone().filter(Predicate::parse("v >= 'b'", &fields).unwrap());
    assert_eq!(
        read(filtered.projection(&["k"]).unwrap()).await,
        ["1 +I 2", "2 +U 1", "2 +I 3", "4 -D 2"]
    );
    let one_key = builder.clone().filter(Predicate::parse("k = 1", &fields).unwrap());
    assert_eq!(read(one_key).await, ["1 +I 1 a", "2 +U 1 c"]);
    assert!(
        read(builder.clone().select(Selection::all().bucket(1)))
            .await
            .is_empty()
    );
    // A full read tests merged rows.
    let full = table
        .changelog_builder()
        .filter(Predicate::parse("v <= 'c'", &fields).unwrap());
    assert_eq!(read(full).await, ["4 +I 1 c"]);
    let error = table.changelog_builder().projection(&["w"]).unwrap_err();
    assert_eq!(error.to_string(), "column w: the table has no such column; it has k, v");
}

#[tokio::test]
async fn partitions_come_in_order_and_can_be_chosen() {
    let place = Place::new();
    let schema = TableSchema::builder()
        .column("p", "INT".parse().unwrap())
        .column("k", "INT".parse().unwrap())
        .primary_key(["p", "k"])
        .partition_keys(["p"])
        .option("bucket", "2");
    let table = place.create(schema).await;
    for add in [0, 100] {
        let columns = [("p", vec![2, 1, 3, 1]), ("k", vec![1 + add, 2 + add, 3 + add, 4 + add])];
        let columns = columns.map(|(name, values)| {
            let values: arrow_array::ArrayRef = Arc::new(arrow_array::Int32Array::from(values));
            (name, values)
        });
        let batch = arrow_array::RecordBatch::try_from_iter(columns).unwrap();
        commit_batch(&table, &batch, &arrow_array::Int8Array::from_value(0, 4)).await;
    }
    let builder = table.changelog_builder().start(StreamStart::earliest());
    let mut of_one = builder
        .clone()
        .select(Selection::all().partition([("p", "1")]))
        .stream()
        .await
        .unwrap();
    let mut rows = available(&mut of_one).await;
    rows.sort();
    assert_eq!(rows, ["1 +I 1 2", "1 +I 1 4", "2 +I 1 102", "2 +I 1 104"]);
    let fields = table.schema().fields.clone();
    let filtered = builder.filter(Predicate::parse("p >= 2 AND k > 3", &fields).unwrap());
    assert_eq!(
        available(&mut filtered.stream().await.unwrap()).await,
        ["2 +I 2 101", "2 +I 3 103"]
    );
}

#[tokio::test]
async fn an_audit_log_has_the_kind_in_front() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut stream = stream_from(&table, StreamStart::FromSnapshot(4)).await;
    let batch = stream.next_available().await.unwrap().unwrap();
    let log = batch.audit_log().unwrap();
    let names: Vec<String> = log.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["rowkind", "k", "v"]);
    let kind = paimon::format::types::Datum::from_array(log.column(0), 0).unwrap();
    assert_eq!(kind, paimon::format::types::Datum::String("-D".to_owned()));
    assert_eq!((log.num_rows(), batch.len(), batch.is_empty()), (1, 1, false));
}

/// Overwrites a snapshot's file.
async fn edit(table: &Table, id: i64, edit: impl FnOnce(&mut Snapshot)) {
    let mut snapshot = table.snapshot_store().get(id).await.unwrap();
    edit(&mut snapshot);
    let json = snapshot.to_json().unwrap().into();
    table
        .storage()
        .put(&format!("snapshot/snapshot-{id}"), json)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_bounded_stream_ends_before_the_first_later_watermark() {
    let place = Place::new();
    let table = delta_table(&place).await;
    for (id, watermark) in [(1, 10), (2, 20), (3, 30), (4, 40)] {
        edit(&table, id, |snapshot| snapshot.watermark = Some(watermark)).await;
    }
    let bounded = with(&table, &[("scan.bounded.watermark", "20")]);
    let mut stream = stream_from(&bounded, StreamStart::earliest()).await;
    let mut rows = Vec::new();
    while let Some(batch) = stream.next().await.unwrap() {
        rows.extend(text(&batch));
    }
    assert_eq!(rows, ["1 +I 1 a", "1 +I 2 b", "2 +U 1 c", "2 +I 3 d"]);
    assert!(stream.has_ended());
    assert_eq!(stream.position().unwrap().snapshot, 3);
    // All rows of a snapshot beyond the bound are read, but no more.
    let mut stream = stream_from(&bounded, StreamStart::FromSnapshotFull(3)).await;
    assert_eq!(available(&mut stream).await.len(), 3);
    assert!(stream.has_ended());
    // The bound may be behind before anything is read.
    let mut stream = stream_from(&bounded, StreamStart::Latest).await;
    assert!(stream.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_delayed_stream_waits_until_snapshots_are_old_enough() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let now_ms = place.context.env().clock.now_ms();
    edit(&table, 4, |snapshot| snapshot.time_millis = now_ms + 60_000).await;
    let delayed = with(&table, &[("streaming.read.snapshot.delay", "1 ms")]);
    let mut stream = stream_from(&delayed, StreamStart::earliest()).await;
    assert_eq!(available(&mut stream).await.len(), 4);
    edit(&table, 4, |snapshot| snapshot.time_millis = 0).await;
    assert_eq!(available(&mut stream).await, ["4 -D 2 b"]);
}

#[tokio::test]
async fn overwrites_are_changes_only_when_asked_for() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let buckets = table
        .buckets(&paimon::TimeTravel::Latest, &Selection::all())
        .await
        .unwrap();
    let mut messages = files(&table, &[("+I", 3, "d"), ("+U", 7, "g")]).await;
    messages[0].increment.data.deleted_files = buckets[0].levels().all_files();
    table
        .write_builder()
        .new_commit()
        .unwrap()
        .commit(9, messages)
        .await
        .unwrap();
    assert!(changes_from(&table, StreamStart::FromSnapshot(5)).await.is_empty());
    let asking = with(&table, &[("streaming-read-overwrite", "true")]);
    assert_eq!(
        changes_from(&asking, StreamStart::FromSnapshot(5)).await,
        ["5 -D 1 c", "5 -D 3 d", "5 +I 3 d", "5 +I 7 g"]
    );
    assert_eq!(
        refused(&with(&asking, &[("changelog-producer", "lookup")])).await,
        "option 'streaming-read-overwrite' = 'true': a table with changelog-producer lookup tells all its changes already"
    );
}

#[tokio::test]
async fn a_table_that_went_back_is_noticed() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut stream = stream_from(&table, StreamStart::Latest).await;
    assert!(available(&mut stream).await.is_empty());
    for file in ["snapshot-3", "snapshot-4", "LATEST"] {
        table.storage().delete(&format!("snapshot/{file}")).await.unwrap();
    }
    assert_eq!(
        stream.next_available().await.unwrap_err().to_string(),
        "this read wants snapshot 5 next, but the latest is 2: was the table rolled back or made anew? Start again"
    );
}

#[tokio::test]
async fn long_lived_changelogs_stand_in_for_expired_snapshots() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let storage = table.storage();
    for id in [1, 2] {
        let path = format!("snapshot/snapshot-{id}");
        let json = storage.read_all(&path).await.unwrap();
        storage.put(&format!("changelog/changelog-{id}"), json).await.unwrap();
        storage.delete(&path).await.unwrap();
    }
    let long_lived = with(&table, &[("changelog.time-retained", "1 d")]);
    assert_eq!(changes_from(&long_lived, StreamStart::earliest()).await.len(), 5);
    assert_eq!(changes_from(&long_lived, StreamStart::FromSnapshot(2)).await.len(), 3);
    assert_eq!(changes_from(&table, StreamStart::earliest()).await, ["4 -D 2 b"]);
}

/// Notes how long it was asked to sleep.
#[derive(Debug, Default)]
struct Sleepless {
    runtime: InlineRuntime,
    slept_ms: Mutex<Vec<u128>>,
}

impl Runtime for Sleepless {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.runtime.spawn(task);
    }

    fn cpu(&self, job: Box<dyn FnOnce() + Send>) {
        self.runtime.cpu(job);
    }

    fn blocking(&self, job: Box<dyn FnOnce() + Send>) {
        self.runtime.blocking(job);
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        self.slept_ms.lock().unwrap().push(time.as_millis());
        self.runtime.sleep(time)
    }
}

#[tokio::test]
async fn pauses_double_until_there_is_news() {
    let mut place = Place::new();
    let runtime = Arc::new(Sleepless::default());
    let env = Env {
        runtime: Arc::<Sleepless>::clone(&runtime),
        ..Env::fixed(place.dir.path())
    };
    place.context = Context::new(env);
    let table = place.create(kv_schema()).await;
    let mut stream = stream_from(&table, StreamStart::Latest).await;
    for _ in 0..6 {
        assert!(stream.next_available().await.unwrap().is_none());
        stream.wait().await;
    }
    assert_eq!(
        *runtime.slept_ms.lock().unwrap(),
        [625, 1250, 2500, 5000, 10_000, 10_000]
    );
    commit(&table, &[("+I", 1, "a")]).await;
    assert_eq!(text(&stream.next().await.unwrap().unwrap()), ["1 +I 1 a"]);
    assert!(stream.next_available().await.unwrap().is_none());
    stream.wait().await;
    assert_eq!(runtime.slept_ms.lock().unwrap().last(), Some(&625));
}
