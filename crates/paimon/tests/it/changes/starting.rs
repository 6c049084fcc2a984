//! Each starting mode, with each producer.

use paimon::StreamStart;

use super::support::{
    available, changes_from, commit_with_changelog, compact_with_changelog, delta_table, refused, stream_from, with,
};
use crate::support::{Place, commit, kv_schema};

#[tokio::test]
async fn without_a_producer_new_files_are_the_changes() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut shown = Vec::new();
    for start in [
        StreamStart::LatestFull,
        StreamStart::Latest,
        StreamStart::CompactedFull(None),
        StreamStart::earliest(),
        StreamStart::FromSnapshot(2),
        StreamStart::FromSnapshotFull(1),
        StreamStart::FromTimestamp(table.snapshot_store().get(2).await.unwrap().time_millis),
        StreamStart::FromTimestamp(i64::MAX),
    ] {
        let name = match start {
            StreamStart::FromTimestamp(i64::MAX) => "from-timestamp of the future".to_owned(),
            StreamStart::FromTimestamp(_) => "from-timestamp of snapshot 2".to_owned(),
            ref start => start.to_string(),
        };
        shown.push(format!("{name}\n  {}", changes_from(&table, start).await.join("\n  ")));
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[tokio::test]
async fn options_name_the_start() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let full = ["4 +I 1 c", "4 +I 3 d"];
    for (options, expected) in [
        (&[][..], &full[..]),
        (&[("scan.mode", "latest")], &[]),
        (&[("scan.snapshot-id", "4")], &["4 -D 2 b"]),
        (&[("scan.mode", "from-snapshot-full"), ("scan.snapshot-id", "4")], &full),
        (
            &[("scan.mode", "compacted-full")],
            &["3 +I 1 c", "3 +I 2 b", "3 +I 3 d", "4 -D 2 b"],
        ),
        (
            &[("scan.timestamp-millis", "0"), ("consumer-id", "new")],
            &["1 +I 1 a", "1 +I 2 b", "2 +U 1 c", "2 +I 3 d", "4 -D 2 b"],
        ),
    ] {
        let mut stream = with(&table, options).changelog_builder().stream().await.unwrap();
        assert_eq!(available(&mut stream).await, expected, "{options:?}");
    }
    assert_eq!(
        refused(&with(&table, &[("scan.tag-name", "noon")])).await,
        "option 'scan.tag-name' = 'noon': a stream of changes does not start from a tag; set 'scan.snapshot-id'"
    );
}

#[tokio::test]
async fn input_changelogs_are_read_as_they_were_written() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit_with_changelog(&table, &[("+I", 1, "b")], &[("+I", 1, "a")]).await;
    commit_with_changelog(&table, &[("-D", 1, "b")], &[("-U", 1, "a"), ("+I", 2, "x")]).await;
    // Nobody noted what this one changed.
    commit(&table, &[("+I", 9, "z")]).await;
    let table = with(&table, &[("changelog-producer", "input")]);
    assert_eq!(
        changes_from(&table, StreamStart::earliest()).await,
        ["1 +I 1 a", "2 -U 1 a", "2 +I 2 x"]
    );
    assert_eq!(changes_from(&table, StreamStart::LatestFull).await, ["3 +I 9 z"]);
}

#[tokio::test]
async fn a_full_read_leaves_out_what_a_changelog_is_yet_to_tell() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit(&table, &[("+I", 1, "a")]).await;
    compact_with_changelog(&table, 4, &[("+I", 1, "a")], &[("+I", 1, "a")]).await;
    commit(&table, &[("+I", 2, "b")]).await;
    let [lookup, full] =
        ["lookup", "full-compaction"].map(|producer| with(&table, &[("changelog-producer", producer)]));
    // The row of level 0 comes with the next changelog; that of level 4 has not come to the top yet.
    let mut streams = Vec::new();
    for (table, expected) in [(&lookup, &["3 +I 1 a"][..]), (&full, &[])] {
        let mut stream = table.changelog_builder().stream().await.unwrap();
        assert_eq!(available(&mut stream).await, expected);
        streams.push(stream);
    }
    compact_with_changelog(&table, 5, &[("+I", 1, "a"), ("+I", 2, "b")], &[("+I", 2, "b")]).await;
    for stream in &mut streams {
        assert_eq!(available(stream).await, ["4 +I 2 b"]);
    }
    for (table, expected) in [
        (&lookup, &["4 +I 1 a", "4 +I 2 b"][..]),
        (&full, &["4 +I 1 a", "4 +I 2 b"]),
    ] {
        assert_eq!(changes_from(table, StreamStart::LatestFull).await, expected);
        assert_eq!(
            changes_from(table, StreamStart::earliest()).await,
            ["2 +I 1 a", "4 +I 2 b"]
        );
    }
}

#[tokio::test]
async fn an_empty_table_is_followed_from_its_first_snapshot() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let mut streams = Vec::new();
    for start in [StreamStart::LatestFull, StreamStart::Latest, StreamStart::earliest()] {
        let mut stream = stream_from(&table, start).await;
        assert!(available(&mut stream).await.is_empty());
        streams.push(stream);
    }
    commit(&table, &[("+I", 1, "a"), ("+U", 1, "b")]).await;
    for stream in &mut streams {
        let rows = available(stream).await;
        // Kinds of a full read are +I: its reader had none of the rows.
        assert!(rows == ["1 +I 1 b"] || rows == ["1 +U 1 b"], "{rows:?}");
    }
    commit(&table, &[("-D", 1, "b")]).await;
    for stream in &mut streams {
        assert_eq!(available(stream).await, ["2 -D 1 b"]);
    }
}
