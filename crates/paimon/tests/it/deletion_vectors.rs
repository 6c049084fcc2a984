//! Tables with deletion vectors: those that the Java engine wrote, and our own.

use std::path::Path;

use futures::TryStreamExt;
use paimon::format::options::Options;
use paimon::format::predicate::Predicate;
use paimon::manifest::snapshot::CommitKind;
use paimon::{DataSplit, ReadBuilder, SchemaBuilder, Selection, Table, TimeTravel, split_from_bytes, split_to_bytes};
use rstest::rstest;

use crate::support::{Place, commit, copy, kv_schema, rows, rows_of, with};

async fn open(place: &Place, scenario: &str, options: &[(&str, &str)]) -> Table {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden");
    let path = folder.join(scenario).join("warehouse/default.db/t");
    let options: Options = options.iter().copied().collect();
    Table::open(path.to_str().unwrap(), options, &place.context)
        .await
        .unwrap()
}

fn at(table: &Table, snapshot: i64) -> ReadBuilder {
    table.read_builder().time_travel(TimeTravel::SnapshotId(snapshot))
}

async fn splits(table: &Table, snapshot: i64) -> Vec<DataSplit> {
    at(table, snapshot).new_scan().plan().await.unwrap().splits
}

/// An append is seen with the compaction that takes it up; who merges on reading sees it at once. Either way the same rows are seen
/// in the end.
#[rstest]
#[case("dv_lookup")]
#[case("dv_none")]
#[tokio::test]
async fn level_zero_is_seen_after_its_compaction_or_merged(#[case] scenario: &str) {
    let place = Place::new();
    let plain = open(&place, scenario, &[]).await;
    let merging = open(&place, scenario, &[("deletion-vectors.merge-on-read", "true")]).await;
    let latest = plain.snapshot_store().latest().await.unwrap().unwrap().id;
    let mut before = Vec::new();
    let mut appends = 0;
    for id in 1..=latest {
        let snapshot = plain.snapshot_store().get(id).await.unwrap();
        let rows = rows_of(at(&plain, id)).await;
        for split in splits(&plain, id).await {
            assert!(split.raw_convertible, "snapshot {id} is merged");
            assert!(split.files.iter().all(|file| file.level > 0));
        }
        match snapshot.commit_kind {
            CommitKind::Append => {
                assert_eq!(rows, before, "snapshot {id}");
                if id < latest && snapshot.delta_record_count > 0 {
                    let soon = rows_of(at(&plain, id + 1)).await;
                    assert_eq!(rows_of(at(&merging, id)).await, soon, "snapshot {id}");
                    assert_ne!(soon, before);
                    appends += 1;
                }
            }
            _ => assert_eq!(rows_of(at(&merging, id)).await, rows, "snapshot {id}"),
        }
        before = rows;
    }
    assert!(appends > 2);
}

#[tokio::test]
async fn filters_limits_and_projections_do_not_see_deleted_rows() {
    let place = Place::new();
    let table = open(&place, "dv_lookup", &[]).await;
    // In snapshot 8 rows 0, 1 and 53 of the file on level 5 are deleted, and row 1 of that on level 4.
    let all = rows_of(at(&table, 8)).await;
    assert_eq!(all.len(), 101);
    for row in &all {
        let key = row.split(' ').next().unwrap();
        let filter = Predicate::parse(&format!("id = {key}"), &table.schema().fields).unwrap();
        assert_eq!(rows_of(at(&table, 8).filter(filter)).await, std::slice::from_ref(row));
    }
    let gone = Predicate::parse("id = 2", &table.schema().fields).unwrap();
    assert_eq!(rows_of(at(&table, 8).filter(gone)).await, [""; 0]);
    let keys = rows_of(at(&table, 8).projection(&["id"]).unwrap()).await;
    assert_eq!(keys.len(), all.len());
    assert_eq!(rows_of(at(&table, 8).limit(100)).await.len(), 100);
    let counted: Option<i64> = splits(&table, 8).await.iter().map(DataSplit::merged_row_count).sum();
    assert_eq!(counted, Some(101));
}

