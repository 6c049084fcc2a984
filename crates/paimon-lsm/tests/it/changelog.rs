//! Changelogs of flushes and compactions, and the files that make them.

use std::fmt::Write;
use std::sync::Arc;

use paimon_format::dv::{BitmapKind, BucketDvMaintainer, DeletionVectorsIndexFile};
use paimon_format::meta::{IndexFileNames, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::{FileRoots, MemoryStorage, Storage};
use paimon_lsm::write::MergeTreeWriter;
use paimon_lsm::write::WaitCompaction::{No, Yes};

use crate::bucket::{Bucket, Change, all, idle, print, write};

/// Commits some changes, and tells what came of it: changes, tree, rows.
async fn step(bucket: &mut Bucket, writer: &mut MergeTreeWriter, changes: &[Change]) -> String {
    write(writer, &bucket.schema, changes).await;
    finish_step(bucket, writer).await
}

async fn finish_step(bucket: &mut Bucket, writer: &mut MergeTreeWriter) -> String {
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    let mut text = String::new();
    for (name, files) in [
        ("input", &increment.data.changelog_files),
        ("changelog", &increment.compact.changelog_files),
    ] {
        if !files.is_empty() {
            writeln!(text, "{name}: {}", bucket.records(files).await).unwrap();
        }
    }
    text.push_str(&bucket.tree());
    let mut rows = bucket.rows().await;
    // The others never change.
    rows.retain(|key, _| !(103..200).contains(key));
    writeln!(text, "rows: {}\n", print(&rows)).unwrap();
    text
}

/// A large file on the top level, so that what follows stays on its own.
async fn base(bucket: &mut Bucket, writer: &mut MergeTreeWriter) {
    step(bucket, writer, &all(100..200, 7)).await;
}

#[tokio::test]
async fn deduplicate_moves_files_and_tells_updates() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "lookup")]);
    let mut writer = bucket.writer();
    base(&mut bucket, &mut writer).await;
    let mut text = step(&mut bucket, &mut writer, &[(101, Some(1)), (102, None), (201, Some(1))]).await;
    // Above the file that was moved: the old row is in it, or below.
    text += &step(&mut bucket, &mut writer, &[(102, Some(2))]).await;
    writer.compact(true).await.unwrap();
    text += &finish_step(&mut bucket, &mut writer).await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn sums_are_rewritten_with_what_is_looked_up() {
    let mut bucket = Bucket::with_options(&[
        ("changelog-producer", "lookup"),
        ("merge-engine", "aggregation"),
        ("fields.v.aggregate-function", "sum"),
    ]);
    let mut writer = bucket.writer();
    base(&mut bucket, &mut writer).await;
    let mut text = step(&mut bucket, &mut writer, &[(101, Some(5)), (201, Some(1))]).await;
    text += &step(&mut bucket, &mut writer, &[(101, Some(3))]).await;
    writer.compact(true).await.unwrap();
    text += &finish_step(&mut bucket, &mut writer).await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn first_row_asks_whether_a_key_is_there() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "lookup"), ("merge-engine", "first-row")]);
    let mut writer = bucket.writer();
    base(&mut bucket, &mut writer).await;
    let mut text = step(&mut bucket, &mut writer, &[(101, Some(5)), (201, Some(1))]).await;
    // Nothing new: no file is left of it.
    text += &step(&mut bucket, &mut writer, &[(101, Some(3)), (201, Some(3))]).await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn full_compaction_compares_with_the_top_level() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "full-compaction")]);
    let mut writer = bucket.writer();
    base(&mut bucket, &mut writer).await;
    writer.compact(true).await.unwrap();
    let told = finish_step(&mut bucket, &mut writer).await;
    assert!(told.starts_with("changelog: +I(100,7) +I(101,7)"), "{told}");
    let mut text = step(&mut bucket, &mut writer, &[(101, Some(1)), (102, None), (201, Some(1))]).await;
    text += &step(&mut bucket, &mut writer, &[(101, Some(2))]).await;
    writer.compact(true).await.unwrap();
    text += &finish_step(&mut bucket, &mut writer).await;
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn input_is_told_unmerged_in_the_order_of_keys() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "input")]);
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &[(2, Some(1)), (1, Some(1))]).await;
    // On disk by now, and merged with what comes at the flush.
    writer.flush_memory().await.unwrap();
    assert_eq!(bucket.spills(), 1);
    let text = step(&mut bucket, &mut writer, &[(1, Some(2)), (2, None), (3, None)]).await;
    insta::assert_snapshot!(text, @r"
    input: +I(1,1) +I(1,2) +I(2,1) -D(2,null) -D(3,null)
    L0        3 B  data-0001.parquet (3-2, seq 2..4)
    rows: 1=2
    ");
    assert_eq!(bucket.spills(), 0);
}

#[tokio::test]
async fn an_overwriting_writer_tells_nothing() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "lookup")]);
    let mut writer = bucket.builder().ignore_previous_files().build().unwrap();
    let text = step(&mut bucket, &mut writer, &[(1, Some(1))]).await;
    assert!(!text.contains("changelog"), "{text}");
    assert!(text.contains("L5"), "{text}");
}

