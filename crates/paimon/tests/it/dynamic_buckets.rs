//! `bucket = -1`: the same key in the same bucket, new buckets as keys come, one writer at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int32Array, RecordBatch, StringArray};
use paimon::format::meta::CommitMessage;
use paimon::{ErrorKind, SchemaBuilder, Selection, Table, TableWrite, WriteBuilder};

use crate::support::{Place, commit, commit_batch, kv, kv_schema, live_buckets, rows, spark};

/// Buckets of at most three keys.
fn schema() -> SchemaBuilder {
    kv_schema()
        .option("bucket", "-1")
        .option("dynamic-bucket.target-row-num", "3")
}

/// The keys of a write, each with a value.
fn some(keys: impl IntoIterator<Item = i32>, value: &str) -> Vec<(&'static str, i32, String)> {
    keys.into_iter()
        .map(|key| ("+I", key, format!("{value}{key}")))
        .collect()
}

async fn write(write: &mut TableWrite, rows: &[(&str, i32, String)]) -> Vec<CommitMessage> {
    let rows: Vec<_> = rows
        .iter()
        .map(|(kind, key, value)| (*kind, *key, value.as_str()))
        .collect();
    let (batch, kinds) = kv(&rows);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    write.prepare_commit(true).await.unwrap()
}

async fn put(table: &Table, keys: impl IntoIterator<Item = i32>, value: &str) {
    let rows = some(keys, value);
    let rows: Vec<_> = rows
        .iter()
        .map(|(kind, key, value)| (*kind, *key, value.as_str()))
        .collect();
    commit(table, &rows).await;
}

/// How many rows the files of each bucket have, and how many hashes its index.
async fn buckets(table: &Table) -> BTreeMap<i32, (i64, usize)> {
    let mut buckets = BTreeMap::new();
    for bucket in live_buckets(table).await {
        assert_eq!(bucket.total_buckets, -1);
        let index = table.hash_index(&bucket.partition, bucket.bucket).unwrap();
        let hashes = match &bucket.hash_index {
            Some(file) => index.read(file).await.unwrap().len(),
            None => 0,
        };
        let rows = bucket.files.iter().map(|file| file.row_count).sum();
        buckets.insert(bucket.bucket, (rows, hashes));
    }
    buckets
}

#[tokio::test]
async fn keys_stay_in_their_bucket_over_restarts_and_compactions() {
    let place = Place::new();
    let table = place.create(schema()).await;
    put(&table, 0..7, "a").await;
    assert_eq!(
        buckets(&table).await,
        BTreeMap::from([(0, (3, 3)), (1, (3, 3)), (2, (1, 1))])
    );
    // Another writer: it knows the keys that are there.
    put(&table, 4..9, "b").await;
    assert_eq!(
        buckets(&table).await,
        BTreeMap::from([(0, (3, 3)), (1, (5, 3)), (2, (4, 3))])
    );
    let expected: Vec<String> = (0..4)
        .map(|key| format!("{key} a{key}"))
        .chain((4..9).map(|key| format!("{key} b{key}")))
        .collect();
    assert_eq!(rows(&table).await, expected);

    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(
        buckets(&table).await,
        BTreeMap::from([(0, (3, 3)), (1, (3, 3)), (2, (3, 3))])
    );
    assert_eq!(rows(&table).await, expected);
    put(&table, [0, 9], "c").await;
    assert_eq!(buckets(&table).await.get(&3), Some(&(1, 1)));
    assert_eq!(rows(&table).await.len(), 10);
    assert!(table.snapshots(1).await.unwrap()[0].index_manifest.is_some());
}

#[tokio::test]
async fn one_writer_goes_on_over_many_commits() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let builder = table.write_builder();
    let (mut writer, committer) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    for round in 0..5 {
        let messages = write(&mut writer, &some(round * 2..round * 2 + 4, "v")).await;
        committer.commit(i64::from(round), messages).await.unwrap();
        writer.close_idle_buckets().await.unwrap();
    }
    writer.abort().await;
    assert_eq!(rows(&table).await.len(), 12);
    let hashes: usize = buckets(&table).await.values().map(|bucket| bucket.1).sum();
    assert_eq!(hashes, 12);
}

