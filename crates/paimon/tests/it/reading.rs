//! Projection, filter, limit, splits.

use futures::TryStreamExt;
use paimon::format::predicate::Predicate;
use paimon::{DataSplit, Plan, ReadBuilder, Table, split_from_bytes, split_to_bytes};

use crate::support::{Place, commit, kv_schema, rows_of, try_rows_of};

async fn two_versions() -> (Place, Table) {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    commit(&table, &[("+I", 1, "old"), ("+I", 2, "two")]).await;
    commit(&table, &[("+I", 1, "new"), ("-D", 2, "two")]).await;
    (place, table)
}

fn filtered(table: &Table, text: &str) -> ReadBuilder {
    let filter = Predicate::parse(text, &table.schema().fields).unwrap();
    table.read_builder().filter(filter)
}

#[tokio::test]
async fn filters_see_merged_rows() {
    let (_place, table) = two_versions().await;
    assert_eq!(rows_of(filtered(&table, "v = 'old'")).await, [""; 0]);
    assert_eq!(rows_of(filtered(&table, "v = 'two'")).await, [""; 0]);
    assert_eq!(rows_of(filtered(&table, "v = 'new'")).await, ["1 new"]);
    assert_eq!(rows_of(filtered(&table, "k = 2")).await, [""; 0]);
    assert_eq!(rows_of(table.read_builder()).await, ["1 new"]);
    let count = table.read_builder().projection::<&str>(&[]).unwrap();
    assert_eq!(rows_of(count).await, [""]);
}

#[tokio::test]
async fn columns_come_in_the_order_asked_for() {
    let (_place, table) = two_versions().await;
    let read = |names: &[&str]| table.read_builder().projection(names);
    assert_eq!(rows_of(read(&["v", "k"]).unwrap()).await, ["new 1"]);
    assert_eq!(rows_of(read(&["v"]).unwrap()).await, ["new"]);
    // The filter's column need not be among them.
    let filter = Predicate::parse("k >= 1", &table.schema().fields).unwrap();
    assert_eq!(rows_of(read(&["v"]).unwrap().filter(filter)).await, ["new"]);
    assert_eq!(
        read(&["x"]).unwrap_err().to_string(),
        "column x: the table has no such column; it has k, v"
    );
    assert_eq!(
        read(&["k", "k"]).unwrap_err().to_string(),
        "column k is asked for twice"
    );
}

#[tokio::test]
async fn a_limit_counts_merged_rows() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("bucket", "3").option("write-only", "true"))
        .await;
    let texts: Vec<_> = (0..100).map(|key| ("+I", key, "x")).collect();
    commit(&table, &texts).await;
    commit(&table, &(0..50).map(|key| ("-D", key, "x")).collect::<Vec<_>>()).await;
    for limit in [0, 1, 7, 50, 1000] {
        assert_eq!(rows_of(table.read_builder().limit(limit)).await.len(), limit.min(50));
    }
    let read = filtered(&table, "k >= 90").limit(4);
    assert_eq!(rows_of(read).await.len(), 4);
}

#[tokio::test]
async fn files_that_overlap_stay_in_one_split() {
    let place = Place::new();
    let schema = kv_schema()
        .option("write-only", "true")
        .option("source.split.target-size", "1b")
        .option("source.split.open-file-cost", "1b");
    let table = place.create(schema).await;
    for row in [(1, "10"), (1, "20"), (1, "30"), (2, "1")] {
        commit(&table, &[("+I", row.0, row.1)]).await;
    }
    let builder = table.read_builder();
    let plan = builder.new_scan().plan().await.unwrap();
    assert_eq!(
        plan.splits.iter().map(|split| split.files.len()).collect::<Vec<_>>(),
        [3, 1]
    );
    assert_eq!(rows_of(builder).await, ["1 30", "2 1"]);
}

#[tokio::test]
async fn keys_and_values_outside_of_the_filter_are_not_planned() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    commit(&table, &[("+I", 1, "a"), ("+I", 2, "b")]).await;
    commit(&table, &[("+I", 11, "c"), ("+I", 12, "d")]).await;
    let files = async |text| {
        let plan = filtered(&table, text).new_scan().plan().await.unwrap();
        plan.splits.iter().map(|split| split.files.len()).sum::<usize>()
    };
    assert_eq!(files("k = 1").await, 1);
    assert_eq!(files("k > 20").await, 0);
    // Level-0 files may overlap: a value decides about all of them together.
    assert_eq!(files("v = 'a'").await, 2);
    assert_eq!(files("v = 'zzz'").await, 0);
}

#[tokio::test]
async fn splits_go_to_another_process() {
    let (_place, table) = two_versions().await;
    let builder = table.read_builder();
    let plan = builder.new_scan().plan().await.unwrap();
    let sent: Vec<Vec<u8>> = plan.splits.iter().map(|split| split_to_bytes(split).unwrap()).collect();
    let received: Vec<DataSplit> = sent.iter().map(|bytes| split_from_bytes(bytes).unwrap()).collect();
    assert_eq!(received, plan.splits);
    let batches: Vec<_> = builder
        .new_read()
        .stream(received)
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
    for end in 0..sent[0].len() {
        assert!(split_from_bytes(&sent[0][..end]).is_err());
    }
}

#[tokio::test]
async fn a_table_without_snapshots_is_empty() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.read_builder();
    assert_eq!(builder.new_scan().plan().await.unwrap(), Plan::default());
    assert_eq!(try_rows_of(&builder).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn keys_in_many_sections_do_not_mix() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    // Two files a key, no file overlaps those of another key: a section for each.
    for round in ["a", "b"] {
        for key in 0..5 {
            commit(&table, &[("+I", key, &format!("{round}{key}"))]).await;
        }
    }
    let expected = ["0 b0", "1 b1", "2 b2", "3 b3", "4 b4"];
    assert_eq!(rows_of(table.read_builder()).await, expected);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows_of(table.read_builder()).await, expected);
}
