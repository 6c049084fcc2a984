//! Damaged metadata: each a clear error that names the file, and nothing else happens.

use std::sync::Arc;

use bytes::Bytes;
use paimon_format::ErrorKind;
use paimon_format::storage::Storage;
use paimon_manifest::scan::{FileStoreScan, ScanKind};
use paimon_manifest::schema::SchemaStore;
use paimon_manifest::snapshot::{Snapshot, SnapshotStore};

use crate::support::{env, golden, memory, names};

/// A copy of a Java table's metadata in memory, to be damaged.
async fn copy(scenario: &str) -> Arc<dyn Storage> {
    let (from, to) = (golden(scenario), memory());
    for dir in ["schema", "snapshot", "manifest"] {
        for path in names(&*from, dir).await {
            to.put(&path, from.read_all(&path).await.unwrap()).await.unwrap();
        }
    }
    to
}

async fn put(storage: &dyn Storage, path: &str, bytes: impl Into<Bytes>) {
    storage.put(path, bytes.into()).await.unwrap();
}

/// Reads all the metadata of the latest snapshot.
async fn read(storage: &Arc<dyn Storage>) -> Result<usize, (ErrorKind, String)> {
    let told = |error: paimon_manifest::ManifestError| (error.kind(), error.to_string());
    let schema = SchemaStore::new(Arc::clone(storage))
        .latest()
        .await
        .map_err(told)?
        .unwrap();
    let snapshots = SnapshotStore::new(Arc::clone(storage), env());
    let snapshot = snapshots.latest().await.map_err(told)?.unwrap();
    let scan = FileStoreScan::new(Arc::clone(storage), env(), schema).map_err(told)?;
    Ok(scan.plan(&snapshot, ScanKind::All).await.map_err(told)?.buckets.len())
}

async fn refused(storage: &Arc<dyn Storage>) -> String {
    let before = names(&**storage, "manifest").await;
    let (kind, message) = read(storage).await.expect_err("damaged metadata was read");
    assert_eq!(names(&**storage, "manifest").await, before);
    format!("{kind}: {message}")
}

#[tokio::test]
async fn damaged_schemas() {
    let mut errors = Vec::new();
    for (from, to) in [
        ("", ""),
        (r#""INT NOT NULL""#, r#""INTERVAL""#),
        (r#""name" : "id""#, r#""name" : "t""#),
        (r#""primaryKeys" : [ "id" ]"#, r#""primaryKeys" : [ "gone" ]"#),
        (r#""id" : 0,"#, r#""id" : 1,"#),
        (r#""version" : 3"#, r#""version" : 4"#),
        (r#""fields""#, r#""felder""#),
    ] {
        let storage = copy("types_values_parquet").await;
        let text = storage.read_all("schema/schema-0").await.unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        let damaged = match from {
            "" => text[..text.len() / 2].to_string(),
            _ => text.replacen(from, to, 1),
        };
        assert_ne!(damaged, text, "{from}");
        put(&*storage, "schema/schema-0", damaged).await;
        errors.push(refused(&storage).await);
    }
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn damaged_snapshots() {
    let mut errors = Vec::new();
    for (from, to) in [
        ("", ""),
        (r#""commitKind" : ""#, r#""commitKind" : "UN""#),
        (r#""id" : "#, r#""no" : "#),
        (
            r#""deltaManifestList" : "manifest-list-"#,
            r#""deltaManifestList" : "gone-"#,
        ),
        (r#""deltaManifestListSize" : 1"#, r#""deltaManifestListSize" : 2"#),
    ] {
        let storage = copy("dedup_basic").await;
        let snapshots = SnapshotStore::new(Arc::clone(&storage), env());
        let path = Snapshot::path(snapshots.latest_id().await.unwrap().unwrap());
        let text = storage.read_all(&path).await.unwrap();
        let text = std::str::from_utf8(&text).unwrap();
        let damaged = match from {
            "" => text[..text.len() / 2].to_string(),
            _ => text.replacen(from, to, 1),
        };
        assert_ne!(damaged, text, "{from} in {text}");
        put(&*storage, &path, damaged).await;
        errors.push(refused(&storage).await);
    }
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn damaged_manifests() {
    let mut errors = Vec::new();
    for damage in ["missing", "empty", "cut", "garbage", "flipped"] {
        for kind in ["manifest/manifest-list-", "manifest/manifest-"] {
            let storage = copy("dedup_basic").await;
            let latest = SnapshotStore::new(Arc::clone(&storage), env())
                .latest()
                .await
                .unwrap()
                .unwrap();
            let list = format!("manifest/{}", latest.delta_manifest_list);
            let path = match kind {
                "manifest/manifest-list-" => list,
                _ => {
                    let mut paths = names(&*storage, "manifest").await;
                    paths.retain(|path| !path.starts_with("manifest/manifest-list-"));
                    // All of them: which one the latest snapshot reads is not the point.
                    for path in &paths[1..] {
                        let bytes = storage.read_all(path).await.unwrap();
                        damaged(&*storage, path, damage, bytes).await;
                    }
                    paths[0].clone()
                }
            };
            let bytes = storage.read_all(&path).await.unwrap();
            damaged(&*storage, &path, damage, bytes).await;
            errors.push(format!("{damage} {}", refused(&storage).await));
        }
    }
    insta::assert_snapshot!(errors.join("\n"));
}

async fn damaged(storage: &dyn Storage, path: &str, damage: &str, bytes: Bytes) {
    match damage {
        "missing" => storage.delete(path).await.unwrap(),
        "empty" => put(storage, path, Bytes::new()).await,
        "cut" => put(storage, path, bytes.slice(..bytes.len() / 2)).await,
        "garbage" => put(storage, path, vec![b'x'; bytes.len()]).await,
        _ => {
            let mut bytes = bytes.to_vec();
            let at = bytes.len() - 20;
            bytes[at] ^= 0xff;
            put(storage, path, bytes).await;
        }
    }
}