#[tokio::test]
async fn gentle_compaction_lets_level_0_wait() {
    let mut bucket = Bucket::with_options(&[
        ("changelog-producer", "lookup"),
        ("lookup-compact", "gentle"),
        ("lookup-compact.max-interval", "3"),
        ("num-sorted-run.compaction-trigger", "3"),
        ("compaction.max-size-amplification-percent", "100000"),
    ]);
    let mut writer = bucket.writer();
    let mut text = String::new();
    for round in 0..3 {
        text += &step(&mut bucket, &mut writer, &[(1, Some(round))]).await;
        if round < 2 {
            // A bucket with files on level 0 is not done, even when no task runs.
            let waits = writer
                .levels()
                .is_some_and(|view| view.runs().iter().any(|run| run.level == 0));
            assert!(waits, "{text}");
        }
    }
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn without_waiting_the_changelog_comes_later() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "lookup"), ("lookup-wait", "false")]);
    assert!(!bucket.settings.prepare_commit_wait_compaction());
    let mut writer = bucket.writer();
    write(&mut writer, &bucket.schema, &[(1, Some(1))]).await;
    let increment = writer.prepare_commit(No).await.unwrap();
    assert!(increment.compact.is_empty());
    bucket.commit(&increment);
    assert!(writer.compact_not_completed().unwrap());
    idle(200).await;
    let increment = writer.prepare_commit(No).await.unwrap();
    bucket.commit(&increment);
    assert_eq!(bucket.records(&increment.compact.changelog_files).await, "+I(1,1)");
    assert!(!writer.compact_not_completed().unwrap());
}

/// The deletion vectors of a bucket in memory, none yet.
fn no_vectors(bucket: &Bucket) -> BucketDvMaintainer {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(Arc::clone(&bucket.env.clock)));
    let paths = TablePaths::new(PathSettings::from_options(Vec::new(), &Options::new()).unwrap());
    let paths = paths.bucket(&BinaryRow::default(), 0).unwrap();
    let names = Arc::new(IndexFileNames::new(Arc::clone(&bucket.env.ids)));
    let index = DeletionVectorsIndexFile::new(FileRoots::new(storage), paths, names, BitmapKind::Bits32);
    BucketDvMaintainer::new(index)
}

#[tokio::test]
async fn old_rows_are_marked_as_deleted() {
    let mut bucket = Bucket::with_options(&[("changelog-producer", "lookup"), ("deletion-vectors.enabled", "true")]);
    let vectors = no_vectors(&bucket);
    let index = vectors.index().clone();
    let mut writer = bucket.builder().deletion_vectors(Some(vectors)).build().unwrap();
    base(&mut bucket, &mut writer).await;
    let mut text = String::new();
    for changes in [
        vec![(101, Some(1)), (102, None)],
        vec![(102, Some(2))],
        vec![(101, Some(3))],
    ] {
        write(&mut writer, &bucket.schema, &changes).await;
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit(&increment);
        let compact = &increment.compact;
        writeln!(text, "changelog: {}", bucket.records(&compact.changelog_files).await).unwrap();
        text.push_str(&bucket.tree());
        assert!(compact.new_index_files.len() <= 1, "{compact:?}");
        for file in &compact.new_index_files {
            for (name, rows) in index.read(file, |_| true).await.unwrap() {
                writeln!(text, "deleted: {name} {:?}", rows.iter().collect::<Vec<_>>()).unwrap();
            }
        }
        text.push('\n');
    }
    // Files with vectors are rewritten, and the vectors go.
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit(&increment);
    text.push_str(&bucket.tree());
    let [file] = &increment.compact.new_index_files[..] else {
        panic!("{increment:?}")
    };
    assert!(index.read(file, |_| true).await.unwrap().is_empty());
    insta::assert_snapshot!(text);
}

/// Values that were deleted are not part of what comes after.
#[tokio::test]
async fn deletes_that_remove_a_row_take_older_runs_along() {
    let mut bucket = Bucket::with_options(&[
        ("merge-engine", "aggregation"),
        ("fields.v.aggregate-function", "sum"),
        ("aggregation.remove-record-on-delete", "true"),
        ("num-sorted-run.compaction-trigger", "2"),
        ("compaction.max-size-amplification-percent", "100000"),
    ]);
    let mut writer = bucket.writer();
    base(&mut bucket, &mut writer).await;
    writer.compact(true).await.unwrap();
    finish_step(&mut bucket, &mut writer).await;
    bucket.settings.write_only = true;
    let mut beside = bucket.writer();
    let mut text = String::new();
    for change in [(101, None), (101, Some(5))] {
        text += &step(&mut bucket, &mut beside, &[change]).await;
    }
    bucket.settings.write_only = false;
    let mut writer = bucket.writer();
    assert!(writer.compact_not_completed().unwrap());
    text += &finish_step(&mut bucket, &mut writer).await;
    insta::assert_snapshot!(text);
    assert_eq!(bucket.rows().await[&101], Some(5));
}
