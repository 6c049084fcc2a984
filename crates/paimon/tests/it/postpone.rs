//! `bucket = -2`: rows wait without a bucket; a compaction gives them one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use paimon::format::meta::CommitMessage;
use paimon::manifest::snapshot::CommitKind;
use paimon::{ErrorKind, SchemaBuilder, Selection, StreamStart, Table, TableSchema};

use crate::support::{Place, commit, kv, kv_schema, live_buckets, rows, spark};

fn schema() -> SchemaBuilder {
    kv_schema()
        .option("bucket", "-2")
        .option("postpone.default-bucket-num", "2")
}

/// Rows and bucket count of each bucket.
async fn buckets(table: &Table) -> BTreeMap<i32, (i64, i32)> {
    let buckets = live_buckets(table).await.into_iter().map(|bucket| {
        let rows = bucket.files.iter().map(|file| file.row_count).sum();
        (bucket.bucket, (rows, bucket.total_buckets))
    });
    buckets.collect()
}

async fn messages(table: &Table, user: &str, rows: &[(&str, i32, &str)]) -> Vec<CommitMessage> {
    let mut writer = table.write_builder().commit_user(user).new_write().unwrap();
    let (batch, kinds) = kv(rows);
    writer.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = writer.prepare_commit(true).await.unwrap();
    writer.abort().await;
    messages
}

#[tokio::test]
async fn rows_wait_in_files_that_say_who_wrote_them() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let messages = messages(
        &table,
        "alice",
        &[("+I", 3, "c"), ("+I", 1, "a"), ("-D", 3, "c"), ("+I", 1, "b")],
    )
    .await;
    let [message] = messages.as_slice() else {
        panic!("{messages:?}");
    };
    assert_eq!((message.bucket, message.total_buckets), (-2, Some(-2)));
    let [file] = message.increment.data.new_files.as_slice() else {
        panic!("{message:?}");
    };
    let name = &file.file_name;
    assert!(
        name.starts_with("data--u-alice-s-0-w-") && name.ends_with("-0.avro"),
        "{name}"
    );
    assert!(place.dir.path().join("t/bucket-postpone").join(name).is_file());
    assert_eq!((file.row_count, file.delete_row_count, file.level), (4, Some(1), 0));
    assert_eq!((file.min_sequence_number, file.max_sequence_number), (-1, -1));
    table
        .write_builder()
        .new_commit()
        .unwrap()
        .commit(1, messages)
        .await
        .unwrap();
    assert_eq!(rows(&table).await, [] as [&str; 0]);
    assert_eq!(buckets(&table).await, BTreeMap::from([(-2, (4, -2))]));
}

/// A bucket without rows in the last commit is idle until the next row comes, not until the next commit.
#[tokio::test]
async fn idle_buckets_that_are_written_to_stay_open() {
    let place = Place::new();
    let trees = kv_schema().option("bucket", "1").option("write-buffer-size", "256 kb");
    for (name, schema) in [("postponed", schema()), ("tree", trees)] {
        let table = Table::create(&place.location(name), schema, &place.context)
            .await
            .unwrap();
        let mut writer = table.write_builder().new_write().unwrap();
        let commit = table.write_builder().new_commit().unwrap();
        let (batch, kinds) = kv(&[("+I", 1, "a")]);
        writer.write_with_kinds(&batch, &kinds).await.unwrap();
        commit
            .commit(1, writer.prepare_commit(true).await.unwrap())
            .await
            .unwrap();
        assert_eq!(writer.prepare_commit(true).await.unwrap(), []);
        let (batch, kinds) = kv(&[("+I", 2, "b")]);
        writer.write_with_kinds(&batch, &kinds).await.unwrap();
        writer.close_idle_buckets().await.unwrap();
        commit
            .commit(3, writer.prepare_commit(true).await.unwrap())
            .await
            .unwrap();
        writer.abort().await;
        let total: i64 = buckets(&table).await.values().map(|(rows, _)| rows).sum();
        assert_eq!(total, 2, "{name}");
    }
}

