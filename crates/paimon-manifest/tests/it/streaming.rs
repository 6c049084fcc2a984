//! Where streaming readers start, how far consumers have come, and what is left of expired snapshots.

use std::sync::Arc;

use bytes::Bytes;
use paimon_format::ErrorKind;
use paimon_format::env::TickingClock;
use paimon_format::options::Options;
use paimon_format::storage::{MemoryStorage, Storage};
use paimon_manifest::scan::{FollowUp, LevelRange, ScanKind, Starting, StreamStart};
use paimon_manifest::snapshot::{CommitKind, Consumer, ConsumerStore, Snapshot, SnapshotStore, TimeTravel};
use paimon_manifest::testing;

use crate::support::{env, memory, names};

/// Committed 1,000 ms after the one before.
fn snapshot(id: i64, kind: CommitKind, identifier: i64) -> Snapshot {
    Snapshot {
        commit_kind: kind,
        time_millis: id * 1000,
        ..testing::snapshot(id, "user", identifier)
    }
}

async fn put(storage: &dyn Storage, path: String, snapshot: &Snapshot) {
    let json = snapshot.to_json().unwrap();
    storage.put(&path, Bytes::from(json)).await.unwrap();
}

/// Snapshots 3 to 7, of which 4 and 6 are compactions, and long-lived changelogs 1 and 2.
async fn table() -> (Arc<dyn Storage>, SnapshotStore) {
    let storage = memory();
    for id in 1..=7 {
        let kind = match id {
            4 | 6 => CommitKind::Compact,
            _ => CommitKind::Append,
        };
        let path = match id {
            1 | 2 => format!("changelog/changelog-{id}"),
            _ => Snapshot::path(id),
        };
        put(&*storage, path, &snapshot(id, kind, id - 2)).await;
    }
    let store = SnapshotStore::new(Arc::clone(&storage), env());
    (storage, store)
}

/// `full 3`, `follow 3`, `wait`.
fn text(starting: Option<Starting>) -> String {
    match starting {
        None => "wait".to_owned(),
        Some(Starting::Full(snapshot)) => format!("full {}", snapshot.id),
        Some(Starting::Follow(id)) => format!("follow {id}"),
    }
}