/// A value decides about each file by itself: what is visible in it is visible whatever the others hold.
#[tokio::test]
async fn files_are_left_out_by_values() {
    let place = Place::new();
    let table = open(&place, "dv_lookup", &[]).await;
    let files = async |text: &str| {
        let filter = Predicate::parse(text, &table.schema().fields).unwrap();
        let plan = at(&table, 8).filter(filter).new_scan().plan().await.unwrap();
        let mut levels: Vec<i32> = plan
            .splits
            .iter()
            .flat_map(|split| &split.files)
            .map(|file| file.level)
            .collect();
        levels.sort_unstable();
        levels
    };
    assert_eq!(files("name = 'zzzzzzz'").await, [0; 0]);
    assert_eq!(files("id > 0").await, [4, 5]);
    assert_eq!(files("id = 1099").await, [5]);
}

#[tokio::test]
async fn splits_take_their_vectors_to_another_process() {
    let place = Place::new();
    let table = open(&place, "dv_lookup", &[("source.split.target-size", "1b")]).await;
    let splits = splits(&table, 8).await;
    assert_eq!(splits.len(), 2);
    let sent = |split: &DataSplit| split_from_bytes(&split_to_bytes(split).unwrap()).unwrap();
    let received: Vec<DataSplit> = splits.iter().map(sent).collect();
    for (received, split) in received.iter().zip(&splits) {
        let ranges = |split: &DataSplit| -> Vec<_> {
            let deletions = split.deletion_files.iter();
            deletions
                .map(|deletion| deletion.as_ref().map(|deletion| deletion.range.clone()))
                .collect()
        };
        assert_eq!(ranges(received), ranges(split));
        assert_eq!(received.files, split.files);
        assert_eq!(received, &sent(received));
    }
    let batches = table.read_builder().new_read().stream(received).unwrap();
    let batches: Vec<_> = batches.try_collect().await.unwrap();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 101);
}

#[tokio::test]
async fn deleted_rows_are_counted_by_file() {
    let place = Place::new();
    let table = open(&place, "dv_lookup", &[]).await;
    let buckets = table
        .buckets(&TimeTravel::SnapshotId(8), &Selection::all())
        .await
        .unwrap();
    let files: Vec<(i32, Option<i64>)> = buckets
        .iter()
        .flat_map(|bucket| bucket.runs().iter().map(move |run| (bucket, run)))
        .flat_map(|(bucket, run)| {
            run.run
                .files()
                .iter()
                .map(|file| (file.level, bucket.deleted_rows(file)))
        })
        .collect();
    assert_eq!(files, [(4, Some(1)), (5, Some(3))]);
    assert_eq!(buckets[0].deletion_index_files().len(), 1);
}

#[tokio::test]
async fn a_missing_or_damaged_index_file_is_named() {
    let place = Place::new();
    let original = open(&place, "dv_lookup", &[]).await;
    let target = place.dir.path().join("t");
    copy(Path::new(original.location()), &target);
    let table = Table::open(target.to_str().unwrap(), Options::new(), &place.context)
        .await
        .unwrap();
    let splits = splits(&table, 8).await;
    let index = &splits[0].deletion_files[0].as_ref().unwrap().index_file.file_name;
    let path = target.join("index").join(index);
    let read = async || {
        let stream = table.read_builder().new_read().stream(splits.clone()).unwrap();
        stream.try_collect::<Vec<_>>().await.unwrap_err().to_string()
    };
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = read().await;
    assert!(error.contains(index.as_str()) && error.contains("checksum"), "{error}");
    std::fs::remove_file(&path).unwrap();
    let error = read().await;
    assert!(
        error.contains(index.as_str()) && error.contains("no such file"),
        "{error}"
    );
}

/// Rows of each file, oldest level last, and how many of them are deleted: `L4:1 L5:3-2`.
async fn shape(table: &Table) -> String {
    let buckets = table.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
    let files = buckets.iter().flat_map(|bucket| {
        let runs = bucket.runs().iter().flat_map(|run| run.run.files());
        runs.map(|file| {
            let deleted = match bucket.deleted_rows(file).unwrap() {
                0 => String::new(),
                deleted => format!("-{deleted}"),
            };
            format!("L{}:{}{deleted}", file.level, file.row_count)
        })
    });
    files.collect::<Vec<_>>().join(" ")
}

