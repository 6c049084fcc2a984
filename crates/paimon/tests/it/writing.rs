//! What a write makes of rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use paimon::TableSchema;
use paimon::format::types::DataField;

use crate::support::{Place, commit, commit_batch, kinds, kv, kv_schema, rows, shape};

#[tokio::test]
async fn the_newest_version_of_a_key_wins() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    assert_eq!(
        commit(&table, &[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 1, "c")]).await,
        [1]
    );
    assert_eq!(rows(&table).await, ["1 c", "2 b"]);
    commit(
        &table,
        &[("-U", 2, "b"), ("+U", 2, "d"), ("-D", 1, "c"), ("+I", 3, "e")],
    )
    .await;
    assert_eq!(rows(&table).await, ["2 d", "3 e"]);
    assert_eq!(shape(&table).await, "L0:3 L0:2");
}

#[tokio::test]
async fn a_writer_goes_on_after_commits_and_compacts_by_itself() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.write_builder();
    let (mut write, committer) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    for round in 0..12 {
        let (batch, kinds) = kv(&[("+I", round % 5, "x"), ("+I", 100 + round, "y")]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        let messages = write.prepare_commit(true).await.unwrap();
        committer.commit(i64::from(round), messages).await.unwrap();
    }
    write.abort().await;
    assert_eq!(rows(&table).await.len(), 17);
    // 12 level-0 files of two rows would be 12 runs.
    assert!(shape(&table).await.split(' ').count() <= 5, "{}", shape(&table).await);
    let kinds: Vec<String> = table
        .snapshots(100)
        .await
        .unwrap()
        .iter()
        .map(|snapshot| snapshot.commit_kind.to_string())
        .collect();
    assert!(kinds.contains(&"COMPACT".to_owned()), "{kinds:?}");
}

#[tokio::test]
async fn batches_without_kinds_are_inserts_or_have_a_kind_column() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let (batch, _) = kv(&[("+I", 1, "a"), ("+I", 2, "b")]);
    write.write(&batch).await.unwrap();
    let columns: [(&str, ArrayRef); 2] = [
        ("_VALUE_KIND", Arc::new(Int8Array::from(vec![3, 0]))),
        ("k", Arc::new(Int64Array::from(vec![1, 3]))),
    ];
    // The key is a wider integer than the column, and the value is not given.
    write
        .write(&RecordBatch::try_from_iter(columns).unwrap())
        .await
        .unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    assert_eq!(rows(&table).await, ["2 b", "3 null"]);
}

