//! Hints, time travel, tags.

use std::sync::Arc;

use bytes::Bytes;
use paimon_format::storage::Storage;
use paimon_manifest::snapshot::{Snapshot, SnapshotStore, Tag, TimeTravel};
use paimon_manifest::testing::snapshot;

use crate::support::{env, golden, memory};

async fn with_snapshots(ids: impl IntoIterator<Item = i64>) -> (Arc<dyn Storage>, SnapshotStore) {
    let storage = memory();
    for id in ids {
        put(
            &*storage,
            &Snapshot::path(id),
            &snapshot(id, "user", id).to_json().unwrap(),
        )
        .await;
    }
    let snapshots = SnapshotStore::new(Arc::clone(&storage), env());
    (storage, snapshots)
}

async fn put(storage: &dyn Storage, path: &str, text: &str) {
    storage.put(path, Bytes::from(text.to_string())).await.unwrap();
}

#[tokio::test]
async fn the_latest_is_found_whatever_the_hint_says() {
    let (storage, snapshots) = with_snapshots(3..=7).await;
    assert_eq!(snapshots.latest_id().await.unwrap(), Some(7), "no hint");
    for hint in ["7", "5", "2", "9", "", "-1", "garbage", "99999999999999999999"] {
        put(&*storage, "snapshot/LATEST", hint).await;
        assert_eq!(snapshots.latest_id().await.unwrap(), Some(7), "hint {hint:?}");
        assert_eq!(snapshots.latest().await.unwrap().unwrap().id, 7, "hint {hint:?}");
    }
    for hint in ["3", "2", "9", "", "garbage"] {
        put(&*storage, "snapshot/EARLIEST", hint).await;
        assert_eq!(snapshots.earliest_id().await.unwrap(), Some(3), "hint {hint:?}");
    }
    put(&*storage, "snapshot/.snapshot-8.tmp", "").await;
    put(&*storage, "snapshot/snapshot-x", "").await;
    put(&*storage, "snapshot/LATEST", "").await;
    assert_eq!(snapshots.list_ids().await.unwrap(), [3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn no_snapshot_is_no_error() {
    let (storage, snapshots) = with_snapshots([]).await;
    assert_eq!(snapshots.latest().await.unwrap(), None);
    put(&*storage, "snapshot/LATEST", "4").await;
    assert_eq!(snapshots.latest_id().await.unwrap(), None);
    assert_eq!(snapshots.earliest().await.unwrap(), None);
    assert_eq!(snapshots.travel(&TimeTravel::Latest).await.unwrap(), None);
}

#[tokio::test]
async fn time_travel_finds_by_id_tag_time_and_version() {
    let (storage, snapshots) = with_snapshots(3..=9).await;
    put(&*storage, &Tag::path("old"), &snapshot(1, "user", 1).to_json().unwrap()).await;
    put(&*storage, &Tag::path("8"), &snapshot(4, "user", 4).to_json().unwrap()).await;
    let id = async |travel: TimeTravel| match snapshots.travel(&travel).await {
        Ok(found) => found.unwrap().id.to_string(),
        Err(error) => error.to_string(),
    };
    let start = 1_700_000_000_000;
    assert_eq!(id(TimeTravel::Latest).await, "9");
    assert_eq!(id(TimeTravel::SnapshotId(5)).await, "5");
    assert_eq!(id(TimeTravel::Tag("old".into())).await, "1");
    assert_eq!(id(TimeTravel::Version("old".into())).await, "1");
    assert_eq!(id(TimeTravel::Version("7".into())).await, "7");
    assert_eq!(
        id(TimeTravel::Version("8".into())).await,
        "4",
        "a tag goes before an id"
    );
    for time in 3..=9 {
        assert_eq!(id(TimeTravel::TimestampMillis(start + time)).await, time.to_string());
    }
    assert_eq!(id(TimeTravel::TimestampMillis(i64::MAX)).await, "9");
    let errors = [
        id(TimeTravel::SnapshotId(2)).await,
        id(TimeTravel::SnapshotId(-1)).await,
        id(TimeTravel::Tag("new".into())).await,
        id(TimeTravel::Tag("a/b".into())).await,
        id(TimeTravel::Version("new".into())).await,
        id(TimeTravel::TimestampMillis(start + 2)).await,
    ];
    insta::assert_snapshot!(errors.join("\n"));
    assert_eq!(snapshots.tag_names().await.unwrap(), ["8", "old"]);
}

#[tokio::test]
async fn fields_of_newer_versions_and_of_tags_are_read() {
    let json = r#"{"version":3,"uuid":"u","id":1,"schemaId":0,"baseManifestList":"b","deltaManifestList":"d",
        "commitUser":"x","commitIdentifier":9223372036854775807,"commitKind":"OVERWRITE","logOffsets":{"0":1},"someday":[1,{}],
        "timeMillis":5,"watermark":-9,"statistics":"stat-1","properties":{"k":"v"},"nextRowId":12,"operation":"TRUNCATE",
        "tagCreateTime":[2024,1,2,3,4,5,6000000],"tagTimeRetained":90000.000000000}"#;
    let tag = Tag::from_json("tag/tag-t", json.as_bytes()).unwrap();
    assert_eq!(
        tag.tag_create_time.as_deref(),
        Some(&[2024, 1, 2, 3, 4, 5, 6_000_000][..])
    );
    assert_eq!(tag.tag_time_retained, Some(90_000.0));
    insta::assert_snapshot!(tag.snapshot.to_json().unwrap());
}

#[tokio::test]
async fn a_users_newest_snapshot_is_found_below_others() {
    let storage = memory();
    for id in 2..=300 {
        let user = if id == 5 || id == 2 { "u1" } else { "other" };
        put(
            &*storage,
            &Snapshot::path(id),
            &snapshot(id, user, id).to_json().unwrap(),
        )
        .await;
    }
    let snapshots = SnapshotStore::new(storage, env());
    assert_eq!(snapshots.latest_of_user("u1").await.unwrap().unwrap().id, 5);
    assert_eq!(snapshots.latest_of_user("u2").await.unwrap(), None);
}

#[tokio::test]
async fn java_tables_have_a_latest_and_an_earliest() {
    let snapshots = SnapshotStore::new(golden("expire_snapshots"), env());
    let ids = snapshots.list_ids().await.unwrap();
    assert_eq!(snapshots.latest_id().await.unwrap(), ids.last().copied());
    assert_eq!(snapshots.earliest_id().await.unwrap(), ids.first().copied());
    assert!(ids[0] > 1, "the first ones have expired: {ids:?}");
}
