//! Keys that move from partition to partition: the primary key has not all partition columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use paimon::{ErrorKind, SchemaBuilder, Selection, Table, TableSchema, TableWrite};

use crate::support::{Place, commit_batch, kinds, live_buckets, rows, spark};

fn schema(options: &[(&str, &str)]) -> SchemaBuilder {
    let schema = TableSchema::builder()
        .column("k", "INT".parse().unwrap())
        .column("p", "STRING".parse().unwrap())
        .column("x", "INT".parse().unwrap())
        .column("y", "INT".parse().unwrap())
        .primary_key(["k"])
        .partition_keys(["p"]);
    options
        .iter()
        .fold(schema, |schema, (key, value)| schema.option(*key, *value))
}

type Row = (&'static str, i32, Option<&'static str>, Option<i32>, Option<i32>);

async fn write(write: &mut TableWrite, rows: &[Row]) {
    let columns: [(&str, ArrayRef); 4] = [
        (
            "k",
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1))),
        ),
        ("p", Arc::new(StringArray::from_iter(rows.iter().map(|row| row.2)))),
        ("x", Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.3)))),
        ("y", Arc::new(Int32Array::from_iter(rows.iter().map(|row| row.4)))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let kinds = kinds(rows.iter().map(|row| row.0));
    write.write_with_kinds(&batch, &kinds).await.unwrap();
}

/// A new writer a commit: the index is made from the table every time.
async fn commit(table: &Table, rows: &[Row]) {
    let builder = table.write_builder();
    let mut writer = builder.new_write().unwrap();
    write(&mut writer, rows).await;
    let messages = writer.prepare_commit(true).await.unwrap();
    writer.abort().await;
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
}

const A: Option<&str> = Some("a");
const B: Option<&str> = Some("b");

#[tokio::test]
async fn the_newest_row_takes_its_key_along() {
    let place = Place::new();
    let table = place.create(schema(&[])).await;
    commit(
        &table,
        &[
            ("+I", 1, A, Some(1), None),
            ("+I", 2, A, Some(2), None),
            ("+I", 3, None, Some(3), None),
        ],
    )
    .await;
    commit(&table, &[("+I", 1, B, Some(10), None), ("+I", 3, A, Some(30), None)]).await;
    assert_eq!(rows(&table).await, ["1 b 10 null", "2 a 2 null", "3 a 30 null"]);
    table.compact_builder().full(true).run().await.unwrap();
    // There and back in one batch, by one writer.
    commit(
        &table,
        &[
            ("+I", 1, A, Some(11), None),
            ("+I", 1, None, Some(12), None),
            ("+I", 1, B, Some(13), None),
        ],
    )
    .await;
    assert_eq!(rows(&table).await, ["1 b 13 null", "2 a 2 null", "3 a 30 null"]);
    // A delete ends a key wherever it says that it is; the key may come again anywhere.
    commit(&table, &[("-D", 2, B, Some(2), None), ("-D", 1, B, None, None)]).await;
    assert_eq!(rows(&table).await, ["3 a 30 null"]);
    commit(&table, &[("+I", 1, A, Some(14), None), ("+I", 2, A, Some(20), None)]).await;
    assert_eq!(rows(&table).await, ["1 a 14 null", "2 a 20 null", "3 a 30 null"]);
    // There is no index beside the data.
    let snapshot = table.snapshot_store().latest().await.unwrap().unwrap();
    assert_eq!(snapshot.index_manifest, None);
}

#[tokio::test]
async fn rows_that_are_merged_follow_their_key() {
    for (options, expected) in [
        (
            vec![("merge-engine", "partial-update")],
            ["1 a 1 10", "2 b 20 2", "3 a 3 3"],
        ),
        (
            vec![
                ("merge-engine", "aggregation"),
                ("fields.x.aggregate-function", "sum"),
                ("fields.y.aggregate-function", "sum"),
            ],
            ["1 a 1 10", "2 b 20 2", "3 a 3 3"],
        ),
    ] {
        let place = Place::new();
        let table = place.create(schema(&options)).await;
        commit(&table, &[("+I", 1, A, Some(1), None), ("+I", 2, B, None, Some(2))]).await;
        commit(
            &table,
            &[
                ("+I", 1, B, None, Some(10)),
                ("+I", 2, A, Some(20), None),
                ("+I", 3, A, Some(3), Some(3)),
            ],
        )
        .await;
        assert_eq!(rows(&table).await, expected);
    }
}