fn with_vectors() -> SchemaBuilder {
    kv_schema().option("deletion-vectors.enabled", "true")
}

#[tokio::test]
async fn a_compaction_marks_old_rows_and_a_full_one_takes_them_away() {
    let place = Place::new();
    let table = place.create(with_vectors()).await;
    commit(&table, &[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")]).await;
    assert_eq!(shape(&table).await, "L5:3");
    commit(&table, &[("+U", 1, "A"), ("-D", 2, "b")]).await;
    assert_eq!(shape(&table).await, "L4:1 L5:3-2");
    assert_eq!(rows(&table).await, ["1 A", "3 c"]);
    let values = Predicate::parse("v = 'b'", &table.schema().fields).unwrap();
    assert_eq!(rows_of(table.read_builder().filter(values)).await, [""; 0]);
    // Again what was deleted, through another writer.
    commit(&table, &[("+I", 2, "new")]).await;
    assert_eq!(rows(&table).await, ["1 A", "2 new", "3 c"]);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(shape(&table).await, "L5:3");
    assert_eq!(rows(&table).await, ["1 A", "2 new", "3 c"]);
}

#[tokio::test]
async fn vectors_of_the_other_kind_are_written_anew_with_the_next_change() {
    let place = Place::new();
    let small = place.create(with_vectors()).await;
    commit(&small, &[("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")]).await;
    commit(&small, &[("-D", 1, "a")]).await;
    let large = with(&small, "deletion-vectors.bitmap64", "true");
    let size = async || {
        let buckets = large.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
        buckets[0].deletion_index_files()[0].file_size
    };
    // One vector with one row, and with two: in 32 bits, then in 64.
    assert_eq!(size().await, 31);
    commit(&large, &[("-D", 2, "b")]).await;
    assert_eq!(size().await, 45);
    assert_eq!(rows(&small).await, ["3 c"]);
    commit(&small, &[("-D", 3, "c")]).await;
    assert_eq!(rows(&large).await, [""; 0]);
}

#[tokio::test]
async fn a_table_cannot_have_vectors_and_what_does_not_go_with_them() {
    let place = Place::new();
    let error = async |key: &str, value: &str| {
        let schema = with_vectors().option(key, value);
        let error = Table::create(&place.location("t"), schema, &place.context)
            .await
            .unwrap_err();
        format!("{}: {error}", error.kind())
    };
    assert_eq!(
        error("changelog-producer", "full-compaction").await,
        "invalid: option 'changelog-producer' = 'full-compaction': tables with deletion vectors (option \
         'deletion-vectors.enabled') know none, input and lookup"
    );
    assert_eq!(
        error("merge-engine", "first-row").await,
        "invalid: option 'deletion-vectors.enabled': merge engine first-row deletes no old rows"
    );
    assert_eq!(
        error("deletion-vectors.bitmap64", "wide").await,
        "invalid: option 'deletion-vectors.bitmap64' = 'wide': expected true or false"
    );
}

/// Where the schema allows it a table is used without vectors: those that are there still count for readers, and writers refuse.
#[tokio::test]
async fn vectors_that_are_there_are_not_forgotten() {
    let place = Place::new();
    let table = place
        .create(with_vectors().option("deletion-vectors.modifiable", "true"))
        .await;
    commit(&table, &[("+I", 1, "a"), ("+I", 2, "b")]).await;
    commit(&table, &[("-D", 1, "a")]).await;
    let off = with(&table, "deletion-vectors.enabled", "false");
    assert_eq!(rows(&off).await, ["2 b"]);
    commit(&with(&off, "write-only", "true"), &[("+I", 3, "c")]).await;
    let error = off.compact_builder().full(true).run().await.unwrap_err();
    assert_eq!(
        format!("{}: {error}", error.kind()),
        "invalid: bucket-0: option 'deletion-vectors.enabled' = 'false': the bucket has deletion vectors; compact it fully with 'true' first"
    );
    table.compact_builder().full(true).run().await.unwrap();
    commit(&off, &[("-D", 2, "b")]).await;
    off.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&off).await, ["3 c"]);
}