#[tokio::test]
async fn each_mode_starts_where_it_should() {
    let (_storage, store) = table().await;
    for (start, changelogs, expected) in [
        (StreamStart::LatestFull, false, "full 7"),
        (StreamStart::Latest, false, "follow 8"),
        (StreamStart::CompactedFull(None), false, "full 6"),
        // Commit identifiers of the compactions: 2 and 4.
        (StreamStart::CompactedFull(Some(4)), false, "full 6"),
        (StreamStart::CompactedFull(Some(3)), false, "full 7"),
        (StreamStart::FromSnapshot(5), false, "follow 5"),
        (StreamStart::FromSnapshot(1), false, "follow 3"),
        (StreamStart::FromSnapshot(1), true, "follow 1"),
        (StreamStart::earliest(), true, "follow 1"),
        (StreamStart::FromSnapshot(9), false, "follow 9"),
        (StreamStart::FromSnapshotFull(5), true, "full 5"),
        (StreamStart::FromSnapshotFull(1), true, "full 3"),
        (StreamStart::FromTimestamp(5000), false, "follow 5"),
        (StreamStart::FromTimestamp(5001), false, "follow 6"),
        (StreamStart::FromTimestamp(0), false, "follow 3"),
        (StreamStart::FromTimestamp(0), true, "follow 1"),
        (StreamStart::FromTimestamp(1500), true, "follow 2"),
        (StreamStart::FromTimestamp(7001), true, "follow 8"),
    ] {
        let found = text(store.start(&start, changelogs).await.unwrap());
        assert_eq!(found, expected, "{start}, changelogs: {changelogs}");
    }
    let error = store.start(&StreamStart::FromSnapshotFull(9), false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn an_empty_table_is_waited_for() {
    let store = SnapshotStore::new(memory(), env());
    for start in [
        StreamStart::LatestFull,
        StreamStart::CompactedFull(None),
        StreamStart::FromSnapshot(5),
        StreamStart::FromSnapshotFull(5),
        StreamStart::FromTimestamp(5),
    ] {
        assert_eq!(text(store.start(&start, true).await.unwrap()), "wait", "{start}");
    }
    // Everything is to come after "now".
    assert_eq!(text(store.start(&StreamStart::Latest, true).await.unwrap()), "follow 1");
}

#[tokio::test]
async fn without_compaction_the_latest_snapshot_is_the_compacted_one() {
    let storage = memory();
    for id in 1..=2 {
        put(&*storage, Snapshot::path(id), &snapshot(id, CommitKind::Append, id)).await;
    }
    let store = SnapshotStore::new(storage, env());
    let compacted = TimeTravel::Compacted(None);
    assert_eq!(store.travel(&compacted).await.unwrap().unwrap().id, 2);
    assert_eq!(
        SnapshotStore::new(memory(), env()).travel(&compacted).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn a_long_lived_changelog_stands_for_its_snapshot() {
    let (storage, store) = table().await;
    assert_eq!(store.find_readable(2, true).await.unwrap().unwrap().id, 2);
    assert_eq!(store.find_readable(2, false).await.unwrap(), None);
    assert_eq!(store.find_readable(3, true).await.unwrap().unwrap().id, 3);
    // A hint that is wrong is noticed; one that is right saves the listing.
    for hint in ["9", "2"] {
        storage.put("changelog/EARLIEST", Bytes::from(hint)).await.unwrap();
        let expected = if hint == "9" { 1 } else { 2 };
        assert_eq!(store.earliest_changelog_id().await.unwrap(), Some(expected));
    }
    storage.put("changelog/changelog-1", Bytes::from("{")).await.unwrap();
    let error = store.find_changelog(1).await.unwrap_err();
    assert!(
        error.to_string().starts_with("changelog/changelog-1: corrupt"),
        "{error}"
    );
}

#[test]
fn the_producer_says_what_is_read() {
    let of =
        |producer: &str| FollowUp::from_options(&[("changelog-producer", producer)].into_iter().collect::<Options>());
    let append = snapshot(1, CommitKind::Append, 1);
    let compact = Snapshot {
        changelog_manifest_list: Some("list".to_owned()),
        ..snapshot(2, CommitKind::Compact, 1)
    };
    let overwrite = snapshot(3, CommitKind::Overwrite, 1);
    for (producer, kind, reads, levels) in [
        ("none", ScanKind::Delta, [true, false, false], LevelRange::all()),
        ("input", ScanKind::Changelog, [false, true, false], LevelRange::all()),
        (
            "LOOKUP",
            ScanKind::Changelog,
            [false, true, false],
            LevelRange::above_zero(),
        ),
        (
            "full-compaction",
            ScanKind::Changelog,
            [false, true, false],
            LevelRange::exactly(5),
        ),
    ] {
        let follow_up = of(producer).unwrap();
        assert_eq!(follow_up.scan_kind(), kind, "{producer}");
        assert_eq!(
            [&append, &compact, &overwrite].map(|snapshot| follow_up.reads(snapshot)),
            reads,
            "{producer}"
        );
        assert_eq!(follow_up.first_levels(5), levels, "{producer}");
    }
    assert_eq!(
        of("all").unwrap_err().to_string(),
        "option 'changelog-producer' = 'all': expected one of none, input, full-compaction, lookup"
    );
}

#[tokio::test]
async fn consumers_note_their_progress_as_java_does() {
    let clock = TickingClock::new(0, 0);
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(Arc::new(clock.clone())));
    let consumers = ConsumerStore::new(SnapshotStore::new(Arc::clone(&storage), env()));
    assert_eq!(consumers.min_next_snapshot().await.unwrap(), None);
    consumers.put("slow", Consumer { next_snapshot: 3 }).await.unwrap();
    clock.advance_ms(1000);
    consumers.put("fast", Consumer { next_snapshot: 8 }).await.unwrap();
    let json = storage.read_all("consumer/consumer-fast").await.unwrap();
    assert_eq!(json, "{\n  \"nextSnapshot\" : 8\n}");
    // Fields that this version does not know are ignored.
    let newer = Bytes::from(r#"{"nextSnapshot": 9, "host": "x"}"#);
    storage.put("consumer/consumer-fast", newer).await.unwrap();
    assert_eq!(
        consumers.find("fast").await.unwrap(),
        Some(Consumer { next_snapshot: 9 })
    );
    assert_eq!(consumers.find("other").await.unwrap(), None);
    assert_eq!(consumers.min_next_snapshot().await.unwrap(), Some(3));
    let ids: Vec<String> = consumers.all().await.unwrap().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["fast", "slow"]);

    assert_eq!(consumers.expire(500).await.unwrap(), ["slow"]);
    assert_eq!(names(&*storage, "consumer").await, ["consumer/consumer-fast"]);
    consumers.delete("fast").await.unwrap();
    consumers.delete("fast").await.unwrap();
    assert!(names(&*storage, "consumer").await.is_empty());
}

#[tokio::test]
async fn wrong_consumers_are_named() {
    let storage = memory();
    let consumers = ConsumerStore::new(SnapshotStore::new(Arc::clone(&storage), env()));
    storage
        .put("consumer/consumer-c", Bytes::from(r#"{"next": 9}"#))
        .await
        .unwrap();
    let mut errors = vec![consumers.find("c").await.unwrap_err().to_string()];
    for id in ["", "a/b"] {
        let consumer = Consumer { next_snapshot: 1 };
        errors.push(consumers.put(id, consumer).await.unwrap_err().to_string());
    }
    insta::assert_snapshot!(errors.join("\n"));
}
