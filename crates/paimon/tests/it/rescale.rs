//! Other numbers of buckets.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use futures::executor::block_on;
use paimon::format::options::Options;
use paimon::format::types::DataField;
use paimon::{ErrorKind, Rescaled, Selection, StopSignal, Table, TableSchema, TimeTravel};

use crate::overwrite::{HIDDEN, batch, messages, part, schema, three_partitions, write};
use crate::support::{Place, commit, commit_batch, kinds, kv_schema, rows, rows_of, strays, with};

#[tokio::test]
async fn where_level_0_is_not_seen_all_rows_are_there_after_each_step_of_a_rescale() {
    for hidden in HIDDEN {
        let place = Place::new();
        let spilled = ("write-buffer-spillable", "false");
        let options = [hidden, ("write-buffer-size", "192 kb"), ("page-size", "64 kb"), spilled];
        let table = three_partitions(&place, &options).await;
        let keys = |p| (0..20_000).map(move |k| (p, 1, k));
        let all: Vec<_> = keys("a").chain(keys("b")).collect();
        write(&table.write_builder(), &all).await.unwrap();
        let before = rows(&table).await;
        let first = table.snapshot_store().latest_id().await.unwrap().unwrap() + 1;
        let write_only: Options = [("write-only", "true")].into_iter().collect();
        let job = table.with_options(&write_only).unwrap();
        let rescaled = job.rescale(3, &Selection::all(), &StopSignal::never()).await.unwrap();
        assert_eq!(rescaled.partitions.len(), 3);
        let last = table.snapshot_store().latest_id().await.unwrap().unwrap();
        assert_eq!(last, first + 2, "{hidden:?}: one snapshot a partition");
        for id in first..=last {
            let read = table.read_builder().time_travel(TimeTravel::SnapshotId(id));
            assert_eq!(rows_of(read).await.len(), before.len(), "{hidden:?}, snapshot {id}");
        }
        let table = table.refreshed().await.unwrap();
        assert_eq!(rows(&table).await, before);
        assert_eq!(strays(&table).await, [""; 0], "{hidden:?}");
    }
}

#[tokio::test]
async fn partitions_get_another_number_of_buckets() {
    let place = Place::new();
    let table = place.create(schema()).await;
    let all: Vec<(&str, i32, i32)> = (0..200).map(|k| (if k % 2 == 0 { "a" } else { "b" }, 1, k)).collect();
    write(&table.write_builder(), &all).await.unwrap();
    write(&table.write_builder(), &all[..50]).await.unwrap();
    let expected = rows(&table).await;

    let rescaled = table.rescale(4, &part("a"), &StopSignal::never()).await.unwrap();
    let found: Vec<_> = rescaled
        .partitions
        .iter()
        .map(|part| (part.partition.to_string(), part.buckets_before, part.rows))
        .collect();
    assert_eq!(found, [("p=a/q=1".to_owned(), 1, 100)]);
    let table = table.refreshed().await.unwrap();
    assert_eq!(table.schema().options.get("bucket"), Some("4"));
    assert_eq!(rows(&table).await, expected);
    let buckets = |table: Table, p: &'static str| async move {
        table.buckets(&TimeTravel::Latest, &part(p)).await.unwrap().len()
    };
    assert_eq!(
        (buckets(table.clone(), "a").await, buckets(table.clone(), "b").await),
        (4, 1)
    );

    // A partition that was left out is read, but refuses rows until it is rescaled.
    let mut writer = table.write_builder().new_write().unwrap();
    let error = writer.write(&batch(&[("b", 1, 1)])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "partition p=b/q=1: its files are in 1 buckets, but the option 'bucket' is 4; rescale it before writing"
    );
    write(&table.write_builder(), &[("a", 1, 1000), ("c", 1, 1)])
        .await
        .unwrap();
    assert_eq!(
        table
            .rescale(4, &Selection::all(), &StopSignal::never())
            .await
            .unwrap()
            .partitions
            .len(),
        1
    );
    assert_eq!(
        table.rescale(4, &Selection::all(), &StopSignal::never()).await.unwrap(),
        Rescaled::default()
    );
    write(&table.write_builder(), &[("b", 1, 1001)]).await.unwrap();
    let mut expected = expected;
    expected.extend(["a 1 1000", "b 1 1001", "c 1 1"].map(str::to_owned));
    expected.sort_unstable();
    assert_eq!(rows(&table).await, expected);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, expected);

    let error = table
        .rescale(0, &Selection::all(), &StopSignal::never())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "0 buckets: expected a number above 0");
}

