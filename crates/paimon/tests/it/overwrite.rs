//! Rows in place of others: overwritten and dropped partitions, truncated tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use paimon::format::meta::CommitMessage;
use paimon::format::options::Options;
use paimon::manifest::snapshot::CommitKind;
use paimon::{ErrorKind, SchemaBuilder, SchemaChange, Selection, Table, TableSchema, TimeTravel, WriteBuilder};

use crate::support::{Place, commit, kv, kv_schema, rows, rows_of, strays};

pub(crate) fn schema() -> SchemaBuilder {
    TableSchema::builder()
        .column("p", "STRING".parse().unwrap())
        .column("q", "INT".parse().unwrap())
        .column("k", "INT".parse().unwrap())
        .primary_key(["p", "q", "k"])
        .partition_keys(["p", "q"])
        .option("bucket", "1")
}

pub(crate) fn batch(rows: &[(&str, i32, i32)]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        (
            "p",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        ),
        (
            "q",
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1))),
        ),
        (
            "k",
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.2))),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

pub(crate) async fn messages(builder: &WriteBuilder, rows: &[(&str, i32, i32)]) -> Vec<CommitMessage> {
    let mut write = builder.new_write().unwrap();
    write.write(&batch(rows)).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    write.abort().await;
    messages
}

pub(crate) async fn write(builder: &WriteBuilder, rows: &[(&str, i32, i32)]) -> paimon::Result<Vec<i64>> {
    let messages = messages(builder, rows).await;
    builder.new_commit()?.commit(1, messages).await
}

/// Partitions a/1, a/2 and b/1 with a row each.
pub(crate) async fn three_partitions(place: &Place, options: &[(&str, &str)]) -> Table {
    let schema = options
        .iter()
        .fold(schema(), |schema, (key, value)| schema.option(*key, *value));
    let table = place.create(schema).await;
    write(&table.write_builder(), &[("a", 1, 10), ("a", 2, 20), ("b", 1, 30)])
        .await
        .unwrap();
    table
}

pub(crate) fn part(p: &str) -> Selection {
    Selection::all().partition([("p", p)])
}

/// Levels of all files of the latest snapshot.
async fn levels(table: &Table) -> Vec<i32> {
    let buckets = table.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
    let files = buckets.iter().flat_map(|bucket| bucket.levels().all_files());
    files.map(|file| file.level).collect()
}

#[tokio::test]
async fn the_partitions_that_are_written_are_replaced() {
    let place = Place::new();
    let table = three_partitions(&place, &[]).await;
    let overwrite = table.write_builder().overwrite(Selection::all());
    assert_eq!(write(&overwrite, &[("a", 1, 11), ("c", 1, 40)]).await.unwrap(), [2]);
    assert_eq!(rows(&table).await, ["a 1 11", "a 2 20", "b 1 30", "c 1 40"]);
    let snapshot = table.snapshot_store().get(2).await.unwrap();
    assert_eq!(
        (
            snapshot.commit_kind,
            snapshot.total_record_count,
            snapshot.delta_record_count
        ),
        (CommitKind::Overwrite, 4, 1)
    );
    // Without rows nothing is replaced.
    assert_eq!(
        overwrite.new_commit().unwrap().commit(2, Vec::new()).await.unwrap(),
        [] as [i64; 0]
    );
    // The snapshot before is as it was.
    let before = table.read_builder().time_travel(TimeTravel::SnapshotId(1));
    assert_eq!(rows_of(before).await, ["a 1 10", "a 2 20", "b 1 30"]);
    // The next writer goes on behind the new files.
    write(&table.write_builder(), &[("a", 1, 11), ("a", 1, 12)])
        .await
        .unwrap();
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, ["a 1 11", "a 1 12", "a 2 20", "b 1 30", "c 1 40"]);
}

