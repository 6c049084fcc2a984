//! What changed between two states.

use paimon::{Between, IncrementalMode};

use super::support::{between, commit_with_changelog, delta_table, with};
use crate::support::{Place, commit, kv_schema};

#[tokio::test]
async fn new_files_between_two_snapshots() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let read = |range| between(table.changelog_builder().between(range));
    assert_eq!(
        read(Between::snapshots(0, 4)).await.unwrap(),
        ["1 +I 1 a", "1 +I 2 b", "2 +U 1 c", "2 +I 3 d", "4 -D 2 b"]
    );
    assert_eq!(read(Between::snapshots(1, 3)).await.unwrap(), ["2 +U 1 c", "2 +I 3 d"]);
    assert!(read(Between::snapshots(2, 3)).await.unwrap().is_empty());
    assert!(read(Between::snapshots(2, 2)).await.unwrap().is_empty());
    // Nobody wrote changelog files.
    let changelog = table
        .changelog_builder()
        .between(Between::snapshots(0, 4))
        .mode(IncrementalMode::Changelog);
    assert!(between(changelog).await.unwrap().is_empty());
}

#[tokio::test]
async fn between_instants() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut times = Vec::new();
    for id in 1..=4 {
        times.push(table.snapshot_store().get(id).await.unwrap().time_millis);
    }
    let read = |after, to| between(table.changelog_builder().between(Between::Timestamps(after, to)));
    assert_eq!(read(times[0], times[1]).await.unwrap(), ["2 +U 1 c", "2 +I 3 d"]);
    assert_eq!(read(0, times[0]).await.unwrap(), ["1 +I 1 a", "1 +I 2 b"]);
    assert_eq!(read(times[2], i64::MAX).await.unwrap(), ["4 -D 2 b"]);
    assert!(read(times[3] + 1, i64::MAX).await.unwrap().is_empty());
    assert!(read(0, times[0] - 1).await.unwrap().is_empty());
}

#[tokio::test]
async fn changelogs_between_two_snapshots() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit_with_changelog(&table, &[("+I", 1, "b")], &[("+I", 1, "a")]).await;
    commit(&table, &[("+I", 9, "z")]).await;
    commit_with_changelog(&table, &[("-D", 1, "b")], &[("-D", 1, "a")]).await;
    let options = [("changelog-producer", "input"), ("incremental-between", "0,3")];
    let table = with(&table, &options);
    assert_eq!(
        between(table.changelog_builder()).await.unwrap(),
        ["1 +I 1 a", "3 -D 1 a"]
    );
    let delta = table.changelog_builder().mode(IncrementalMode::Delta);
    assert_eq!(between(delta).await.unwrap(), ["1 +I 1 b", "2 +I 9 z", "3 -D 1 b"]);
}

#[tokio::test]
async fn tags_can_stand_for_their_snapshots() {
    let place = Place::new();
    let table = delta_table(&place).await;
    for (tag, id) in [("first", 1), ("last", 4)] {
        let json = table
            .storage()
            .read_all(&format!("snapshot/snapshot-{id}"))
            .await
            .unwrap();
        table.storage().put(&format!("tag/tag-{tag}"), json).await.unwrap();
    }
    let options = [
        ("incremental-between", "first,last"),
        ("incremental-between-tag-to-snapshot", "true"),
    ];
    assert_eq!(
        between(with(&table, &options).changelog_builder()).await.unwrap(),
        ["2 +U 1 c", "2 +I 3 d", "4 -D 2 b"]
    );
}

#[tokio::test]
async fn ranges_that_are_not_there_are_refused() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut errors = Vec::new();
    for range in [
        Between::snapshots(3, 1),
        Between::snapshots(1, 9),
        Between::Versions("a".to_owned(), "b".to_owned()),
        Between::Timestamps(5, 4),
    ] {
        errors.push(between(table.changelog_builder().between(range)).await.unwrap_err());
    }
    table.storage().delete("snapshot/snapshot-1").await.unwrap();
    errors.push(
        between(table.changelog_builder().between(Between::snapshots(0, 2)))
            .await
            .unwrap_err(),
    );
    errors.push(between(table.changelog_builder()).await.unwrap_err());
    let read = with(&table, &[("incremental-between", "1,2")]);
    errors.push(read.read_builder().new_scan().plan().await.unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"));
}
