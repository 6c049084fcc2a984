//! Plans: pruning, buckets, indexes, splits.

use paimon_format::meta::DataFileMeta;
use paimon_manifest::scan::{LevelRange, ScanFilter, ScanKind, SplitFiles, SplitSettings, split_for_batch};
use paimon_manifest::schema::SchemaStore;
use paimon_manifest::snapshot::SnapshotStore;
use std::sync::Arc;

use crate::support::{TestTable, append, compact, env, file, golden, memory, partition, partitioned};

async fn table() -> TestTable {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    let (a, b, c) = (file("a", 0, 1, 5), file("b", 0, 6, 9), file("c", 0, 1, 9));
    table.commit(vec![append(1, 0, &[a.clone()]), append(2, 1, &[b])]).await;
    table
        .commit(vec![compact(1, 0, &[a], &[file("d", 5, 1, 5)]), append(1, 0, &[c])])
        .await;
    table
}

async fn planned(table: &TestTable, filter: ScanFilter) -> Vec<String> {
    let plan = table
        .scan()
        .with_filter(filter)
        .plan(&table.latest().await, ScanKind::All)
        .await
        .unwrap();
    let mut names: Vec<String> = plan
        .buckets
        .iter()
        .flat_map(|bucket| bucket.files.iter().map(|file| file.file_name.clone()))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn plans_are_pruned_by_partition_bucket_and_level() {
    let table = table().await;
    assert_eq!(planned(&table, ScanFilter::all()).await, ["b", "c", "d"]);
    assert_eq!(
        planned(&table, ScanFilter::all().with_partitions([partition(1)])).await,
        ["c", "d"]
    );
    assert_eq!(
        planned(&table, ScanFilter::all().with_partitions([partition(3)])).await,
        [""; 0]
    );
    assert_eq!(planned(&table, ScanFilter::all().with_buckets([1])).await, ["b"]);
    assert_eq!(
        planned(&table, ScanFilter::all().with_levels(LevelRange::above_zero())).await,
        ["d"]
    );
    assert_eq!(
        planned(&table, ScanFilter::all().with_levels(LevelRange::exactly(0))).await,
        ["b", "c"]
    );
}

#[tokio::test]
async fn manifests_that_cannot_matter_are_not_read() {
    let table = table().await;
    // Without the manifests only plans that need none of them can succeed.
    for path in crate::support::names(&*table.storage, "manifest").await {
        if !path.contains("manifest-list") {
            table.storage.delete(&path).await.unwrap();
        }
    }
    for filter in [
        ScanFilter::all().with_partitions([partition(3)]),
        ScanFilter::all().with_buckets([2]),
        ScanFilter::all().with_levels(LevelRange::exactly(6)),
    ] {
        assert_eq!(planned(&table, filter).await, [""; 0]);
    }
}

#[tokio::test]
async fn deltas_and_changelogs_are_planned_alone() {
    let storage = golden("changelog_input");
    let schema = SchemaStore::new(Arc::clone(&storage)).latest().await.unwrap().unwrap();
    let scan = paimon_manifest::scan::FileStoreScan::new(Arc::clone(&storage), env(), schema).unwrap();
    let snapshots = SnapshotStore::new(storage, env());
    let (mut all, mut changelogs) = (0, 0);
    for id in snapshots.list_ids().await.unwrap() {
        let snapshot = snapshots.get(id).await.unwrap();
        let delta = scan.plan(&snapshot, ScanKind::Delta).await.unwrap();
        let full = scan.plan(&snapshot, ScanKind::All).await.unwrap();
        let files = |plan: &paimon_manifest::scan::ScanPlan| -> Vec<Arc<DataFileMeta>> {
            plan.buckets.iter().flat_map(|bucket| bucket.files.clone()).collect()
        };
        let full = files(&full);
        assert!(
            files(&delta).iter().all(|file| full.contains(file)),
            "what a snapshot adds lives in it"
        );
        let changelog = files(&scan.plan(&snapshot, ScanKind::Changelog).await.unwrap());
        assert!(changelog.iter().all(|file| file.file_name.starts_with("changelog-")));
        let rows: i64 = changelog.iter().map(|file| file.row_count).sum();
        assert_eq!(rows, snapshot.changelog_record_count.unwrap_or(0));
        all += full.len();
        changelogs += changelog.len();
    }
    assert!(all > 0 && changelogs > 0);
}

#[tokio::test]
async fn deletion_vectors_and_hash_indexes_belong_to_their_bucket() {
    for (scenario, deletions, hashes) in [("dv_lookup", true, false), ("dynamic_bucket", false, true)] {
        let storage = golden(scenario);
        let schema = SchemaStore::new(Arc::clone(&storage)).latest().await.unwrap().unwrap();
        let scan = paimon_manifest::scan::FileStoreScan::new(Arc::clone(&storage), env(), schema).unwrap();
        let snapshots = SnapshotStore::new(storage, env());
        let mut found = (false, false);
        for id in snapshots.list_ids().await.unwrap() {
            let plan = scan
                .plan(&snapshots.get(id).await.unwrap(), ScanKind::All)
                .await
                .unwrap();
            for bucket in plan.buckets {
                found.1 |= bucket.hash_index.is_some();
                for (name, deletion) in &bucket.deletion_files {
                    found.0 = true;
                    assert_eq!(&deletion.range.data_file_name, name);
                    assert!(
                        bucket.files.iter().any(|file| &file.file_name == name),
                        "{scenario}: {name}"
                    );
                }
            }
        }
        assert_eq!(found, (deletions, hashes), "{scenario}");
    }
}

/// Splits on lines, raw-convertible ones in brackets.
fn splits(files: &[Arc<DataFileMeta>], settings: &SplitSettings) -> Vec<String> {
    let keys = partitioned().build(0).unwrap().key_comparator().unwrap();
    let show = |split: SplitFiles| {
        let names: Vec<&str> = split.files.iter().map(|file| file.file_name.as_str()).collect();
        match split.raw_convertible {
            true => format!("[{}]", names.join(" ")),
            false => names.join(" "),
        }
    };
    split_for_batch(files, settings, &keys)
        .unwrap()
        .into_iter()
        .map(show)
        .collect()
}

/// A file of so many megabytes.
fn sized(name: &str, level: i32, min: i32, max: i32, megabytes: i64) -> Arc<DataFileMeta> {
    Arc::new(DataFileMeta {
        file_size: megabytes << 20,
        ..(*file(name, level, min, max)).clone()
    })
}

#[test]
fn splits_never_tear_overlapping_files_apart() {
    let files = [
        sized("1-2", 1, 1, 2, 1),
        sized("3-4", 2, 3, 4, 1),
        sized("5-180", 0, 5, 180, 61),
        sized("5-190", 1, 5, 190, 61),
        sized("200-600", 0, 200, 600, 61),
        sized("210-700", 2, 210, 700, 61),
    ];
    let settings = SplitSettings::default();
    assert_eq!(splits(&files, &settings), ["1-2 3-4", "5-180 5-190", "200-600 210-700"]);
    let tiny = SplitSettings {
        target_size: 1,
        open_file_cost: 1,
        never_merges: false,
    };
    assert_eq!(
        splits(&files, &tiny),
        ["[1-2]", "[3-4]", "5-180 5-190", "200-600 210-700"]
    );
}

#[test]
fn files_that_cannot_meet_are_packed_by_size_and_read_raw() {
    let files: Vec<_> = (0..5)
        .map(|i| sized(&format!("f{i}"), 5, i * 10, i * 10 + 9, 50))
        .collect();
    let settings = SplitSettings::default();
    assert_eq!(splits(&files, &settings), ["[f0 f1]", "[f2 f3]", "[f4]"]);
    let mut with_delete = (*files[1]).clone();
    with_delete.delete_row_count = Some(1);
    let mut files = files;
    files[1] = Arc::new(with_delete);
    assert_eq!(
        splits(&files, &settings),
        ["f0 f1", "f2 f3", "[f4]"],
        "retracts must be dropped by merging"
    );
}

#[test]
fn tables_that_never_merge_read_all_levels_raw() {
    let files = [sized("a", 1, 1, 9, 1), sized("b", 5, 1, 9, 1)];
    assert_eq!(splits(&files, &SplitSettings::default()), ["a b"]);
    let never_merges = SplitSettings {
        never_merges: true,
        ..SplitSettings::default()
    };
    assert_eq!(splits(&files, &never_merges), ["[a b]"]);
    assert_eq!(
        splits(&[sized("l0", 0, 1, 9, 1)], &never_merges),
        ["[l0]"],
        "a lone file"
    );
    assert_eq!(splits(&[], &never_merges), [""; 0]);
}
