//! Buffer, flush, compaction, commit.

use arrow_array::{Array, RecordBatch, StringArray};
use paimon_format::ErrorKind;
use paimon_format::env::Budget;
use paimon_format::kv::SequenceOrder;
use paimon_lsm::compact::CompactStep;
use paimon_lsm::levels::LevelsView;
use paimon_lsm::write::WaitCompaction::{No, Yes};
use std::sync::Arc;

use crate::bucket::{Bucket, all, batch, idle, print, write};

#[tokio::test]
async fn records_are_numbered_in_order_of_arrival_and_merged_at_the_flush() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &[(2, Some(1)), (1, Some(2))]).await;
    write(&mut writer, &bucket.schema, &[(2, Some(3)), (3, None)]).await;
    assert_eq!(writer.next_sequence(), 4);
    let increment = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&increment);
    // Key 2 keeps its last version; the delete stays, for older versions may lie in files.
    insta::assert_snapshot!(bucket.tree(), @"L0        3 B  data-0001.parquet (3-1, seq 1..3)");
    assert_eq!(print(&bucket.rows().await), "1=2 2=3");
    // The next writer counts on.
    assert_eq!(bucket.writer().next_sequence(), 4);
    assert!(writer.prepare_commit(No).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_sequence_field_orders_versions_before_arrival() {
    let sequence = |descending| {
        Some(SequenceOrder {
            columns: vec![1],
            descending,
        })
    };
    for (descending, expected) in [(false, "1=9"), (true, "1=3")] {
        let mut bucket = Bucket::with_sequence(sequence(descending));
        let mut writer = bucket.writer();
        write(&mut writer, &bucket.schema, &[(1, Some(9)), (1, Some(3)), (1, Some(5))]).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
        assert_eq!(print(&bucket.rows().await), expected, "descending: {descending}");
    }
}

#[tokio::test]
async fn five_flushes_are_compacted_to_the_top() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    let mut drawings = Vec::new();
    for round in 0..6 {
        write(&mut writer, &bucket.schema, &all(0..20, round)).await;
        write(&mut writer, &bucket.schema, &[(100 + round, None)]).await;
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit(&increment);
        drawings.push(bucket.tree());
    }
    insta::assert_snapshot!(drawings[3..].join("\n"));
    assert_eq!(bucket.rows().await.len(), 20);
}

#[tokio::test]
async fn without_waiting_the_result_comes_with_the_next_commit() {
    let mut bucket = Bucket::new();
    bucket.settings.compact.strategy.universal.compaction_trigger = 2;
    let mut writer = bucket.writer();
    for round in 0..2 {
        write(&mut writer, &bucket.schema, &all(0..5, round)).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
    }
    insta::assert_snapshot!(bucket.tree(), @r"
    L0        5 B  data-0002.parquet (5, seq 5..9)
    L0        5 B  data-0001.parquet (5, seq 0..4)
    ");
    idle(200).await;
    let increment = writer.prepare_commit(No).await.unwrap();
    assert!(increment.data.is_empty());
    bucket.commit(&increment);
    insta::assert_snapshot!(bucket.tree(), @"L5        5 B  data-0003.parquet (5, seq 5..9)");
}

#[tokio::test]
async fn a_full_compaction_leaves_no_deletes_and_then_nothing_to_do() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &all(0..20, 1)).await;
    writer.compact(false).await.unwrap();
    write(&mut writer, &bucket.schema, &[(3, None), (4, Some(2))]).await;
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    assert_eq!(increment.data.new_files.len(), 2);
    bucket.commit(&increment);
    insta::assert_snapshot!(bucket.tree(), @"L5       19 B  data-0003.parquet (19, seq 0..21)");
    writer.compact(true).await.unwrap();
    assert!(writer.prepare_commit(Yes).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_lone_file_without_deletes_is_upgraded_with_its_bytes() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &all(0..20, 1)).await;
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    insta::assert_snapshot!(bucket.tree(), @"L5       20 B  data-0001.parquet (20, seq 0..19)");
    assert_eq!(bucket.memory.opened(), [""; 0]);
}

