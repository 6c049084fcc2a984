//! What changed between two states.

use std::collections::BTreeMap;

use paimon::format::predicate::Predicate;
use paimon::{Between, IncrementalMode, TimeTravel};

use super::support::{between, commit_with_changelog, delta_table, tag, with};
use crate::support::{Place, commit, kv_schema, rows_of};

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
    tag(&table, "first", 1).await;
    tag(&table, "last", 4).await;
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
async fn two_states_are_compared() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let diff = async |after, to| {
        let builder = table.changelog_builder().between(Between::snapshots(after, to));
        between(builder.mode(IncrementalMode::Diff)).await.unwrap()
    };
    assert_eq!(diff(0, 2).await, ["2 +I 1 c", "2 +I 2 b", "2 +I 3 d"]);
    assert_eq!(diff(1, 4).await, ["4 +U 1 c", "4 -D 2 b", "4 +I 3 d"]);
    // A compaction changes nothing; what is written again as it was is no change either.
    assert!(diff(2, 3).await.is_empty());
    commit(&table, &[("+U", 1, "c"), ("+I", 2, "b")]).await;
    assert_eq!(diff(4, 5).await, ["5 +I 2 b"]);
    assert!(diff(3, 5).await.is_empty());

    let fields = table.schema().fields.clone();
    let changes = table
        .changelog_builder()
        .between(Between::snapshots(1, 4))
        .mode(IncrementalMode::Diff)
        .filter(Predicate::parse("v <> 'd'", &fields).unwrap())
        .projection(&["v"])
        .unwrap();
    assert_eq!(between(changes).await.unwrap(), ["4 +U c", "4 -D b"]);
}

#[tokio::test]
async fn tags_are_compared_though_their_snapshots_have_expired() {
    let place = Place::new();
    let table = delta_table(&place).await;
    tag(&table, "first", 1).await;
    tag(&table, "last", 4).await;
    table.storage().delete("snapshot/snapshot-1").await.unwrap();
    let tags = Between::Versions("first".to_owned(), "last".to_owned());
    assert_eq!(
        between(table.changelog_builder().between(tags)).await.unwrap(),
        ["4 +U 1 c", "4 -D 2 b", "4 +I 3 d"]
    );
    let gone = table
        .changelog_builder()
        .between(Between::snapshots(1, 4))
        .mode(IncrementalMode::Diff);
    assert_eq!(
        between(gone).await.unwrap_err(),
        "the changes after snapshot 1 up to 4 are not all there: snapshots 2 to 4 are there"
    );
}

/// The rows of a state by key, from a comparison with another state.
#[tokio::test]
async fn a_comparison_leads_from_one_state_to_the_other() {
    let place = Place::new();
    let table = place.create(kv_schema().option("bucket", "3")).await;
    // Enough rows for several blocks a bucket; keys come, change, stay and go.
    for round in 0..4 {
        let rows: Vec<(&str, i32, String)> = (0..9000)
            .filter(|key| key % 7 != round)
            .map(|key| match key % 5 == round {
                true => ("-D", key, String::new()),
                false => ("+U", key, format!("{}", key % (round + 2))),
            })
            .collect();
        let rows: Vec<(&str, i32, &str)> = rows.iter().map(|(kind, key, v)| (*kind, *key, v.as_str())).collect();
        commit(&table, &rows).await;
    }
    let state = async |id| -> BTreeMap<String, String> {
        let rows = rows_of(table.read_builder().time_travel(TimeTravel::SnapshotId(id))).await;
        let rows = rows.iter().filter_map(|row| row.split_once(' '));
        rows.map(|(key, v)| (key.to_owned(), v.to_owned())).collect()
    };
    for (after, to) in [(1, 2), (2, 4), (1, 4)] {
        let (mut rows, wanted) = (state(after).await, state(to).await);
        let builder = table.changelog_builder().between(Between::snapshots(after, to));
        let changes = between(builder.mode(IncrementalMode::Diff)).await.unwrap();
        for change in &changes {
            let [_, kind, key, v] = change.split(' ').collect::<Vec<_>>().try_into().unwrap();
            match kind {
                "+I" => assert_eq!(rows.insert(key.to_owned(), v.to_owned()), None, "{change}"),
                "+U" => assert_ne!(rows.insert(key.to_owned(), v.to_owned()).unwrap(), v, "{change}"),
                _ => assert_eq!(rows.remove(key).unwrap(), v, "{change}"),
            }
        }
        assert!(changes.len() > 1000);
        assert!(rows == wanted, "after {after} to {to}");
    }
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
