//! Dedicated compaction.

use paimon::Table;

use crate::support::{Place, commit, kv, kv_schema, rows, shape};

async fn write_only(place: &Place, commits: i32) -> Table {
    let table = place.create(kv_schema().option("write-only", "true")).await;
    for round in 0..commits {
        commit(&table, &[("+I", round, "x"), ("+I", 1000, "y")]).await;
    }
    table
}

#[tokio::test]
async fn one_pick_then_a_full_compaction_then_nothing() {
    let place = Place::new();
    let table = write_only(&place, 8).await;
    let before = rows(&table).await;
    assert_eq!(shape(&table).await, "L0:2 L0:2 L0:2 L0:2 L0:2 L0:2 L0:2 L0:2");

    let dry = table.compact_builder().dry_run(true).run().await.unwrap();
    assert_eq!((dry.buckets.len(), dry.snapshot), (1, None));
    assert_eq!(shape(&table).await, "L0:2 L0:2 L0:2 L0:2 L0:2 L0:2 L0:2 L0:2");

    let report = table.compact_builder().run().await.unwrap();
    assert_eq!(report.snapshot, Some(9));
    assert_eq!(report.buckets[0].input, dry.buckets[0].input);
    assert_eq!(rows(&table).await, before);

    commit(&table, &[("-D", 0, "x")]).await;
    let report = table.compact_builder().full(true).run().await.unwrap();
    assert_eq!((report.buckets_looked_at, report.buckets[0].output_level), (1, 5));
    assert_eq!(shape(&table).await, "L5:8");
    assert_eq!(rows(&table).await.len(), 8);

    let latest = table.snapshots(1).await.unwrap()[0].id;
    for full in [true, false] {
        let report = table.compact_builder().full(full).run().await.unwrap();
        assert_eq!((report.buckets.len(), report.snapshot), (0, None));
    }
    assert_eq!(table.snapshots(1).await.unwrap()[0].id, latest);
}

#[tokio::test]
async fn a_deleted_key_does_not_come_back_through_a_partial_compaction() {
    let place = Place::new();
    let schema = kv_schema()
        .option("num-levels", "4")
        .option("num-sorted-run.compaction-trigger", "3");
    let table = place.create(schema).await;
    let pad = |key: i32| format!("{key}-{}", "abcdefghij".repeat(6));
    let texts: Vec<String> = (0..2000).map(pad).collect();
    let all: Vec<_> = texts
        .iter()
        .zip(0..)
        .map(|(text, key)| ("+I", key, text.as_str()))
        .collect();
    commit(&table, &all).await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(shape(&table).await, "L3:2000");

    let builder = table.write_builder();
    let (mut write, committer) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    for k in 0..4 {
        let (batch, kinds) = kv(&[("-D", 10 + k, "n"), ("+I", 5000 + k, "n")]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        committer
            .commit(i64::from(k), write.prepare_commit(true).await.unwrap())
            .await
            .unwrap();
    }
    write.abort().await;
    let ids = |rows: Vec<String>| {
        let mut ids: Vec<i32> = rows
            .iter()
            .map(|row| row.split(' ').next().unwrap().parse().unwrap())
            .collect();
        ids.sort_unstable();
        ids
    };
    let expected: Vec<i32> = (0..10).chain(14..2000).chain(5000..5004).collect();
    assert_eq!(ids(rows(&table).await), expected);
    // Every run between level 0 and the top still holds the deletes.
    let buckets = table
        .buckets(&paimon::TimeTravel::Latest, &paimon::Selection::all())
        .await
        .unwrap();
    let upper: i64 = buckets[0]
        .runs()
        .iter()
        .filter(|run| run.level < 3)
        .flat_map(|run| run.run.files())
        .map(|file| file.delete_row_count.unwrap())
        .sum();
    assert_eq!(upper, 4, "{}", shape(&table).await);

    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(ids(rows(&table).await), expected);
    assert_eq!(shape(&table).await, "L3:2000");
}

#[tokio::test]
async fn a_writer_compacts_the_bucket_that_it_is_told_to() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit(&table, &[("+I", 1, "a")]).await;
    let builder = table.write_builder();
    let (mut write, committer) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    let partition = paimon::format::row::BinaryRow::empty();
    write.compact(&partition, 0, true).await.unwrap();
    committer
        .commit(1, write.prepare_commit(true).await.unwrap())
        .await
        .unwrap();
    assert_eq!(shape(&table).await, "L5:1");
    let error = write.compact(&partition, 1, true).await.unwrap_err();
    assert_eq!(error.to_string(), "bucket 1: the partition has 1 buckets");
}

#[tokio::test]
async fn equal_sequence_numbers_read_the_same_before_and_after_compaction() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    // Two writers open on the empty table: both files start at sequence 0.
    let builders = [table.write_builder(), table.write_builder()];
    let mut writers = builders.each_ref().map(|builder| builder.new_write().unwrap());
    for (writer, value) in writers.iter_mut().zip(["8", "9"]) {
        let (batch, kinds) = kv(&[("+I", 1, value)]);
        writer.write_with_kinds(&batch, &kinds).await.unwrap();
    }
    for (writer, builder) in writers.iter_mut().zip(&builders) {
        let messages = writer.prepare_commit(true).await.unwrap();
        builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    }
    let before = rows(&table).await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, before);
}