#[tokio::test]
async fn a_compaction_gives_rows_their_bucket() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let first: Vec<(i32, String)> = (0..20).map(|key| (key, format!("a{key}"))).collect();
    let first: Vec<_> = first
        .iter()
        .rev()
        .map(|(key, value)| ("+I", *key, value.as_str()))
        .collect();
    commit(&table, &first).await;
    commit(&table, &[("+I", 7, "x"), ("-D", 8, "a8"), ("+I", 7, "y")]).await;

    let dry = table.compact_builder().dry_run(true).run().await.unwrap();
    assert_eq!((dry.distributed.len(), table.snapshots(9).await.unwrap().len()), (1, 2));
    let report = table.compact_builder().full(true).run().await.unwrap();
    let [distributed] = report.distributed.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!((distributed.files, distributed.rows, distributed.buckets), (2, 23, 2));
    assert_eq!(report.snapshot, Some(4));
    let snapshot = table.snapshot_store().get(3).await.unwrap();
    assert_eq!(
        (snapshot.commit_kind, snapshot.delta_record_count),
        (CommitKind::Compact, -3)
    );
    let found = rows(&table).await;
    assert_eq!(found.len(), 19);
    assert!(
        found.contains(&"7 y".to_owned()) && !found.contains(&"8 a8".to_owned()),
        "{found:?}"
    );
    let there = buckets(&table).await;
    assert_eq!(there.keys().copied().collect::<Vec<_>>(), [0, 1]);
    assert!(there.values().all(|bucket| bucket.1 == 2), "{there:?}");

    // Later rows go to the same buckets, whatever the option says by then; nothing is left to do after that.
    let other = crate::support::with(&table, "postpone.default-bucket-num", "5");
    commit(&other, &[("+I", 8, "z"), ("+U", 0, "z")]).await;
    let report = other.compact_builder().run().await.unwrap();
    assert_eq!(report.distributed[0].buckets, 2);
    let found = rows(&table).await;
    assert!(
        found.contains(&"8 z".to_owned()) && found.contains(&"0 z".to_owned()),
        "{found:?}"
    );
    assert_eq!(found.len(), 20);
    assert_eq!(table.compact_builder().run().await.unwrap().distributed, []);
}

/// Many partitions share one small memory: the one with most rows in it goes to disk first, and no row is lost or overtaken.
#[tokio::test]
async fn partitions_share_the_memory_for_buffers() {
    const PARTITIONS: i32 = 24;
    const ROUNDS: i32 = 24;
    // Partition 0 gets five times as many rows, of four KB each.
    let rows_of_a_round = |round: i32| {
        let keys = (0..PARTITIONS).flat_map(|p| (0..if p == 0 { 5 } else { 1 }).map(move |k| (p, k)));
        let (ps, ks): (Vec<i32>, Vec<i32>) = keys.unzip();
        let values = ps.iter().map(|_| format!("{round}{}", "x".repeat(4 << 10)));
        let columns: [(&str, ArrayRef); 3] = [
            ("v", Arc::new(StringArray::from_iter_values(values))),
            ("p", Arc::new(Int32Array::from(ps))),
            ("k", Arc::new(Int32Array::from(ks))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let place = Place::new();
    let schema = TableSchema::builder()
        .column("p", "INT".parse().unwrap())
        .column("k", "INT".parse().unwrap())
        .column("v", "STRING".parse().unwrap())
        .primary_key(["p", "k"])
        .partition_keys(["p"])
        .option("bucket", "-2")
        .option("write-buffer-size", "2 mb");
    let table = place.create(schema).await;
    let files = |p: i32| {
        let folder = Path::new(table.location()).join(format!("p={p}/bucket-postpone"));
        std::fs::read_dir(folder).map_or(0, Iterator::count)
    };
    let builder = table.write_builder();
    let mut writer = builder.new_write().unwrap();
    let mut flushed = Vec::new();
    for round in 0..ROUNDS {
        writer.write(&rows_of_a_round(round)).await.unwrap();
        let state = writer.watch().state();
        assert_eq!(state.buffer_bytes, 2 << 20);
        assert!(
            0 < state.used_buffer_bytes && state.used_buffer_bytes <= state.buffer_bytes,
            "{state:?}"
        );
        if flushed.is_empty() {
            flushed = (0..PARTITIONS).filter(|p| files(*p) > 0).collect();
        }
    }
    assert!(flushed.contains(&0) && flushed.len() < 24, "flushed first: {flushed:?}");
    let messages = writer.prepare_commit(true).await.unwrap();
    assert_eq!(writer.watch().state().used_buffer_bytes, 0);
    assert_eq!(messages.len(), PARTITIONS as usize);
    assert!(files(0) > 1);
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();

    // What no commit has got goes with the writer.
    let committed = files(0);
    for round in 0..ROUNDS {
        writer.write(&rows_of_a_round(round)).await.unwrap();
    }
    assert!(files(0) > committed);
    writer.abort().await;
    assert_eq!(files(0), committed);

    table.compact_builder().full(true).run().await.unwrap();
    let found = rows(&table).await;
    assert_eq!(found.len(), PARTITIONS as usize + 4);
    let newest = format!(" {}x", ROUNDS - 1);
    assert!(found.iter().all(|row| row.contains(&newest)));
}

/// Two jobs give the same rows buckets: the second finds them gone.
#[tokio::test]
async fn rows_get_their_bucket_once() {
    let place = Place::on_threads();
    let table = place
        .create(
            TableSchema::builder()
                .column("k", "INT".parse().unwrap())
                .column("v", "INT".parse().unwrap())
                .primary_key(["k"])
                .option("bucket", "-2")
                .option("merge-engine", "aggregation")
                .option("fields.v.aggregate-function", "sum"),
        )
        .await;
    for _ in 0..3 {
        let column = |values: Vec<i32>| -> ArrayRef { Arc::new(Int32Array::from(values)) };
        let batch = RecordBatch::try_from_iter([("k", column(vec![1, 2])), ("v", column(vec![5, 7]))]).unwrap();
        crate::support::commit_batch(&table, &batch, &arrow_array::Int8Array::from(vec![0, 0])).await;
    }
    let (a, b) = (table.compact_builder().full(true), table.compact_builder().full(true));
    let (a, b) = futures::join!(a.run(), b.run());
    for report in [a, b] {
        if let Err(error) = report {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        }
    }
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, ["1 15", "2 21"]);
}

#[tokio::test]
async fn partitions_are_selected_and_overwritten() {
    let place = Place::new();
    let schema = TableSchema::builder()
        .column("k", "INT".parse().unwrap())
        .column("v", "STRING".parse().unwrap())
        .primary_key(["v", "k"])
        .partition_keys(["v"])
        .option("bucket", "-2");
    let table = place.create(schema).await;
    commit(&table, &[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "b")]).await;
    let some = table.compact_builder().select(Selection::all().partition([("v", "b")]));
    assert_eq!(some.run().await.unwrap().distributed.len(), 1);
    assert_eq!(rows(&table).await, ["2 b", "3 b"]);
    // What waits in a partition is replaced too.
    let builder = table.write_builder().overwrite(Selection::all());
    let mut writer = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 4, "a"), ("+I", 5, "b")]);
    writer.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = writer.prepare_commit(true).await.unwrap();
    writer.abort().await;
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    assert_eq!(rows(&table).await, [] as [&str; 0]);
    table.compact_builder().run().await.unwrap();
    assert_eq!(rows(&table).await, ["4 a", "5 b"]);
}