#[tokio::test]
async fn forced_rewrites_leave_nothing_as_it_was() {
    let mut bucket = Bucket::new();
    bucket.settings.compact.force_rewrite_all_files = true;
    let mut writer = bucket.writer();
    for _ in 0..2 {
        write(&mut writer, &bucket.schema, &all(0..20, 1)).await;
        writer.compact(true).await.unwrap();
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit(&increment);
    }
    insta::assert_snapshot!(bucket.tree(), @"L5       20 B  data-0004.parquet (20, seq 20..39)");
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    assert_eq!(increment.compact.compact_before.len(), 1);
    bucket.commit(&increment);
    insta::assert_snapshot!(bucket.tree(), @"L5       20 B  data-0005.parquet (20, seq 20..39)");
}

#[tokio::test]
async fn a_partial_compaction_keeps_deletes() {
    let mut bucket = Bucket::new();
    bucket.settings.compact.num_levels = 4;
    bucket.settings.compact.strategy.universal.compaction_trigger = 3;
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &all(0..2000, 1)).await;
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    for k in 0..4 {
        write(&mut writer, &bucket.schema, &[(10 + k, None), (5000 + k, Some(2))]).await;
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit(&increment);
    }
    let deleted = |rows: &std::collections::BTreeMap<i64, Option<i64>>| (10..14).all(|key| !rows.contains_key(&key));
    let rows = bucket.rows().await;
    assert!(rows.len() == 2000 && deleted(&rows));
    insta::assert_snapshot!(bucket.tree());
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    let rows = bucket.rows().await;
    assert!(rows.len() == 2000 && deleted(&rows));
    let [file] = &bucket.live[..] else {
        panic!("{}", bucket.tree())
    };
    assert_eq!((file.level, file.row_count, file.delete_row_count), (3, 2000, Some(0)));
}

#[tokio::test]
async fn a_write_only_writer_never_compacts() {
    let mut bucket = Bucket::new();
    bucket.settings.write_only = true;
    let mut writer = bucket.writer();
    for round in 0..12 {
        write(&mut writer, &bucket.schema, &all(0..3, round)).await;
        let increment = writer.prepare_commit(Yes).await.unwrap();
        assert!(increment.compact.is_empty());
        bucket.commit(&increment);
    }
    assert_eq!(bucket.live.len(), 12);
    assert!(writer.levels().is_none());
    assert!(!writer.compact_not_completed().unwrap());
    let error = writer.compact(true).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a write-only writer does not compact: set write-only to false"
    );
    // A dedicated compactor takes over.
    bucket.settings.write_only = false;
    let mut compactor = bucket.writer();
    compactor.compact(true).await.unwrap();
    let increment = compactor.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "0=11 1=11 2=11");
    assert_eq!(bucket.live.len(), 1);
}

#[tokio::test]
async fn a_full_buffer_goes_to_local_disk() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.builder().buffer_budget(Budget::new(100_000)).build().unwrap();
    for round in 0..20 {
        write(
            &mut writer,
            &bucket.schema,
            &all(round * 100..round * 100 + 1000, round),
        )
        .await;
    }
    assert!(bucket.spills() > 1, "{} spills", bucket.spills());
    assert!(writer.memory_bytes() < 200_000);
    assert!(bucket.live.is_empty() && bucket.memory.names().is_empty());
    let increment = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(bucket.spills(), 0);
    insta::assert_snapshot!(bucket.tree(), @"L0     2900 B  data-0001.parquet (2900, seq 0..19999)");
    let rows = bucket.rows().await;
    assert_eq!((rows[&0], rows[&150], rows[&2899]), (Some(0), Some(1), Some(19)));
    assert_eq!(bucket.env.disk.free(), bucket.env.disk.total());
}

