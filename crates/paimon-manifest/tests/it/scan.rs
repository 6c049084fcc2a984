//! Plans: pruning, buckets, indexes, splits.

use std::sync::Arc;

use paimon_format::meta::{DELETION_VECTORS_INDEX, DataFileMeta, DeletionVectorRange, IndexFileMeta, SimpleStats};
use paimon_format::predicate::{Predicate, Test};
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, DataType, Datum, TypeKind};
use paimon_manifest::scan::{
    BucketEntry, DataSplit, LevelRange, ScanFilter, ScanKind, SplitFiles, SplitSettings, ValueFiltering, limit_splits,
    split_for_batch,
};
use paimon_manifest::schema::{SchemaStore, TableSchema};
use paimon_manifest::snapshot::SnapshotStore;

use crate::support::{TestTable, append, compact, env, file, golden, int, memory, partition, partitioned};

async fn table() -> TestTable {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    let (a, b, c) = (file("a", 0, 1, 5), file("b", 0, 6, 9), file("c", 0, 1, 9));
    table
        .commit(vec![append(1, 0, std::slice::from_ref(&a)), append(2, 1, &[b])])
        .await;
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

/// A file whose statistics say that `v` lies in a range; `p` and `k` are covered as well.
fn valued(name: &str, level: i32, keys: (i32, i32), values: (i32, i32)) -> Arc<DataFileMeta> {
    let row = |k: i32, v: i32| {
        let values = [Datum::Int32(1), Datum::Int32(k), Datum::Int32(v)];
        BinaryRow::from_datums(&values, &[int(), int(), int()]).unwrap()
    };
    Arc::new(DataFileMeta {
        value_stats: SimpleStats {
            min_values: row(keys.0, values.0),
            max_values: row(keys.1, values.1),
            null_counts: vec![Some(0); 3],
        },
        value_stats_cols: None,
        ..(*file(name, level, keys.0, keys.1)).clone()
    })
}

fn equals(column: &str, value: i32) -> Predicate {
    Predicate::column(column, Test::Equal(Datum::Int32(value)))
}

async fn filtered(table: &TestTable, predicate: &Predicate, values: ValueFiltering) -> Vec<String> {
    let scan = table.scan().with_predicate(predicate, values).unwrap();
    let plan = scan.plan(&table.latest().await, ScanKind::All).await.unwrap();
    let files = plan.buckets.iter().flat_map(|bucket| &bucket.files);
    let mut names: Vec<String> = files.map(|file| file.file_name.clone()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn filters_on_partitions_and_keys_are_always_used() {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    table
        .commit(vec![
            append(1, 0, &[file("a", 0, 1, 5), file("b", 0, 4, 9)]),
            append(2, 0, &[file("c", 0, 1, 9)]),
        ])
        .await;
    for values in [
        ValueFiltering::Never,
        ValueFiltering::WholeBucket,
        ValueFiltering::EachFile,
    ] {
        let planned = async |predicate: Predicate| filtered(&table, &predicate, values).await;
        assert_eq!(planned(equals("p", 1)).await, ["a", "b"], "{values:?}");
        assert_eq!(planned(equals("p", 3)).await, [""; 0]);
        assert_eq!(planned(equals("k", 2)).await, ["a", "c"]);
        assert_eq!(planned(equals("k", 5).and(equals("p", 1))).await, ["a", "b"]);
        assert_eq!(planned(equals("k", 50)).await, [""; 0]);
        let either = Predicate::Or(vec![equals("p", 2), equals("k", 1)]);
        assert_eq!(
            planned(either).await,
            ["a", "b", "c"],
            "neither partition nor key decides alone"
        );
        let nulls = Predicate::column("p", Test::IsNull);
        assert_eq!(planned(nulls).await, [""; 0]);
    }
}

#[tokio::test]
async fn a_value_filter_never_decides_about_a_row_that_may_be_merged() {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    // The newer row of key 1 does not pass `v = 100`, but it hides the older one: neither file may go without the other.
    table
        .commit(vec![append(
            1,
            0,
            &[valued("old", 0, (1, 1), (100, 100)), valued("new", 0, (1, 1), (10, 10))],
        )])
        .await;
    // Files that share no key may go one by one.
    table
        .commit(vec![compact(
            1,
            1,
            &[],
            &[valued("low", 5, (1, 5), (1, 5)), valued("high", 5, (6, 9), (6, 9))],
        )])
        .await;
    let planned = async |v: i32, values| filtered(&table, &equals("v", v), values).await;
    assert_eq!(planned(100, ValueFiltering::WholeBucket).await, ["new", "old"]);
    assert_eq!(
        planned(11, ValueFiltering::WholeBucket).await,
        [""; 0],
        "no file of any bucket has it"
    );
    assert_eq!(planned(6, ValueFiltering::WholeBucket).await, ["high"]);
    assert_eq!(planned(100, ValueFiltering::EachFile).await, ["old"]);
    assert_eq!(planned(11, ValueFiltering::Never).await, ["high", "low", "new", "old"]);
}

#[tokio::test]
async fn statistics_of_older_schemas_are_read_by_field_id() {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    table
        .commit(vec![compact(1, 0, &[], &[valued("f", 5, (1, 5), (10, 20))])])
        .await;
    // Since then `v` was renamed to `w`, a new `v` came, and `k`'s neighbour `x` was widened from nothing.
    let mut newer: TableSchema = table.schema.clone();
    newer.id = 1;
    newer.fields[2].name = "w".to_string();
    newer.fields.push(DataField::new(3, "v", int()));
    let scan = async |predicate: Predicate, schema: TableSchema| {
        table
            .storage
            .put("schema/schema-1", schema.to_json().unwrap().into())
            .await
            .unwrap();
        let scan =
            paimon_manifest::scan::FileStoreScan::new(Arc::clone(&table.storage), env(), Arc::new(schema)).unwrap();
        let scan = scan.with_predicate(&predicate, ValueFiltering::EachFile).unwrap();
        let plan = scan.plan(&table.latest().await, ScanKind::All).await.unwrap();
        plan.buckets.iter().map(|bucket| bucket.files.len()).sum::<usize>()
    };
    assert_eq!(scan(equals("w", 15), newer.clone()).await, 1);
    assert_eq!(
        scan(equals("w", 25), newer.clone()).await,
        0,
        "the renamed column has its old statistics"
    );
    assert_eq!(
        scan(equals("v", 15), newer.clone()).await,
        0,
        "the new column is null in the old file"
    );
    assert_eq!(scan(Predicate::column("v", Test::IsNull), newer.clone()).await, 1);
    newer.fields[2].data_type = DataType::nullable(TypeKind::BigInt);
    let wide = Predicate::column("w", Test::Equal(Datum::Int64(25)));
    assert_eq!(scan(wide, newer).await, 1, "statistics of another type say nothing");
}

#[tokio::test]
async fn a_predicate_that_does_not_fit_is_refused() {
    let table = TestTable::create(memory(), env(), partitioned()).await;
    let error = table
        .scan()
        .with_predicate(&equals("z", 1), ValueFiltering::Never)
        .unwrap_err();
    assert!(error.to_string().contains('z'), "{error}");
}

#[tokio::test]
async fn buckets_are_summed_up() {
    let table = table().await;
    let plan = table.scan().plan(&table.latest().await, ScanKind::All).await.unwrap();
    let entries: Vec<BucketEntry> = plan.buckets.iter().map(BucketEntry::from).collect();
    let numbers: Vec<(i32, i64, i64, usize)> = entries
        .iter()
        .map(|entry| (entry.bucket, entry.record_count, entry.file_size, entry.file_count))
        .collect();
    assert_eq!(numbers, [(1, 4, 100, 1), (0, 14, 200, 2)]);
}

#[test]
fn a_limit_takes_only_splits_whose_rows_are_known() {
    let split = |name: &str, rows: i32, raw_convertible: bool, deleted: Option<i64>| {
        let file = file(name, 5, 1, rows);
        let deletion = deleted.map(|count| paimon_manifest::scan::DeletionFile {
            index_file: Arc::new(IndexFileMeta {
                index_type: DELETION_VECTORS_INDEX.to_string(),
                file_name: "index".to_string(),
                file_size: 1,
                row_count: 1,
                dv_ranges: None,
                external_path: None,
                global_index: None,
            }),
            range: DeletionVectorRange {
                data_file_name: name.to_string(),
                offset: 1,
                length: 1,
                cardinality: (count >= 0).then_some(count),
            },
        });
        DataSplit {
            snapshot_id: 1,
            partition: partition(1),
            bucket: 0,
            total_buckets: 2,
            files: vec![file],
            deletion_files: vec![deletion],
            raw_convertible,
        }
    };
    let splits = vec![
        split("merged", 10, false, None),
        split("uncounted", 10, true, Some(-1)),
        split("vector", 10, true, Some(8)),
        split("plain", 10, true, None),
        split("more", 10, true, None),
    ];
    let limited = |limit: u64| {
        let names = limit_splits(splits.clone(), limit)
            .into_iter()
            .map(|split| split.files[0].file_name.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(limited(0), "");
    assert_eq!(limited(2), "vector");
    assert_eq!(limited(3), "vector plain");
    assert_eq!(limited(22), "vector plain more");
    assert_eq!(limited(23), "merged uncounted vector plain more");
}