/// Of two writers that bring new keys, the second is refused: it would put keys into other buckets than the first.
#[tokio::test]
async fn two_writers_of_new_keys_conflict() {
    let place = Place::new();
    let table = place.create(schema()).await;
    for first in [0, 10] {
        let builders = [table.write_builder(), table.write_builder()];
        let mut prepared: Vec<(&WriteBuilder, Vec<CommitMessage>)> = Vec::new();
        for (builder, number) in builders.iter().zip(0..) {
            let mut writer = builder.new_write().unwrap();
            let from = first + number * 2;
            prepared.push((builder, write(&mut writer, &some(from..from + 4, "v")).await));
            writer.abort().await;
        }
        for (position, (builder, messages)) in prepared.into_iter().enumerate() {
            let commit = builder.new_commit().unwrap();
            let committed = commit.commit(1, messages.clone()).await;
            if position == 0 {
                committed.unwrap();
            } else {
                let error = committed.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(
                    error.to_string().contains("another job has written new keys"),
                    "{error}"
                );
                commit.abort(&messages).await.unwrap();
            }
        }
    }
    assert_eq!(rows(&table).await.len(), 8);
}

/// Known keys change no index: any number of writers may bring them.
#[tokio::test]
async fn two_writers_of_known_keys_do_not_conflict() {
    let place = Place::new();
    let table = place.create(schema().option("write-only", "true")).await;
    put(&table, 0..6, "a").await;
    let builders = [table.write_builder(), table.write_builder()];
    let mut prepared = Vec::new();
    for (builder, value) in builders.iter().zip(["b", "c"]) {
        let mut writer = builder.new_write().unwrap();
        prepared.push((builder, write(&mut writer, &some(0..6, value)).await));
        writer.abort().await;
    }
    for (builder, messages) in prepared {
        builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    }
    assert_eq!(
        rows(&table).await,
        (0..6).map(|key| format!("{key} c{key}")).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn an_overwrite_begins_with_new_buckets() {
    let place = Place::new();
    let table = place
        .create(schema().option("dynamic-partition-overwrite", "false"))
        .await;
    put(&table, 0..7, "a").await;
    let builder = table.write_builder().overwrite(Selection::all());
    let mut writer = builder.new_write().unwrap();
    let messages = write(&mut writer, &some(5..9, "b")).await;
    writer.abort().await;
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    assert_eq!(buckets(&table).await, BTreeMap::from([(0, (3, 3)), (1, (1, 1))]));
    put(&table, [0, 5], "c").await;
    assert_eq!(rows(&table).await, ["0 c0", "5 c5", "6 b6", "7 b7", "8 b8"]);
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let place = Place::new();
    let refused = async |key: &str, value: &str| {
        let schema = schema().option(key, value);
        let error = Table::create(&place.location("refused"), schema, &place.context)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    };
    assert_eq!(
        refused("bucket-key", "k").await,
        "option 'bucket-key': dynamic buckets ('bucket' = '-1') go by the primary key; give a number of buckets, or no 'bucket-key'"
    );
    assert_eq!(
        refused("dynamic-bucket.max-buckets", "40000").await,
        "option 'dynamic-bucket.max-buckets' = '40000': expected a number from 1 to 32767"
    );
    let table = place.create(schema()).await;
    put(&table, 0..2, "a").await;
    let mut writer = table.write_builder().new_write().unwrap();
    let partition = paimon::format::row::BinaryRow::empty();
    let error = writer.compact(&partition, -1, true).await.unwrap_err();
    assert_eq!(error.to_string(), "bucket -1: buckets are numbered from 0");
    writer.abort().await;

    // An index that is not what the manifest says.
    let name = live_buckets(&table).await[0]
        .hash_index
        .as_ref()
        .unwrap()
        .file_name
        .clone();
    std::fs::write(place.dir.path().join("t/index").join(&name), [0, 0, 0]).unwrap();
    let mut writer = table.write_builder().new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 9, "z")]);
    let error = writer.write_with_kinds(&batch, &kinds).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("index/{name}: corrupt: 3 bytes of key hashes, expected 2 hashes of 4 bytes each")
    );
    writer.abort().await;
}

#[tokio::test]
async fn keys_that_spark_wrote_are_known() {
    let place = Place::new();
    let table = spark(&place, "dynamic_bucket", "t").await;
    let before = buckets(&table).await;
    let batch = |from: i32| {
        let keys: Vec<i32> = (from..from + 45).collect();
        let values: Vec<String> = keys.iter().map(|key| format!("ours{key}")).collect();
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(Int32Array::from(keys))),
            ("v", Arc::new(StringArray::from(values))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let kinds = Int8Array::from(vec![0; 45]);
    commit_batch(&table, &batch(0), &kinds).await;
    // 0 to 39 and 1000000 have been there, 29 and 39 as deleted keys.
    let hashes = |buckets: &BTreeMap<i32, (i64, usize)>| buckets.values().map(|bucket| bucket.1).sum::<usize>();
    assert_eq!((hashes(&before), hashes(&buckets(&table).await)), (41, 46));
    let found = rows(&table).await;
    assert_eq!(found.len(), 46);
    assert_eq!(found.iter().filter(|row| row.contains("ours")).count(), 45);
}