#[tokio::test]
async fn a_full_buffer_that_may_not_spill_is_flushed() {
    let mut bucket = Bucket::new();
    bucket.settings.max_spill_bytes = None;
    bucket.settings.compact.strategy.universal.compaction_trigger = 100;
    let budget = Budget::new(100_000);
    let mut writer = bucket.builder().buffer_budget(budget.clone()).build().unwrap();
    for round in 0..20 {
        write(&mut writer, &bucket.schema, &all(0..1000, round)).await;
    }
    assert!(bucket.memory.names().len() > 1);
    let increment = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(bucket.spills(), 0);
    assert_eq!(bucket.rows().await, all(0..1000, 19).into_iter().collect());
    assert_eq!(budget.free(), budget.total());
}

#[tokio::test]
async fn the_disk_limit_of_the_buffer_holds() {
    let mut bucket = Bucket::new();
    bucket.settings.max_spill_bytes = Some(1);
    let mut writer = bucket.builder().build().unwrap();
    write(&mut writer, &bucket.schema, &all(0..100, 1)).await;
    writer.flush_memory().await.unwrap();
    assert_eq!((bucket.spills(), writer.memory_bytes()), (1, 0));
    write(&mut writer, &bucket.schema, &all(0..100, 2)).await;
    writer.flush_memory().await.unwrap();
    // The limit was reached: all went to level 0.
    assert_eq!(bucket.spills(), 0);
    let increment = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&increment);
    insta::assert_snapshot!(bucket.tree(), @"L0      100 B  data-0001.parquet (100, seq 100..199)");
}

/// A sum where a delete removes what is older; nothing is compacted.
fn removing_bucket() -> Bucket {
    let mut bucket = Bucket::with_options(&[
        ("merge-engine", "aggregation"),
        ("fields.v.aggregate-function", "sum"),
        ("aggregation.remove-record-on-delete", "true"),
    ]);
    bucket.settings.write_only = true;
    bucket
}

#[tokio::test]
async fn a_row_after_a_delete_of_its_key_comes_to_the_next_file() {
    let mut bucket = removing_bucket();
    let mut writer = bucket.writer();
    // Deletes may follow each other, and rows; rows of other keys do not wait.
    let rows = [
        (1, Some(1)),
        (1, None),
        (1, None),
        (1, Some(2)),
        (2, Some(3)),
        (1, None),
        (1, Some(4)),
    ];
    write(&mut writer, &bucket.schema, &rows).await;
    let increment = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&increment);
    insta::assert_snapshot!(bucket.tree(), @r"
    L0        1 B  data-0003.parquet (1, seq 6..6)
    L0        1 B  data-0002.parquet (1-1, seq 5..5)
    L0        2 B  data-0001.parquet (2-1, seq 2..3)
    ");
    assert_eq!(print(&bucket.rows().await), "1=4 2=3");
    // The same in a batch each, the first of them in a temporary file.
    for row in [(1, None), (1, Some(6))] {
        write(&mut writer, &bucket.schema, &[row]).await;
        writer.flush_memory().await.unwrap();
    }
    let increment = writer.prepare_commit(No).await.unwrap();
    assert_eq!(increment.data.new_files.len(), 2);
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "1=6 2=3");
}

#[tokio::test]
async fn a_wrong_batch_with_deletes_is_not_taken_in_part() {
    let bucket = removing_bucket();
    let mut writer = bucket.writer();
    let (values, kinds) = batch(&bucket.schema, &[(1, None), (1, Some(2))]);
    let error = writer.write(&values, &kinds[..1]).await.unwrap_err();
    assert_eq!(error.to_string(), "1 row kinds for 2 rows");
    assert_eq!(writer.next_sequence(), 0);
    writer.write(&values, &kinds).await.unwrap();
    assert_eq!(writer.prepare_commit(No).await.unwrap().data.new_files.len(), 2);
}

#[tokio::test]
async fn known_deletes_are_in_the_budget() {
    let mut bucket = removing_bucket();
    let budget = Budget::new(100_000);
    let mut writer = bucket.builder().buffer_budget(budget.clone()).build().unwrap();
    for round in 0..40 {
        let deletes: Vec<_> = (round * 500..(round + 1) * 500).map(|key| (key, None)).collect();
        write(&mut writer, &bucket.schema, &deletes).await;
        assert!(
            writer.memory_bytes() <= budget.total(),
            "{} bytes",
            writer.memory_bytes()
        );
    }
    let increment = writer.prepare_commit(No).await.unwrap();
    assert!(increment.data.new_files.len() > 1);
    bucket.commit(&increment);
    assert!(bucket.rows().await.is_empty());
    assert_eq!((writer.memory_bytes(), budget.free()), (0, budget.total()));
}

