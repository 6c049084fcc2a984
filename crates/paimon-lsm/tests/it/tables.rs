//! The tree over Parquet files.

use std::sync::Arc;

use paimon_format::kv::{KvFiles, TableKvFiles};
use paimon_format::meta::{PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::MemoryStorage;
use paimon_lsm::compact::RecordLevelExpire;
use paimon_lsm::write::WaitCompaction::Yes;

use crate::bucket::{Bucket, all, print, write};

/// A bucket whose files are Parquet in a storage in memory.
fn parquet() -> Bucket {
    let mut bucket = Bucket::new();
    let storage = Arc::new(MemoryStorage::new(Arc::clone(&bucket.env.clock)));
    let paths = TablePaths::new(PathSettings::from_options(Vec::new(), &Options::new()).unwrap());
    let paths = paths.bucket(&BinaryRow::default(), 0).unwrap();
    let files: Arc<dyn KvFiles> =
        Arc::new(TableKvFiles::builder(storage, bucket.env.clone(), Arc::clone(&bucket.schema), paths).build());
    bucket.files = files;
    bucket.settings.compact.small_file_bytes = 93_952_409;
    bucket
}

#[tokio::test]
async fn versions_meet_in_parquet_files() {
    let mut bucket = parquet();
    let mut writer = bucket.writer();
    for round in 0..7 {
        write(&mut writer, &bucket.schema, &all(0..100, round)).await;
        write(&mut writer, &bucket.schema, &[(50 + round, None)]).await;
        let increment = writer.prepare_commit(Yes).await.unwrap();
        bucket.commit_unchecked(&increment);
    }
    let rows = bucket.rows().await;
    assert_eq!(rows.len(), 99);
    assert!(rows.values().all(|value| *value == Some(6)) && !rows.contains_key(&56));
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit_unchecked(&increment);
    let [file] = &bucket.live[..] else {
        panic!("{}", bucket.tree())
    };
    assert_eq!((file.level, file.row_count, file.delete_row_count), (5, 99, Some(0)));
    assert_eq!(bucket.rows().await, rows);
}

#[tokio::test]
async fn compactions_drop_expired_rows() {
    let mut bucket = parquet();
    // The clock of tests starts at 1704067200 seconds; `v` is a time in seconds.
    let now = 1_704_067_200;
    let options: Options = [("record-level.expire-time", "1 h"), ("record-level.time-field", "v")]
        .into_iter()
        .collect();
    let expire = RecordLevelExpire::from_options(&options, &bucket.schema)
        .unwrap()
        .unwrap();
    let mut writer = bucket.builder().expire(Some(expire)).build().unwrap();
    let changes = [
        (1, Some(now - 3600)),
        (2, Some(now - 3601)),
        (3, Some(now)),
        (4, Some(0)),
    ];
    write(&mut writer, &bucket.schema, &changes).await;
    writer.compact(true).await.unwrap();
    let increment = writer.prepare_commit(Yes).await.unwrap();
    bucket.commit_unchecked(&increment);
    // Not upgraded: the statistics say that a row has expired.
    assert_eq!(print(&bucket.rows().await), format!("1={} 3={now}", now - 3600));
    assert_eq!(bucket.live[0].row_count, 2);
    // Nothing is left to expire: a full compaction of the full bucket does nothing.
    writer.compact(true).await.unwrap();
    assert!(writer.prepare_commit(Yes).await.unwrap().is_empty());
}