#[tokio::test]
async fn a_row_kind_field_goes_before_the_kinds() {
    let place = Place::new();
    let schema = kv_schema()
        .column("op", "STRING".parse().unwrap())
        .option("rowkind.field", "op");
    let table = place.create(schema).await;
    let columns: [(&str, ArrayRef); 3] = [
        ("k", Arc::new(Int32Array::from(vec![1, 2, 1]))),
        ("v", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        ("op", Arc::new(StringArray::from(vec!["+I", "+I", "-D"]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    commit_batch(&table, &batch, &kinds(["+I"; 3].into_iter())).await;
    assert_eq!(rows(&table).await, ["2 b +I"]);
}

#[tokio::test]
async fn deletes_and_update_befores_can_be_ignored() {
    for (option, expected) in [
        ("ignore-delete", ["1 a", "2 c"].as_slice()),
        ("ignore-update-before", &["2 c"]),
    ] {
        let place = Place::new();
        let table = place.create(kv_schema().option(option, "true")).await;
        commit(&table, &[("+I", 1, "a"), ("+I", 2, "b")]).await;
        commit(&table, &[("-D", 1, "a"), ("+U", 2, "c"), ("-U", 2, "b")]).await;
        assert_eq!(rows(&table).await, expected, "{option}");
    }
}

#[tokio::test]
async fn defaults_fill_nulls() {
    let place = Place::new();
    let field = DataField {
        default_value: Some("none".to_owned()),
        ..DataField::new(0, "note", "STRING".parse().unwrap())
    };
    let table = place.create(kv_schema().field(field)).await;
    commit(&table, &[("+I", 1, "a")]).await;
    assert_eq!(rows(&table).await, ["1 a none"]);
}

#[tokio::test]
async fn the_largest_buffer_is_flushed_when_memory_is_short() {
    let place = Place::new();
    let schema = kv_schema()
        .option("bucket", "4")
        .option("write-only", "true")
        .option("write-buffer-size", "4 mb")
        .option("write-buffer-spillable", "false");
    let table = place.create(schema).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let text = "x".repeat(1000);
    for batch in 0..10 {
        let rows: Vec<_> = (0..1000).map(|row| ("+I", batch * 1000 + row, text.as_str())).collect();
        let (batch, kinds) = kv(&rows);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
    }
    let messages = write.prepare_commit(true).await.unwrap();
    let files = messages
        .iter()
        .map(|message| message.increment.data.new_files.len())
        .sum::<usize>();
    assert!(files > 4, "{files} files: nothing was flushed before the commit");
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    assert_eq!(rows(&table).await.len(), 10_000);
}

#[tokio::test]
async fn an_aborted_writer_leaves_no_files() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 1, "a")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    write.abort().await;
    builder.new_commit().unwrap().abort(&messages).await.unwrap();
    let bucket = std::path::Path::new(table.location()).join("bucket-0");
    let left = std::fs::read_dir(bucket).map_or(0, |files| files.count());
    assert_eq!(left, 0);
    assert_eq!(rows(&table).await, [""; 0]);
}

#[tokio::test]
async fn sequences_go_on_where_earlier_writers_stopped() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    commit(&table, &[("+I", 1, "a"), ("+I", 2, "a"), ("+I", 3, "a")]).await;
    commit(&table, &[("+I", 1, "b")]).await;
    let buckets = table
        .buckets(&paimon::TimeTravel::Latest, &paimon::Selection::all())
        .await
        .unwrap();
    let files: Vec<_> = buckets[0].runs().iter().flat_map(|run| run.run.files()).collect();
    let sequences: Vec<_> = files
        .iter()
        .map(|file| (file.min_sequence_number, file.max_sequence_number))
        .collect();
    assert_eq!(sequences, [(3, 3), (0, 2)]);
    assert_eq!(rows(&table).await, ["1 b", "2 a", "3 a"]);
}

#[tokio::test]
async fn keys_keep_the_order_of_the_primary_key_not_of_the_columns() {
    let place = Place::new();
    let schema = TableSchema::builder()
        .column("customer", "INT".parse().unwrap())
        .column("ord", "INT".parse().unwrap())
        .column("amt", "INT".parse().unwrap())
        .primary_key(["ord", "customer"])
        .option("bucket", "1");
    let table = place.create(schema).await;
    let batch = |rows: &[(i32, i32, i32)]| {
        let column =
            |of: fn(&(i32, i32, i32)) -> i32| Arc::new(Int32Array::from_iter_values(rows.iter().map(of))) as ArrayRef;
        let columns = [
            ("customer", column(|row| row.0)),
            ("ord", column(|row| row.1)),
            ("amt", column(|row| row.2)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    commit_batch(
        &table,
        &batch(&[(1, 9, 10), (2, 8, 20), (3, 7, 30), (4, 6, 40)]),
        &kinds(["+I"; 4].into_iter()),
    )
    .await;
    commit_batch(&table, &batch(&[(1, 9, 11)]), &kinds(["+I"; 1].into_iter())).await;
    let expected = ["1 9 11", "2 8 20", "3 7 30", "4 6 40"];
    assert_eq!(rows(&table).await, expected);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, expected);
    let buckets = table
        .buckets(&paimon::TimeTravel::Latest, &paimon::Selection::all())
        .await
        .unwrap();
    let file = &buckets[0].runs()[0].run.files()[0];
    let bounds = [&file.min_key, &file.max_key].map(|key| buckets[0].key_text(key).unwrap());
    assert_eq!(bounds, ["(6, 4)", "(9, 1)"]);
}

#[tokio::test]
async fn idle_buckets_are_closed_and_opened_again() {
    let place = Place::new();
    let table = place.create(kv_schema().option("bucket", "8")).await;
    let builder = table.write_builder();
    let (mut write, committer) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    let all: Vec<_> = (0..40).map(|key| ("+I", key, "a")).collect();
    for (identifier, rows) in [
        (1, all.as_slice()),
        (2, &[("+U", 7, "b")]),
        (3, &[("+U", 8, "c"), ("+U", 7, "d")]),
    ] {
        let (batch, kinds) = kv(rows);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        let messages = write.prepare_commit(true).await.unwrap();
        committer.commit(identifier, messages).await.unwrap();
        write.close_idle_buckets().await.unwrap();
        match identifier {
            1 => assert_eq!(write.open_buckets().len(), 8),
            2 => assert_eq!(write.open_buckets().len(), 1),
            _ => {}
        }
    }
    write.abort().await;
    let rows = rows(&table).await;
    assert_eq!(rows.len(), 40);
    assert!(
        rows.contains(&"7 d".to_owned()) && rows.contains(&"8 c".to_owned()),
        "{rows:?}"
    );
}