#[tokio::test]
async fn closing_deletes_what_no_commit_got() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &all(0..20, 1)).await;
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    // An upgrade of a committed file, and a flushed one, neither committed.
    writer.compact(true).await.unwrap();
    write(&mut writer, &bucket.schema, &all(0..20, 2)).await;
    writer.compact(false).await.unwrap();
    assert_eq!(bucket.memory.names().len(), 2);
    writer.close().await;
    assert_eq!(bucket.orphans(), [""; 0]);
    assert_eq!(bucket.rows().await.len(), 20);
}

#[tokio::test]
async fn an_intermediate_output_is_deleted_at_once() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    for round in 0..3 {
        write(&mut writer, &bucket.schema, &all(0..20, round)).await;
        writer.compact(true).await.unwrap();
    }
    let increment = writer.prepare_commit(Yes).await.unwrap();
    // Three flushed files and the last output: the outputs between are gone, and in no list. The first file was upgraded.
    assert_eq!(bucket.memory.names().len(), 4);
    bucket.commit(&increment);
    assert_eq!(bucket.live.len(), 1);
}

#[tokio::test]
async fn a_writer_hands_its_state_over() {
    let mut bucket = Bucket::new();
    let mut writer = bucket.writer();
    // Number 1 is merged away: the files do not know it.
    write(&mut writer, &bucket.schema, &[(1, Some(1))]).await;
    let first = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&first);
    write(&mut writer, &bucket.schema, &[(2, Some(2))]).await;
    let state = writer.checkpoint().await.unwrap();
    writer.close().await;
    assert_eq!((state.next_sequence, state.files.len()), (2, 2));
    let mut next = bucket.builder().state(state).build().unwrap();
    write(&mut next, &bucket.schema, &[(3, Some(3))]).await;
    let increment = next.prepare_commit(No).await.unwrap();
    assert_eq!(increment.data.new_files.len(), 2);
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "1=1 2=2 3=3");
}

#[tokio::test]
async fn files_of_another_job_join_the_tree() {
    let mut bucket = Bucket::new();
    let mut compactor = bucket.writer();
    bucket.settings.write_only = true;
    let mut other = bucket.writer();
    for round in 0..5 {
        write(&mut other, &bucket.schema, &all(0..3, round)).await;
        let increment = other.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
        compactor.notify_new_files(&increment.data.new_files).unwrap();
    }
    let runs = compactor.levels().map_or(0, |view: LevelsView| view.runs().len());
    assert_eq!(runs, 5);
    compactor.compact(false).await.unwrap();
    let increment = compactor.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "0=4 1=4 2=4");
    assert_eq!(bucket.live.len(), 1);
}

#[tokio::test]
async fn wrong_batches_are_refused_by_column() {
    let bucket = Bucket::new();
    let mut writer = bucket.writer();
    let (columns, kinds) = batch(&bucket.schema, &all(0..2, 1));
    let too_few = writer.write(&columns, &kinds[..1]).await.unwrap_err();
    assert_eq!(too_few.to_string(), "1 row kinds for 2 rows");
    let one = columns.project(&[0]).unwrap();
    let error = writer.write(&one, &kinds).await.unwrap_err();
    assert_eq!(error.to_string(), "the table has 2 columns, the batch has 1");
    let swapped = columns.project(&[1, 0]).unwrap();
    let error = writer.write(&swapped, &kinds).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "column k of type Int64 is expected where the batch has v of type Int64"
    );
    let text: Arc<dyn Array> = Arc::new(StringArray::from(vec!["a", "b"]));
    let other = RecordBatch::try_from_iter([("k", Arc::clone(columns.column(0))), ("v", text)]).unwrap();
    let error = writer.write(&other, &kinds).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "column v of type Int64 is expected where the batch has v of type Utf8"
    );
    let nulls = RecordBatch::try_from_iter([
        ("k", Arc::clone(columns.column(1))),
        ("v", Arc::clone(columns.column(1))),
    ])
    .unwrap();
    writer.write(&nulls, &kinds).await.unwrap();
    let null_key: Arc<dyn Array> = Arc::new(arrow_array::Int64Array::from(vec![None, Some(1)]));
    let nulls =
        RecordBatch::try_from_iter_with_nullable([("k", null_key, true), ("v", Arc::clone(columns.column(1)), true)])
            .unwrap();
    let error = writer.write(&nulls, &kinds).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.to_string(), "cannot write null to non-null column(k)");
    // Nothing of the refused batches was taken.
    assert_eq!(writer.next_sequence(), 2);
}

