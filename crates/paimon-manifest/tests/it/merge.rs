//! Merging of manifests: the same files, fewer manifests.

use std::sync::Arc;

use futures::TryStreamExt;
use paimon_format::options::Options;
use paimon_format::storage::Storage;
use paimon_format::types::DataField;
use paimon_manifest::manifest::{
    CreatedFiles, FileKind, IndexManifestEntry, ManifestEntry, ManifestFileMeta, ManifestFiles, ManifestSettings,
    combine_index_entries, merge_entries, merge_manifests,
};
use paimon_manifest::scan::{ScanFilter, live_entries};
use proptest::prelude::*;

use crate::support::{env, file, int, memory, names, partition};

fn settings(options: &[(&str, &str)]) -> ManifestSettings {
    ManifestSettings::from_options(&options.iter().copied().collect::<Options>()).unwrap()
}

fn manifests(storage: &Arc<dyn Storage>, options: &[(&str, &str)]) -> ManifestFiles {
    ManifestFiles::new(
        Arc::clone(storage),
        env(),
        vec![DataField::new(0, "p", int())],
        settings(options),
    )
}

fn add(p: i32, name: &str) -> ManifestEntry {
    ManifestEntry::add(partition(p), 0, 2, file(name, 0, 1, 1))
}

fn delete(p: i32, name: &str) -> ManifestEntry {
    ManifestEntry::delete(partition(p), 0, 2, file(name, 0, 1, 1))
}

async fn write(files: &ManifestFiles, manifests: &[&[ManifestEntry]]) -> Vec<ManifestFileMeta> {
    let mut metas = Vec::new();
    for entries in manifests {
        metas.extend(
            files
                .write_manifests(entries, &mut CreatedFiles::default())
                .await
                .unwrap(),
        );
    }
    metas
}

async fn live(files: &ManifestFiles, metas: &[ManifestFileMeta]) -> Vec<String> {
    let entries = live_entries(files, metas, &ScanFilter::all()).await.unwrap();
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file.file_name.clone()).collect();
    names.sort();
    names
}

fn shown(metas: &[ManifestFileMeta]) -> Vec<String> {
    metas
        .iter()
        .map(|meta| {
            let number = meta.file_name.rsplit('-').next().unwrap();
            format!("{number}: +{} -{}", meta.num_added_files, meta.num_deleted_files)
        })
        .collect()
}

#[test]
fn entries_meet_in_order() {
    let shown = |entries: &[ManifestEntry]| match merge_entries(entries) {
        Ok(merged) => merged
            .iter()
            .map(|entry| match entry.kind {
                FileKind::Add => format!("+{}", entry.file.file_name),
                FileKind::Delete => format!("-{}", entry.file.file_name),
            })
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown(&[add(1, "a"), add(1, "b"), delete(1, "a")]), "+b");
    assert_eq!(shown(&[delete(1, "a"), add(1, "b")]), "-a +b");
    assert_eq!(
        shown(&[add(1, "a"), delete(2, "a")]),
        "+a -a",
        "another partition is another file"
    );
    let mut moved = delete(1, "a");
    moved.file = Arc::new(moved.file.upgrade(2));
    assert_eq!(shown(&[add(1, "a"), moved]), "+a -a", "another level is another file");
    insta::assert_snapshot!(shown(&[add(1, "a"), add(1, "a")]), @"commit conflict: file a of bucket 0 is added although it is there already");
}

#[tokio::test]
async fn few_small_manifests_are_left_alone() {
    let storage = memory();
    let files = manifests(&storage, &[("manifest.merge-min-count", "3")]);
    let metas = write(&files, &[&[add(1, "a")], &[add(1, "b")]]).await;
    let mut created = CreatedFiles::default();
    let merged = merge_manifests(&files, metas.clone(), &mut created).await.unwrap();
    assert_eq!(merged, metas);
    assert_eq!(created, CreatedFiles::default());
}

#[tokio::test]
async fn many_small_manifests_become_one_and_removals_meet_additions() {
    let storage = memory();
    let files = manifests(&storage, &[("manifest.merge-min-count", "3")]);
    let metas = write(
        &files,
        &[
            &[add(1, "a"), add(1, "b")],
            &[delete(1, "a")],
            &[add(1, "c"), delete(1, "z")],
        ],
    )
    .await;
    let mut created = CreatedFiles::default();
    let merged = merge_manifests(&files, metas, &mut created).await.unwrap();
    assert_eq!(shown(&merged), ["3: +2 -1"], "the removal of z waits for its addition");
    assert_eq!(names(&*storage, "manifest").await.len(), 4);
    files.discard(created).await;
    assert_eq!(names(&*storage, "manifest").await.len(), 3, "discarded");
}

#[tokio::test]
async fn manifests_that_reach_the_target_size_are_merged_at_once() {
    let storage = memory();
    // Every manifest is larger than one byte: each is its own group of candidates.
    let files = manifests(
        &storage,
        &[("manifest.target-file-size", "1 b"), ("manifest.merge-min-count", "2")],
    );
    let metas = write(&files, &[&[add(1, "a")], &[add(1, "b")]]).await;
    let merged = merge_manifests(&files, metas.clone(), &mut CreatedFiles::default())
        .await
        .unwrap();
    assert_eq!(merged, metas);
}

