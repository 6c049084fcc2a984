//! Partitions and buckets.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use paimon::{Selection, Table, TableSchema, TimeTravel};

use crate::support::{Place, commit_batch, kinds, rows, rows_of};

fn schema() -> paimon::SchemaBuilder {
    TableSchema::builder()
        .column("p", "STRING".parse().unwrap())
        .column("k", "INT".parse().unwrap())
        .column("v", "STRING".parse().unwrap())
        .primary_key(["p", "k"])
        .partition_keys(["p"])
        .option("bucket", "2")
}

async fn write(table: &Table, rows: &[(&str, i32, &str)]) {
    let columns: [(&str, ArrayRef); 3] = [
        (
            "p",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0))),
        ),
        (
            "k",
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1))),
        ),
        (
            "v",
            Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.2))),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    commit_batch(table, &batch, &kinds(std::iter::repeat_n("+I", rows.len()))).await;
}

#[tokio::test]
async fn any_text_can_be_a_partition() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let values = [
        "a/b",
        "..",
        "k=v",
        "50%",
        " blank ",
        "žluťoučký 馬",
        "'\"#*?",
        "",
        "a,b",
    ];
    let rows_in: Vec<_> = values.iter().zip(0..).map(|(value, key)| (*value, key, "x")).collect();
    write(&table, &rows_in).await;
    write(&table, &rows_in[..3]).await;

    let mut expected: Vec<String> = values
        .iter()
        .zip(0..)
        .map(|(value, key)| format!("{value} {key} x"))
        .collect();
    expected.sort_unstable();
    assert_eq!(rows(&table).await, expected);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, expected);

    for (value, key) in values.iter().zip(0..) {
        let selection = Selection::all().partition([("p", *value)]);
        let read = table.read_builder().select(selection);
        assert_eq!(rows_of(read).await, [format!("{value} {key} x")]);
    }
    let mut folders: Vec<String> = std::fs::read_dir(table.location())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("p="))
        .collect();
    folders.sort_unstable();
    insta::assert_snapshot!(folders.join("\n"));
}

#[tokio::test]
async fn a_blank_partition_has_the_name_that_the_table_gives_it() {
    let place = Place::new();
    let table = place.create(schema().option("partition.default-name", "nowhere")).await;
    write(&table, &[(" ", 1, "x"), ("a", 2, "y")]).await;
    let folder = std::path::Path::new(table.location()).join("p=nowhere");
    assert!(folder.is_dir());
    assert_eq!(rows(&table).await, ["  1 x", "a 2 y"]);
}

#[tokio::test]
async fn one_partition_or_bucket_is_compacted_alone() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let rows_in: Vec<_> = (0..20)
        .map(|key| (if key % 2 == 0 { "a" } else { "b" }, key, "x"))
        .collect();
    write(&table, &rows_in).await;
    let before = rows(&table).await;

    let selection = Selection::all().partition([("p", "a")]).bucket(1);
    let report = table
        .compact_builder()
        .full(true)
        .select(selection)
        .run()
        .await
        .unwrap();
    let compacted: Vec<&str> = report.buckets.iter().map(|bucket| bucket.bucket.as_str()).collect();
    assert_eq!(compacted, ["p=a/bucket-1"]);
    let levels = table.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
    let levels: Vec<_> = levels
        .iter()
        .map(|bucket| (bucket.name(), bucket.runs()[0].level))
        .collect();
    assert_eq!(
        levels,
        [
            ("p=a/bucket-0", 0),
            ("p=a/bucket-1", 5),
            ("p=b/bucket-0", 0),
            ("p=b/bucket-1", 0)
        ]
    );
    assert_eq!(rows(&table).await, before);

    let wrong = table
        .compact_builder()
        .select(Selection::all().partition([("q", "a")]))
        .run()
        .await;
    assert_eq!(
        wrong.unwrap_err().to_string(),
        "q is no partition column; the table has p"
    );
}

#[tokio::test]
async fn a_bucket_count_that_does_not_fit_the_files_is_refused() {
    let place = Place::new();
    let table = place.create(schema()).await;
    write(&table, &[("a", 1, "x")]).await;
    // What `ALTER TABLE … SET ('bucket' = '4')` does.
    let path = std::path::Path::new(table.location()).join("schema/schema-0");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text
        .replace("\"bucket\" : \"2\"", "\"bucket\" : \"4\"")
        .replace("\"id\" : 0,\n  \"fields\"", "\"id\" : 1,\n  \"fields\"");
    std::fs::write(path.with_file_name("schema-1"), text).unwrap();
    let table = Table::open(table.location(), Default::default(), &place.context)
        .await
        .unwrap();
    assert_eq!(table.options().get("bucket"), Some("4"));

    let columns: [(&str, ArrayRef); 2] = [
        ("p", Arc::new(StringArray::from(vec!["a"]))),
        ("k", Arc::new(Int32Array::from(vec![1]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = table.write_builder().new_write().unwrap();
    let error = writer.write(&batch).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "partition p=a: its files are in 2 buckets, but the option 'bucket' is 4; rescale it before writing"
    );
    // A new partition has the new count; reading and compacting the old one works.
    write(&table, &[("new", 7, "x")]).await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, ["a 1 x", "new 7 x"]);
}
