//! Reads of older snapshots.

use paimon::format::options::Options;
use paimon::{Table, TimeTravel};

use crate::support::{Place, commit, kv_schema, rows, rows_of, try_rows_of};

#[tokio::test]
async fn a_snapshot_a_tag_or_an_instant_can_be_read() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit(&table, &[("+I", 1, "a")]).await;
    commit(&table, &[("+I", 1, "b")]).await;
    commit(&table, &[("-D", 1, "b"), ("+I", 2, "c")]).await;
    assert_eq!(rows(&table).await, ["2 c"]);

    let at = |travel| rows_of(table.read_builder().time_travel(travel));
    assert_eq!(at(TimeTravel::SnapshotId(1)).await, ["1 a"]);
    let second = table.snapshot_store().get(2).await.unwrap();
    assert_eq!(at(TimeTravel::TimestampMillis(second.time_millis)).await, ["1 b"]);

    // A tag is a copy of its snapshot's file.
    let root = std::path::Path::new(table.location());
    std::fs::create_dir(root.join("tag")).unwrap();
    std::fs::copy(root.join("snapshot/snapshot-2"), root.join("tag/tag-noon")).unwrap();
    assert_eq!(at(TimeTravel::Tag("noon".to_owned())).await, ["1 b"]);
    assert_eq!(at(TimeTravel::Version("noon".to_owned())).await, ["1 b"]);

    let options: Options = [("scan.snapshot-id", "1")].into_iter().collect();
    let pinned = Table::open(table.location(), options, &place.context).await.unwrap();
    assert_eq!(rows(&pinned).await, ["1 a"]);

    let mut errors = Vec::new();
    for travel in [
        TimeTravel::SnapshotId(9),
        TimeTravel::Tag("evening".to_owned()),
        TimeTravel::TimestampMillis(0),
    ] {
        errors.push(
            try_rows_of(&table.read_builder().time_travel(travel))
                .await
                .unwrap_err()
                .to_string(),
        );
    }
    insta::assert_snapshot!(errors.join("\n"));
}