#[tokio::test]
async fn the_first_row_stays_where_it_is() {
    let place = Place::new();
    let table = place.create(schema(&[("merge-engine", "first-row")])).await;
    commit(&table, &[("+I", 1, A, Some(1), None), ("+I", 2, A, Some(2), None)]).await;
    commit(
        &table,
        &[
            ("+I", 1, B, Some(10), None),
            ("+I", 3, B, Some(3), None),
            ("+I", 3, A, Some(30), None),
        ],
    )
    .await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, ["1 a 1 null", "2 a 2 null", "3 b 3 null"]);
}

/// Level 0 of tables with deletion vectors is not read, but its keys count.
#[tokio::test]
async fn keys_that_reads_do_not_see_yet_are_known() {
    for engine in [("merge-engine", "deduplicate"), ("merge-engine", "first-row")] {
        let place = Place::new();
        let vectors = if engine.1 == "first-row" { "false" } else { "true" };
        let table = place
            .create(schema(&[
                engine,
                ("deletion-vectors.enabled", vectors),
                ("write-only", "true"),
            ]))
            .await;
        commit(&table, &[("+I", 1, A, Some(1), None)]).await;
        commit(&table, &[("+I", 1, B, Some(2), None)]).await;
        assert_eq!(rows(&table).await, [] as [&str; 0]);
        table.compact_builder().full(true).run().await.unwrap();
        let expected = if engine.1 == "first-row" {
            "1 a 1 null"
        } else {
            "1 b 2 null"
        };
        assert_eq!(rows(&table).await, [expected]);
        // Moved twice, the second time while a delete waits on level 0.
        commit(&table, &[("+I", 1, A, Some(3), None)]).await;
        commit(&table, &[("+I", 1, B, Some(4), None)]).await;
        table.compact_builder().full(true).run().await.unwrap();
        let expected = if engine.1 == "first-row" {
            "1 a 1 null"
        } else {
            "1 b 4 null"
        };
        assert_eq!(rows(&table).await, [expected]);
    }
}

#[tokio::test]
async fn buckets_are_filled_partition_by_partition() {
    let place = Place::new();
    let table = place.create(schema(&[("dynamic-bucket.target-row-num", "2")])).await;
    let all: Vec<Row> = (0..5)
        .map(|k| ("+I", k, A, Some(k), None))
        .chain([("+I", 9, B, None, None)])
        .collect();
    commit(&table, &all).await;
    // Two leave the first bucket: there is room again.
    commit(
        &table,
        &[
            ("+I", 0, B, None, None),
            ("+I", 1, None, None, None),
            ("+I", 7, A, None, None),
        ],
    )
    .await;
    let mut files: Vec<(String, i32, i64)> = Vec::new();
    for bucket in live_buckets(&table).await {
        assert_eq!(bucket.total_buckets, -1);
        let partition = String::from_utf8_lossy(bucket.partition.as_bytes())
            .trim_matches(|c: char| !c.is_alphabetic())
            .to_owned();
        files.push((
            partition,
            bucket.bucket,
            bucket.files.iter().map(|file| file.row_count).sum(),
        ));
    }
    files.sort();
    let files: Vec<_> = files
        .iter()
        .map(|(partition, bucket, rows)| (partition.as_str(), *bucket, *rows))
        .collect();
    assert_eq!(files, [("", 0, 1), ("a", 0, 5), ("a", 1, 2), ("a", 2, 1), ("b", 0, 2)]);
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let place = Place::new();
    let table = place.create(schema(&[])).await;
    let error = table
        .write_builder()
        .overwrite(Selection::all())
        .new_write()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let location = place.location("refused");
    let error = Table::create(
        &location,
        schema(&[("cross-partition-upsert.bootstrap-parallelism", "0")]),
        &place.context,
    );
    assert_eq!(
        error.await.unwrap_err().to_string(),
        "option 'cross-partition-upsert.bootstrap-parallelism' = '0': expected a number above 0"
    );
}

#[tokio::test]
async fn keys_that_spark_moved_are_known() {
    let place = Place::new();
    let table = spark(&place, "cross_partition", "t").await;
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int32Array::from(vec![1, 4, 5]))),
        (
            "dt",
            Arc::new(StringArray::from(vec!["2024-01-03", "2024-01-01", "2024-01-02"])),
        ),
        ("v", Arc::new(StringArray::from(vec!["ours", "ours", "ours"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    commit_batch(&table, &batch, &kinds(["+I", "-D", "+I"].into_iter())).await;
    let expected = [
        "1 2024-01-03 ours",
        "2 2024-01-01 stays",
        "3 2024-01-03 moved",
        "5 2024-01-02 ours",
    ];
    assert_eq!(rows(&table).await, expected);
}
