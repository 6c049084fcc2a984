//! Tables that Java wrote: everything is read, and written again the same.

use std::sync::Arc;

use paimon_manifest::manifest::{CreatedFiles, ManifestFiles, ManifestSettings};
use paimon_manifest::scan::{FileStoreScan, ScanKind};
use paimon_manifest::schema::{SchemaStore, TableSchema};
use paimon_manifest::snapshot::{Snapshot, SnapshotStore};
use serde_json::Value as Json;

use crate::support::{env, golden, golden_path, golden_scenarios, memory};

#[tokio::test]
async fn schemas_and_snapshots_are_written_as_java_does() {
    for scenario in golden_scenarios() {
        let storage = golden(&scenario);
        let schemas = SchemaStore::new(Arc::clone(&storage));
        for id in schemas.list_ids().await.unwrap() {
            let text = std::fs::read_to_string(golden_path(&scenario).join(TableSchema::path(id))).unwrap();
            let ours = schemas.get(id).await.unwrap().to_json().unwrap();
            // Java's options have the order of a hash map: the lines are the same, not their order.
            let lines = |text: &str| {
                let mut lines: Vec<String> = text
                    .lines()
                    .map(|line| line.trim_end_matches(',').to_string())
                    .collect();
                lines.sort();
                lines
            };
            assert_eq!(lines(&ours), lines(&text), "{scenario} schema {id}");
        }
        let snapshots = SnapshotStore::new(Arc::clone(&storage), env());
        for id in snapshots.list_ids().await.unwrap() {
            let text = std::fs::read_to_string(golden_path(&scenario).join(Snapshot::path(id))).unwrap();
            assert_eq!(
                snapshots.get(id).await.unwrap().to_json().unwrap(),
                text,
                "{scenario} snapshot {id}"
            );
        }
    }
}

#[tokio::test]
async fn manifests_read_back_as_they_were() {
    for scenario in golden_scenarios() {
        let storage = golden(&scenario);
        let schema = SchemaStore::new(Arc::clone(&storage)).latest().await.unwrap().unwrap();
        let java = manifests(Arc::clone(&storage), &schema);
        let ours = manifests(memory(), &schema);
        let mut created = CreatedFiles::default();
        let snapshots = SnapshotStore::new(storage, env());
        for id in snapshots.list_ids().await.unwrap() {
            let snapshot = snapshots.get(id).await.unwrap();
            for (name, size) in lists(&snapshot) {
                let list = java.read_list(name, size).await.unwrap();
                let written = ours.write_list(&list, &mut created).await.unwrap();
                assert_eq!(
                    ours.read_list(&written.name, Some(written.size)).await.unwrap(),
                    list,
                    "{scenario} {name}"
                );
                for manifest in &list {
                    let entries = java.read_manifest(manifest).await.unwrap();
                    let again = ours.write_manifests(&entries, &mut created).await.unwrap();
                    let [again] = again.as_slice() else {
                        panic!("{scenario}: {again:?}")
                    };
                    assert_eq!(
                        ours.read_manifest(again).await.unwrap(),
                        entries,
                        "{scenario} {}",
                        manifest.file_name
                    );
                    // All that Java notes about a manifest is noted alike.
                    let mut same = again.clone();
                    same.file_name.clone_from(&manifest.file_name);
                    same.file_size = manifest.file_size;
                    assert_eq!(&same, manifest, "{scenario}");
                }
            }
            if let Some(name) = &snapshot.index_manifest {
                let entries = java.read_index(name).await.unwrap();
                let again = ours.write_index(&entries, &mut created).await.unwrap();
                assert_eq!(ours.read_index(&again).await.unwrap(), entries, "{scenario} {name}");
            }
        }
    }
}