#[tokio::test]
async fn a_builder_names_what_is_missing() {
    let bucket = Bucket::new();
    let builder = || paimon_lsm::write::MergeTreeWriter::builder(Arc::clone(&bucket.schema), Arc::clone(&bucket.files));
    let error = builder().env(bucket.env.clone()).build().unwrap_err();
    assert_eq!(error.to_string(), "a writer needs a merge engine");
    let error = builder().engine(bucket.engine()).build().unwrap_err();
    assert_eq!(error.to_string(), "a writer needs an environment");
}

#[tokio::test]
async fn writers_that_counted_from_the_same_number_are_told_apart_by_time() {
    let mut bucket = Bucket::new();
    bucket.settings.write_only = true;
    let (mut first, mut second) = (bucket.writer(), bucket.writer());
    write(&mut first, &bucket.schema, &[(1, Some(8))]).await;
    write(&mut second, &bucket.schema, &[(1, Some(9))]).await;
    for writer in [&mut first, &mut second] {
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
    }
    // The later file wins, in whatever order files are listed, before a compaction and after it.
    assert_eq!(print(&bucket.rows().await), "1=9");
    bucket.live.reverse();
    assert_eq!(print(&bucket.rows().await), "1=9");
    bucket.settings.write_only = false;
    let mut compactor = bucket.writer();
    compactor.compact(true).await.unwrap();
    let increment = compactor.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(print(&bucket.rows().await), "1=9");
    assert_eq!(bucket.live.len(), 1);
}

#[tokio::test]
async fn a_task_travels_as_data() {
    let unit = paimon_lsm::pick::CompactUnit {
        output_level: 5,
        files: vec![Arc::new(paimon_lsm::testing::keyed_file("a", 0, (1, 2), 10))],
        runs: 1,
        rewrite_each: false,
        reason: paimon_lsm::pick::PickReason::Full,
    };
    let task = paimon_lsm::compact::CompactTask::new(unit, 6, true);
    let json = serde_json::to_string(&task).unwrap();
    let back: paimon_lsm::compact::CompactTask = serde_json::from_str(&json).unwrap();
    assert_eq!(back, task);
}

#[tokio::test]
async fn a_dry_run_starts_nothing() {
    let mut bucket = Bucket::new();
    bucket.settings.write_only = true;
    let mut writer = bucket.writer();
    for round in 0..3 {
        write(&mut writer, &bucket.schema, &all(round * 15..round * 15 + 20, round)).await;
        let increment = writer.prepare_commit(No).await.unwrap();
        bucket.commit(&increment);
    }
    assert_eq!(writer.plan_compaction(true).unwrap(), None);
    bucket.settings.write_only = false;
    let mut compactor = bucket.writer();
    assert_eq!(compactor.plan_compaction(false).unwrap(), None);
    let (task, steps) = compactor.plan_compaction(true).unwrap().unwrap();
    assert_eq!((task.files.len(), task.output_level, task.drop_delete), (3, 5, true));
    assert!(matches!(&steps[..], [CompactStep::Rewrite { sections, .. }] if sections.len() == 1));
    assert!(!compactor.compact_not_completed().unwrap());
    assert!(compactor.prepare_commit(Yes).await.unwrap().is_empty());
}