#[tokio::test]
async fn the_partitions_that_are_named_are_replaced() {
    let place = Place::new();
    let table = three_partitions(&place, &[("dynamic-partition-overwrite", "false")]).await;
    let overwrite = table.write_builder().overwrite(part("a"));
    let error = write(&overwrite, &[("a", 1, 11), ("b", 1, 31)]).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (
            ErrorKind::Invalid,
            "partition p=b/q=1 was written, but it is not one of those to be overwritten"
        )
    );
    assert_eq!(rows(&table).await, ["a 1 10", "a 2 20", "b 1 30"]);
    write(&overwrite, &[("a", 3, 13)]).await.unwrap();
    assert_eq!(rows(&table).await, ["a 3 13", "b 1 30"]);
    // Without rows it takes away.
    overwrite.new_commit().unwrap().commit(2, Vec::new()).await.unwrap();
    assert_eq!(rows(&table).await, ["b 1 30"]);
    write(&table.write_builder().overwrite(Selection::all()), &[("c", 1, 1)])
        .await
        .unwrap();
    assert_eq!(rows(&table).await, ["c 1 1"]);
}

#[tokio::test]
async fn files_that_do_not_overlap_go_to_the_top() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("write-only", "true").option("num-levels", "4"))
        .await;
    commit(&table, &[("+I", 1, "old"), ("+I", 9, "old")]).await;
    let overwrite = table.write_builder().overwrite(Selection::all());
    for (second, expected) in [(3, vec![3, 3]), (2, vec![0, 0])] {
        let mut write = overwrite.new_write().unwrap();
        let mut messages = Vec::new();
        for keys in [[1, 2], [second, 4]] {
            write
                .write(&kv(&[("+I", keys[0], "new"), ("+I", keys[1], "new")]).0)
                .await
                .unwrap();
            messages.extend(write.prepare_commit(true).await.unwrap());
        }
        write.abort().await;
        overwrite.new_commit().unwrap().commit(1, messages).await.unwrap();
        assert_eq!(levels(&table).await, expected, "second file from key {second}");
        assert!(rows(&table).await.iter().all(|row| row.ends_with("new")));
    }
    let kept = table
        .with_options(&[("overwrite-upgrade", "false")].into_iter().collect())
        .unwrap();
    let overwrite = kept.write_builder().overwrite(Selection::all());
    let mut write = overwrite.new_write().unwrap();
    write.write(&kv(&[("+I", 1, "kept")]).0).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    overwrite.new_commit().unwrap().commit(1, messages).await.unwrap();
    assert_eq!(
        (levels(&table).await, rows(&table).await),
        (vec![0], vec!["1 kept".to_owned()])
    );
}

#[tokio::test]
async fn what_comes_meanwhile_is_replaced_too() {
    let place = Place::new();
    let table = three_partitions(&place, &[]).await;
    let overwrite = table.write_builder().overwrite(Selection::all());
    let prepared = messages(&overwrite, &[("a", 1, 11)]).await;
    write(&table.write_builder(), &[("a", 1, 12), ("a", 2, 22)])
        .await
        .unwrap();
    table.compact_builder().full(true).run().await.unwrap();
    overwrite.new_commit().unwrap().commit(1, prepared).await.unwrap();
    assert_eq!(rows(&table).await, ["a 1 11", "a 2 20", "a 2 22", "b 1 30"]);
}

#[tokio::test]
async fn an_overwrite_that_is_recovered_replaces_too() {
    let place = Place::new();
    let table = three_partitions(&place, &[]).await;
    let overwrite = table.write_builder().overwrite(Selection::all()).commit_user("u");
    let prepared = messages(&overwrite, &[("a", 1, 11)]).await;
    for committed in [1, 0] {
        let commit = overwrite.new_commit().unwrap();
        let recovered = commit.filter_and_commit(vec![(1, prepared.clone())]).await.unwrap();
        assert_eq!(recovered, committed);
        assert_eq!(rows(&table).await, ["a 1 11", "a 2 20", "b 1 30"]);
    }
    let snapshot = table.snapshot_store().latest().await.unwrap().unwrap();
    assert_eq!((snapshot.id, snapshot.commit_kind), (2, CommitKind::Overwrite));
}