/// The changes come when rows get their bucket, or leave level 0.
#[tokio::test]
async fn changelogs_are_made_from_then_on() {
    for producer in ["none", "input", "lookup", "full-compaction"] {
        let place = Place::new();
        let table = place.create(schema().option("changelog-producer", producer)).await;
        commit(&table, &[("+I", 2, "b"), ("+I", 1, "a")]).await;
        table.compact_builder().full(true).run().await.unwrap();
        commit(&table, &[("+I", 2, "c")]).await;
        table.compact_builder().full(true).run().await.unwrap();
        let mut stream = table
            .changelog_builder()
            .start(StreamStart::FromSnapshot(1))
            .stream()
            .await
            .unwrap();
        let mut changes = Vec::new();
        while let Some(batch) = stream.next_available().await.unwrap() {
            for (row, kind) in batch.row_kinds().enumerate() {
                let keys: &Int32Array = batch.columns.column(0).as_any().downcast_ref().unwrap();
                changes.push(format!("{}{}", kind.short_string(), keys.value(row)));
            }
        }
        changes.sort();
        let expected: &[&str] = match producer {
            "lookup" | "full-compaction" => &["+I1", "+I2", "+U2", "-U2"],
            _ => &["+I1", "+I2", "+I2"],
        };
        assert_eq!(changes, expected, "{producer}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let place = Place::new();
    let location = place.location("refused");
    let error = Table::create(
        &location,
        kv_schema()
            .option("bucket", "-2")
            .option("postpone.default-bucket-num", "0"),
        &place.context,
    );
    assert_eq!(
        error.await.unwrap_err().to_string(),
        "option 'postpone.default-bucket-num' = '0': expected a number above 0"
    );
    let table = place.create(schema().option("merge-engine", "first-row")).await;
    let mut writer = table.write_builder().new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 1, "a"), ("-D", 1, "a")]);
    let error = writer.write_with_kinds(&batch, &kinds).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "merge engine first-row cannot take a -D row: ignore-delete = true lets it ignore -U and -D rows"
    );
    let partition = paimon::format::row::BinaryRow::empty();
    let error = writer.compact(&partition, 0, true).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a writer of a table with 'bucket' = '-2' compacts nothing: a compaction of the table does"
    );
    writer.abort().await;
}

/// Spark's own compaction of the same two inserts lets some rows of the first win.
#[tokio::test]
async fn rows_that_spark_postponed_get_their_bucket_in_their_order() {
    let place = Place::new();
    let table = spark(&place, "postpone_bucket", "before").await;
    let report = table.compact_builder().full(true).run().await.unwrap();
    assert_eq!((report.distributed[0].files, report.distributed[0].buckets), (4, 1));
    let mut expected: Vec<String> = (0..12)
        .map(|key| format!("{key} {}{key}", if (6..9).contains(&key) { "b" } else { "a" }))
        .collect();
    expected.sort();
    assert_eq!(rows(&table).await, expected);

    // Partitions that Spark compacted keep their buckets.
    let table = spark(&place, "postpone_bucket", "after").await;
    let report = table.compact_builder().run().await.unwrap();
    let buckets: Vec<i32> = report.distributed.iter().map(|part| part.buckets).collect();
    assert_eq!(buckets, [2, 2, 2]);
    let found = rows(&table).await;
    for row in ["0 0 c0", "0 3 c3", "1 1 c1", "2 2 c2", "0 2 a2"] {
        assert!(found.contains(&row.to_owned()), "{row}: {found:?}");
    }
    assert_eq!(found.len(), 14);
}