#[tokio::test]
async fn a_full_compaction_takes_all_removals_out_and_leaves_other_partitions_alone() {
    let storage = memory();
    let files = manifests(
        &storage,
        &[
            ("manifest.target-file-size", "1 b"),
            ("manifest.full-compaction-threshold-size", "1 b"),
        ],
    );
    let metas = write(
        &files,
        &[
            &[add(1, "a"), add(1, "b")],
            &[add(9, "far")],
            &[add(1, "untouched")],
            &[add(1, "c"), delete(1, "a")],
            &[delete(1, "c")],
        ],
    )
    .await;
    let before = live(&files, &metas).await;
    let merged = merge_manifests(&files, metas, &mut CreatedFiles::default())
        .await
        .unwrap();
    assert_eq!(live(&files, &merged).await, before);
    assert_eq!(shown(&merged), ["1: +1 -0", "2: +1 -0", "5: +1 -0"]);
}

#[tokio::test]
async fn large_manifests_are_rolled() {
    let storage = memory();
    let files = manifests(
        &storage,
        &[("manifest.target-file-size", "40 kb"), ("manifest.compression", "null")],
    );
    let entries: Vec<ManifestEntry> = (0..3500).map(|i| add(i % 7, &format!("file-{i}"))).collect();
    let metas = files
        .write_manifests(&entries, &mut CreatedFiles::default())
        .await
        .unwrap();
    assert_eq!(
        shown(&metas),
        ["0: +1000 -0", "1: +1000 -0", "2: +1000 -0", "3: +500 -0"]
    );
    let read: Vec<ManifestEntry> = files.read_manifests(metas.clone()).try_concat().await.unwrap();
    assert_eq!(read, entries);
    for meta in &metas {
        let size = storage.size(&format!("manifest/{}", meta.file_name)).await.unwrap();
        assert_eq!(size, Some(meta.file_size as u64));
    }
}

#[test]
fn options_that_manifests_cannot_have_are_refused() {
    let refused = |key: &str, value: &str| {
        let options: Options = [(key, value)].into_iter().collect();
        ManifestSettings::from_options(&options).unwrap_err().to_string()
    };
    let errors = [
        refused("manifest.format", "parquet"),
        refused("manifest.format", "orc"),
        refused("manifest.compression", "lz4"),
        refused("avro.codec", "bzip2"),
        refused("file.compression.zstd-level", "99"),
        refused("manifest.merge-min-count", "0"),
        refused("manifest.target-file-size", "big"),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

fn index(bucket: i32, index_type: &str, name: &str, kind: FileKind) -> IndexManifestEntry {
    IndexManifestEntry {
        kind,
        partition: partition(1),
        bucket,
        file: paimon_format::meta::IndexFileMeta {
            index_type: index_type.to_string(),
            file_name: name.to_string(),
            file_size: 4,
            row_count: 1,
            dv_ranges: None,
            external_path: None,
            global_index: None,
        },
    }
}

#[test]
fn an_index_manifest_is_a_state() {
    use FileKind::{Add, Delete};
    let names = |entries: Vec<IndexManifestEntry>| {
        let names: Vec<String> = entries.into_iter().map(|entry| entry.file.file_name).collect();
        names.join(" ")
    };
    let before = vec![
        index(0, "HASH", "h0", Add),
        index(1, "HASH", "h1", Add),
        index(0, "DELETION_VECTORS", "d0", Add),
        index(0, "pk-btree", "b0", Add),
        index(0, "pk-btree", "b1", Add),
    ];
    assert_eq!(names(combine_index_entries(before.clone(), &[])), "h0 h1 d0 b0 b1");
    let changes = [
        index(0, "HASH", "h0-new", Add),
        index(0, "DELETION_VECTORS", "d0", Delete),
        index(0, "pk-btree", "b0", Delete),
        index(0, "pk-btree", "b2", Add),
    ];
    assert_eq!(
        names(combine_index_entries(before.clone(), &changes)),
        "h0-new h1 b1 b2"
    );
    // The order of the changes does not matter: removals go first.
    let replaced = [
        index(0, "DELETION_VECTORS", "d1", Add),
        index(0, "DELETION_VECTORS", "d0", Delete),
    ];
    assert_eq!(names(combine_index_entries(before, &replaced)), "h0 h1 b0 b1 d1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is merged, the files that live stay the same.
    #[test]
    fn merging_never_changes_what_lives(
        batches in prop::collection::vec(prop::collection::vec((0..4_i32, any::<bool>()), 1..6), 1..12),
        target in 1..4000_u32, min_count in 1..6_i32, full in 1..8000_u32,
    ) {
        let target = format!("{target} b");
        let full = format!("{full} b");
        let min_count = min_count.to_string();
        let options = [
            ("manifest.target-file-size", target.as_str()),
            ("manifest.merge-min-count", min_count.as_str()),
            ("manifest.full-compaction-threshold-size", full.as_str()),
        ];
        futures::executor::block_on(async move {
            let storage = memory();
            let files = manifests(&storage, &options);
            let (mut metas, mut alive, mut count) = (Vec::new(), Vec::<(i32, String)>::new(), 0);
            for batch in batches {
                let mut entries = Vec::new();
                for (p, remove) in batch {
                    match (remove, alive.is_empty()) {
                        (true, false) => {
                            let (p, name) = alive.remove(count % alive.len());
                            // A file comes and goes in different commits.
                            if entries.iter().all(|entry: &ManifestEntry| entry.file.file_name != name) {
                                entries.push(delete(p, &name));
                            } else {
                                alive.push((p, name));
                            }
                        }
                        _ => {
                            count += 1;
                            let name = format!("f{count}");
                            entries.push(add(p, &name));
                            alive.push((p, name));
                        }
                    }
                }
                metas = merge_manifests(&files, metas, &mut CreatedFiles::default()).await.unwrap();
                metas.extend(files.write_manifests(&entries, &mut CreatedFiles::default()).await.unwrap());
                let mut expected: Vec<String> = alive.iter().map(|(_, name)| name.clone()).collect();
                expected.sort();
                assert_eq!(live(&files, &metas).await, expected);
            }
        });
    }
}