#[tokio::test]
async fn avro_headers_are_those_of_java() {
    for (scenario, list) in [
        ("dynamic_bucket", "index-manifest"),
        ("dedup_basic", "manifest-list"),
        ("dedup_basic", "manifest"),
    ] {
        let storage = golden(scenario);
        let schema = SchemaStore::new(Arc::clone(&storage)).latest().await.unwrap().unwrap();
        let java = manifests(Arc::clone(&storage), &schema);
        let snapshot = SnapshotStore::new(storage, env()).latest().await.unwrap().unwrap();
        let target = memory();
        let ours = manifests(Arc::clone(&target), &schema);
        let mut created = CreatedFiles::default();
        let manifest_list = java
            .read_list(&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size)
            .await
            .unwrap();
        let (java_name, our_name) = match list {
            "index-manifest" => {
                let name = snapshot.index_manifest.clone().unwrap();
                let entries = java.read_index(&name).await.unwrap();
                (name, ours.write_index(&entries, &mut created).await.unwrap())
            }
            "manifest-list" => (
                snapshot.delta_manifest_list.clone(),
                ours.write_list(&manifest_list, &mut created).await.unwrap().name,
            ),
            _ => {
                let entries = java.read_manifest(&manifest_list[0]).await.unwrap();
                let written = ours.write_manifests(&entries, &mut created).await.unwrap();
                (manifest_list[0].file_name.clone(), written[0].file_name.clone())
            }
        };
        let java_file = std::fs::read(golden_path(scenario).join("manifest").join(java_name)).unwrap();
        let our_file = target.read_all(&format!("manifest/{our_name}")).await.unwrap();
        let (java_header, our_header) = (header(&java_file), header(&our_file));
        // The tables are of Java 1.4.2; `_SOURCE_META` came with 2.0.
        let our_schema = our_header
            .0
            .replace(r#",{"name":"_SOURCE_META","type":["null","bytes"],"default":null}"#, "");
        assert_eq!(our_schema, java_header.0, "{list}");
        assert_eq!(our_header.1, java_header.1, "{list}");
    }
}

#[tokio::test]
async fn the_files_of_every_snapshot_are_those_that_java_lists() {
    for scenario in golden_scenarios() {
        let storage = golden(&scenario);
        let schema = SchemaStore::new(Arc::clone(&storage)).latest().await.unwrap().unwrap();
        let scan = FileStoreScan::new(Arc::clone(&storage), env(), schema).unwrap();
        let snapshots = SnapshotStore::new(storage, env());
        let expected = golden_path(&scenario).join("../../../expected.json");
        let expected: Json = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let mut compared = 0;
        for java in expected["steps"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|step| step["snapshots"].as_array().into_iter().flatten())
        {
            let id = java["id"].as_i64().unwrap();
            let Some(snapshot) = snapshots.find(id).await.unwrap() else {
                continue;
            };
            assert_eq!(
                snapshot.commit_kind.to_string(),
                java["commitKind"],
                "{scenario} snapshot {id}"
            );
            let plan = scan.plan(&snapshot, ScanKind::All).await.unwrap();
            let mut ours: Vec<(i64, i64, i64, i64)> = plan
                .buckets
                .iter()
                .flat_map(|bucket| bucket.files.iter().map(|file| (bucket.bucket, file)))
                .map(|(bucket, file)| (i64::from(bucket), i64::from(file.level), file.row_count, file.file_size))
                .collect();
            let mut theirs: Vec<(i64, i64, i64, i64)> = java["buckets"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|bucket| {
                    bucket["files"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(move |file| (&bucket["bucket"], file))
                })
                .map(|(bucket, file)| {
                    let number = |value: &Json| value.as_i64().unwrap();
                    (
                        number(bucket),
                        number(&file["level"]),
                        number(&file["rowCount"]),
                        number(&file["fileSize"]),
                    )
                })
                .collect();
            ours.sort_unstable();
            theirs.sort_unstable();
            assert_eq!(ours, theirs, "{scenario} snapshot {id}");
            compared += 1;
        }
        assert!(compared > 0, "{scenario}");
    }
}

fn manifests(storage: Arc<dyn paimon_format::storage::Storage>, schema: &TableSchema) -> ManifestFiles {
    ManifestFiles::new(storage, env(), schema.partition_fields(), ManifestSettings::default())
}

fn lists(snapshot: &Snapshot) -> Vec<(&str, Option<i64>)> {
    let mut lists = vec![
        (snapshot.base_manifest_list.as_str(), snapshot.base_manifest_list_size),
        (snapshot.delta_manifest_list.as_str(), snapshot.delta_manifest_list_size),
    ];
    if let Some(changelog) = &snapshot.changelog_manifest_list {
        lists.push((changelog, snapshot.changelog_manifest_list_size));
    }
    lists
}

/// Schema and codec of an Avro file, by an independent reader.
fn header(file: &[u8]) -> (String, String) {
    let mut metadata = std::collections::BTreeMap::new();
    let mut rest = &file[4..];
    let long = |rest: &mut &[u8]| {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = rest[0];
            *rest = &rest[1..];
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return ((value >> 1) as i64) ^ -((value & 1) as i64);
            }
        }
    };
    let count = long(&mut rest);
    for _ in 0..count {
        let mut part = || {
            let length = long(&mut rest) as usize;
            let (part, after) = rest.split_at(length);
            rest = after;
            String::from_utf8(part.to_vec()).unwrap()
        };
        let key = part();
        metadata.insert(key, part());
    }
    assert_eq!(metadata.len(), 2, "{metadata:?}");
    (metadata["avro.schema"].clone(), metadata["avro.codec"].clone())
}