/// Tables whose reads do not see level 0.
pub(crate) const HIDDEN: [(&str, &str); 2] = [("deletion-vectors.enabled", "true"), ("merge-engine", "first-row")];

/// In between, all rows would be gone.
#[tokio::test]
async fn where_level_0_is_not_seen_the_compaction_comes_with_the_overwrite() {
    for hidden in HIDDEN {
        let place = Place::new();
        let table = three_partitions(&place, &[hidden]).await;
        let compacted = table.snapshot_store().latest_id().await.unwrap().unwrap();
        let overwrite = table.write_builder().overwrite(Selection::all());
        let mut writer = overwrite.new_write().unwrap();
        let mut messages = Vec::new();
        for rows in [[("a", 1, 11), ("a", 1, 15)], [("a", 1, 12), ("a", 1, 16)]] {
            writer.write(&batch(&rows)).await.unwrap();
            messages.extend(writer.prepare_commit(true).await.unwrap());
        }
        writer.abort().await;
        let ids = overwrite.new_commit().unwrap().commit(1, messages).await.unwrap();
        assert_eq!(ids, [compacted + 1], "{hidden:?}");
        assert_eq!(
            rows(&table).await,
            ["a 1 11", "a 1 12", "a 1 15", "a 1 16", "a 2 20", "b 1 30"]
        );
        assert_eq!(strays(&table).await, [""; 0], "{hidden:?}");
    }
}

#[tokio::test]
async fn tables_and_partitions_are_emptied() {
    let place = Place::new();
    let table = three_partitions(&place, &[]).await;
    let commit = table.write_builder().new_commit().unwrap();
    assert_eq!(commit.truncate(&part("none")).await.unwrap(), 2);
    assert_eq!(rows(&table).await.len(), 3);
    commit
        .truncate(&Selection::all().partition([("p", "a"), ("q", "2")]))
        .await
        .unwrap();
    assert_eq!(rows(&table).await, ["a 1 10", "b 1 30"]);
    commit.truncate(&part("a")).await.unwrap();
    assert_eq!(rows(&table).await, ["b 1 30"]);
    let error = commit
        .truncate(&Selection::all().partition([("k", "1")]))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "k is no partition column; the table has p, q");
    let error = commit.truncate(&part("a").bucket(0)).await.unwrap_err();
    assert_eq!(error.to_string(), "whole partitions are replaced, not single buckets");
    assert_eq!(commit.truncate(&Selection::all()).await.unwrap(), 5);
    assert_eq!((rows(&table).await.len(), levels(&table).await.len()), (0, 0));
    let snapshot = table.snapshot_store().get(5).await.unwrap();
    assert_eq!(
        (snapshot.commit_kind, snapshot.total_record_count),
        (CommitKind::Overwrite, 0)
    );
    write(&table.write_builder(), &[("a", 1, 1)]).await.unwrap();
    assert_eq!(rows(&table).await, ["a 1 1"]);
}

#[tokio::test]
async fn options_that_files_depend_on_do_not_change() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let set = |key: &str, value: &str| {
        [SchemaChange::SetOption {
            key: key.to_owned(),
            value: value.to_owned(),
        }]
    };
    for (key, value) in [("merge-engine", "first-row"), ("bucket", "-1")] {
        let error = table.alter(&set(key, value)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{key}");
    }
    let dynamic: Options = [("write-only", "true")].into_iter().collect();
    let table = table.with_options(&dynamic).unwrap();
    let table = table.alter(&set("snapshot.time-retained", "1 h")).await.unwrap();
    assert_eq!(
        table.options().get("write-only"),
        Some("true"),
        "the options of this use stay"
    );
    let stored = table.schemas().latest().await.unwrap().unwrap();
    assert_eq!(
        (stored.id, stored.options.get("write-only")),
        (1, None),
        "and do not get into the schema"
    );
    assert_eq!(stored.options.get("snapshot.time-retained"), Some("1 h"));
}