#[tokio::test]
async fn a_partition_without_rows_is_rescaled_too() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit(&table, &[("+I", 1, "a")]).await;
    commit(&table, &[("-D", 1, "a")]).await;
    assert_eq!(
        table
            .rescale(2, &Selection::all(), &StopSignal::never())
            .await
            .unwrap()
            .partitions[0]
            .rows,
        0
    );
    let table = table.refreshed().await.unwrap();
    commit(&table, &[("+I", 1, "b")]).await;
    assert_eq!(rows(&table).await, ["1 b"]);
}

/// Once a partition is rewritten, others have changed since the partitions were listed.
#[tokio::test]
async fn hidden_rows_that_come_while_another_partition_is_rewritten_are_not_lost() {
    for hidden in HIDDEN {
        let place = Place::new();
        let table = three_partitions(&place, &[hidden]).await;
        let other_job = with(&table, "write-only", "true").write_builder();
        let mut appended = false;
        let on_the_way = StopSignal::new(poll_fn(move |context| {
            if !appended {
                appended = true;
                block_on(write(&other_job, &[("b", 1, 31)])).unwrap();
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        let error = table.rescale(2, &Selection::all(), &on_the_way).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (
                ErrorKind::Invalid,
                "partition p=b/q=1: it has rows on level 0, which reads do not see; compact it before it is rescaled"
            )
        );
        let table = table.refreshed().await.unwrap();
        table.compact_builder().full(true).run().await.unwrap();
        let expected = ["a 1 10", "a 2 20", "b 1 30", "b 1 31"];
        assert_eq!(rows(&table).await, expected, "{hidden:?}");
        let never = StopSignal::never();
        let rescaled = table.rescale(2, &Selection::all(), &never).await.unwrap();
        assert_eq!(rescaled.partitions.len(), 1);
        assert_eq!(rows(&table).await, expected, "{hidden:?}");
    }
}

#[tokio::test]
async fn rows_of_a_writer_that_was_opened_before_are_refused() {
    let place = Place::new();
    let table = three_partitions(&place, &[("write-only", "true")]).await;
    let old = table.write_builder();
    let old_overwrite = table.write_builder().overwrite(part("a"));
    let to_a = messages(&old, &[("a", 1, 11), ("b", 1, 31)]).await;
    let to_b = messages(&old, &[("b", 1, 32)]).await;
    let to_c = messages(&old, &[("c", 1, 41)]).await;
    let over_a = messages(&old_overwrite, &[("a", 1, 12)]).await;
    table.rescale(2, &part("a"), &StopSignal::never()).await.unwrap();
    let before = rows(&table).await;
    for (job, messages, partition) in [(&old, to_a, "a"), (&old, to_c, "c"), (&old_overwrite, over_a, "a")] {
        let error = job.new_commit().unwrap().commit(1, messages).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (
                ErrorKind::Conflict,
                format!(
                    "commit conflict: partition p={partition}/q=1: by now it is to have 2 buckets, but its rows were written for 1: \
                     open the table again and write them anew"
                )
            )
        );
    }
    assert_eq!(rows(&table).await, before);
    // This one still has the buckets that it had.
    old.new_commit().unwrap().commit(1, to_b).await.unwrap();
    table.rescale(2, &Selection::all(), &StopSignal::never()).await.unwrap();
    assert_eq!(rows(&table).await, ["a 1 10", "a 2 20", "b 1 30", "b 1 32"]);
}

#[tokio::test]
async fn rows_are_written_back_as_they_are() {
    for row_kind_field in [None, Some("kind")] {
        let place = Place::new();
        let with_default = DataField {
            default_value: Some("default".to_owned()),
            ..DataField::new(0, "v", "STRING".parse().unwrap())
        };
        let schema = TableSchema::builder()
            .column("k", "INT".parse().unwrap())
            .field(with_default)
            .column("kind", "STRING".parse().unwrap())
            .primary_key(["k"])
            .option("bucket", "1")
            .option("merge-engine", "aggregation");
        let schema = row_kind_field
            .iter()
            .fold(schema, |schema, name| schema.option("rowkind.field", *name));
        let table = place.create(schema).await;
        let texts = ["+I", "-D", "+I"];
        let columns: [(&str, ArrayRef); 3] = [
            ("k", Arc::new(Int32Array::from(vec![1, 1, 2]))),
            ("v", Arc::new(StringArray::from(vec!["a", "a", "b"]))),
            ("kind", Arc::new(StringArray::from(texts.to_vec()))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        commit_batch(&table, &batch, &kinds(texts.into_iter())).await;
        // What was taken back is null.
        let expected = ["1 null null", "2 b +I"];
        assert_eq!(rows(&table).await, expected);
        table.rescale(2, &Selection::all(), &StopSignal::never()).await.unwrap();
        assert_eq!(rows(&table).await, expected, "rowkind.field: {row_kind_field:?}");
    }
}
