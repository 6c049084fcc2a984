//! A table that the Java engine wrote write-only, compacted here.

use std::path::Path;

use paimon::format::options::Options;
use paimon::{Table, TimeTravel};

use crate::support::{Place, commit_batch, copy, kinds, only_file, rows, rows_of, shape, try_rows_of};

/// A copy of the table with its seven write-only snapshots; Java's own compaction after them is taken away.
async fn write_only(place: &Place) -> Table {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/write_only_dedicated/warehouse/default.db/t");
    let target = place.dir.path().join("t");
    copy(&source, &target);
    for name in ["snapshot-8", "snapshot-9", "LATEST"] {
        std::fs::remove_file(target.join("snapshot").join(name)).unwrap();
    }
    Table::open(target.to_str().unwrap(), Options::new(), &place.context)
        .await
        .unwrap()
}

#[tokio::test]
async fn every_snapshot_is_read() {
    let place = Place::new();
    let table = write_only(&place).await;
    let mut seen = Vec::new();
    for id in 1..=7 {
        seen.push(
            rows_of(table.read_builder().time_travel(TimeTravel::SnapshotId(id)))
                .await
                .join(", "),
        );
    }
    insta::assert_snapshot!(seen.join("\n"));
}

/// Java notes a checksum with every page.
#[tokio::test]
async fn a_damaged_page_never_gives_other_rows() {
    let place = Place::new();
    let table = write_only(&place).await;
    let before = try_rows_of(&table.read_builder()).await.unwrap();
    let path = only_file(&table, "bucket-0", "data-");
    let name = path.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let footer = bytes[bytes.len() - 8..]
        .first_chunk()
        .map(|length| u32::from_le_bytes(*length))
        .unwrap();
    let pages = 4..bytes.len() - 8 - usize::try_from(footer).unwrap();
    let mut noticed = 0;
    for at in pages.clone() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        match try_rows_of(&table.read_builder()).await {
            Ok(rows) => assert_eq!(rows, before, "byte {at}"),
            Err(error) => {
                noticed += 1;
                assert!(error.to_string().contains(name), "byte {at}: {error}");
            }
        }
    }
    assert!(noticed > pages.len() / 2, "{noticed} of {}", pages.len());
}

#[tokio::test]
async fn it_is_compacted_and_written_on() {
    let place = Place::new();
    let table = write_only(&place).await;
    assert_eq!(shape(&table).await, "L0:1 L0:1 L0:1 L0:1 L0:1 L0:1 L0:1");
    let before = rows(&table).await;
    let report = table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(
        (
            report.snapshot,
            report.buckets[0].input.files,
            report.buckets[0].output.rows
        ),
        (Some(8), 7, 3)
    );
    assert_eq!(shape(&table).await, "L5:3");
    assert_eq!(rows(&table).await, before);

    let columns: [(&str, arrow_array::ArrayRef); 2] = [
        ("id", std::sync::Arc::new(arrow_array::Int32Array::from(vec![0, 9]))),
        (
            "name",
            std::sync::Arc::new(arrow_array::StringArray::from(vec!["gone", "new"])),
        ),
    ];
    let batch = arrow_array::RecordBatch::try_from_iter(columns).unwrap();
    commit_batch(&table, &batch, &kinds(["-D", "+I"].into_iter())).await;
    assert_eq!(rows(&table).await, ["1 w 4", "2 w 5", "9 new null"]);
}
