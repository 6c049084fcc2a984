//! Futures that are dropped before they end, at each of their polls.

use std::pin::pin;

use futures::{TryStreamExt, poll};
use paimon::format::meta::CommitMessage;
use paimon::manifest::snapshot::CommitKind;
use paimon::{ErrorKind, Table, TimeTravel};

use crate::faulty_place::FaultyPlace;
use crate::support::{commit, kv, kv_schema, rows, rows_of};

/// The tables: a plain one, one whose compactions look old rows up, one that keeps deletion vectors. The plain one is dropped at
/// each poll, the others, which take longer, at each so many.
const TABLES: [(&[(&str, &str)], usize); 3] = [
    (&[], 1),
    (&[("changelog-producer", "lookup")], 7),
    (&[("deletion-vectors.enabled", "true")], 7),
];

/// Polls a future so many times, with all other tasks having their turn in between, then drops it. `None`: it had not ended.
async fn polled<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let std::task::Poll::Ready(value) = poll!(&mut future) {
            return Some(value);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Two buckets with two runs each, which every further commit compacts. A full buffer is flushed at once.
async fn table(place: &FaultyPlace, options: &[(&str, &str)]) -> Table {
    let schema = kv_schema()
        .option("bucket", "2")
        .option("num-sorted-run.compaction-trigger", "2")
        .option("write-buffer-size", "192 kb")
        .option("write-buffer-spillable", "false");
    let schema = options
        .iter()
        .fold(schema, |schema, (key, value)| schema.option(*key, *value));
    let table = place.create(schema).await;
    for value in ["a", "b"] {
        let rows: Vec<_> = (0..6).map(|key| ("+I", key, value)).collect();
        commit(&table, &rows).await;
    }
    table
}

/// What the dropped calls write: other values for some keys, new keys, a delete.
const CHANGES: [(&str, i32, &str); 5] = [
    ("+U", 1, "new"),
    ("+U", 2, "new"),
    ("-D", 3, "b"),
    ("+I", 10, "new"),
    ("+I", 11, "new"),
];
const BEFORE: [&str; 6] = ["0 b", "1 b", "2 b", "3 b", "4 b", "5 b"];
const AFTER: [&str; 7] = ["0 b", "1 new", "10 new", "11 new", "2 new", "4 b", "5 b"];

/// Every snapshot can be read, and the rows are one of these two, after a full compaction too.
async fn check(table: &Table, expected: &[&[&str]], context: &str) {
    for snapshot in table.snapshots(usize::MAX).await.unwrap() {
        rows_of(table.read_builder().time_travel(TimeTravel::SnapshotId(snapshot.id))).await;
    }
    table.compact_builder().full(true).run().await.unwrap();
    let rows = rows(table).await;
    assert!(expected.iter().any(|expected| rows == *expected), "{context}: {rows:?}");
}

/// Commits of this job's identifier 1 that are in the table.
async fn appends(table: &Table) -> usize {
    let snapshots = table.snapshots(usize::MAX).await.unwrap();
    let ours = snapshots.iter().filter(|snapshot| {
        snapshot.commit_user == "job" && snapshot.commit_identifier == 1 && snapshot.commit_kind == CommitKind::Append
    });
    ours.count()
}

#[tokio::test]
async fn a_dropped_write_takes_the_whole_batch_or_ends_the_writer() {
    // Two rows that fill the buffer go before, so that the batch is taken between flushes.
    let large = "x".repeat(200 << 10);
    let mut outcomes = [0; 2];
    for polls in 0.. {
        let place = FaultyPlace::new();
        let table = table(&place, &[]).await;
        let builder = table.write_builder();
        let mut write = builder.new_write().unwrap();
        let (batch, kinds) = kv(&[("+I", 20, &large), ("+I", 21, &large)]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        place.slow();
        let (batch, kinds) =
            kv(&CHANGES.map(|(kind, key, value)| (kind, key, if value == "new" { &large } else { value })));
        let done = polled(write.write_with_kinds(&batch, &kinds), polls).await;
        place.heal();
        let whole = done.is_some();
        match write.prepare_commit(true).await {
            Ok(messages) => {
                outcomes[0] += 1;
                builder.new_commit().unwrap().commit(1, messages).await.unwrap();
                write.abort().await;
                let keys: Vec<String> = rows(&table)
                    .await
                    .iter()
                    .map(|row| row.split(' ').next().unwrap().to_owned())
                    .collect();
                let there = keys.contains(&"10".to_owned());
                assert_eq!(keys.contains(&"11".to_owned()), there, "{polls} polls");
                assert_eq!(keys.contains(&"3".to_owned()), !there, "{polls} polls");
                assert!(there || !whole, "{polls} polls: a batch that was taken is not there");
            }
            Err(error) => {
                outcomes[1] += 1;
                assert!(!whole, "{polls} polls: {error}");
                assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                write.abort().await;
                check(&table, &[&BEFORE], &format!("{polls} polls")).await;
            }
        }
        if whole {
            break;
        }
    }
    assert!(outcomes[0] > 1 && outcomes[1] > 1, "{outcomes:?}");
}

#[tokio::test]
async fn a_dropped_prepare_commit_hands_out_all_later_or_ends_the_writer() {
    let mut outcomes = [0; 2];
    for (options, step) in TABLES {
        for polls in (0..).step_by(step) {
            let place = FaultyPlace::new();
            let table = table(&place, options).await;
            let context = format!("{options:?}, {polls} polls");
            let builder = table.write_builder().commit_user("job");
            let mut write = builder.new_write().unwrap();
            let (batch, kinds) = kv(&CHANGES);
            write.write_with_kinds(&batch, &kinds).await.unwrap();
            place.slow();
            let handed_out = polled(write.prepare_commit(true), polls).await;
            place.heal();
            let done = handed_out.is_some();
            let messages = match handed_out {
                Some(messages) => messages,
                None => write.prepare_commit(true).await,
            };
            match messages {
                Ok(messages) => {
                    outcomes[0] += 1;
                    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
                    write.abort().await;
                    check(&table, &[&AFTER], &context).await;
                }
                Err(error) => {
                    outcomes[1] += 1;
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
                    write.abort().await;
                    check(&table, &[&BEFORE], &context).await;
                }
            }
            if done {
                break;
            }
        }
    }
    assert!(outcomes[0] > 1 && outcomes[1] > 1, "{outcomes:?}");
}

#[tokio::test]
async fn a_dropped_commit_is_made_once_when_it_is_offered_again() {
    let mut published = 0;
    for (options, step) in TABLES {
        for polls in (0..).step_by(step) {
            let place = FaultyPlace::new();
            let table = table(&place, options).await;
            let context = format!("{options:?}, {polls} polls");
            let builder = table.write_builder().commit_user("job");
            let mut write = builder.new_write().unwrap();
            let (batch, kinds) = kv(&CHANGES);
            write.write_with_kinds(&batch, &kinds).await.unwrap();
            let messages: Vec<CommitMessage> = write.prepare_commit(true).await.unwrap();
            write.abort().await;
            let commit = builder.new_commit().unwrap();
            place.slow();
            let done = polled(commit.commit(1, messages.clone()), polls).await.is_some();
            place.heal();
            let there = appends(&table).await;
            assert!(there == usize::from(done) || !done, "{context}");
            let again = builder.new_commit().unwrap();
            let committed = again.filter_and_commit(vec![(1, messages)]).await.unwrap();
            assert_eq!((committed + there, appends(&table).await), (1, 1), "{context}");
            check(&table, &[&AFTER], &context).await;
            published += if done { 0 } else { there };
            if done {
                break;
            }
        }
    }
    assert!(published > 0, "no commit was dropped after it was published");
}

#[tokio::test]
async fn a_dropped_compaction_changes_no_row() {
    for (options, step) in TABLES {
        for polls in (0..).step_by(step) {
            let place = FaultyPlace::new();
            let table = table(&place, options).await;
            commit(&table, &CHANGES).await;
            place.slow();
            let done = polled(table.compact_builder().full(true).run(), polls).await;
            place.heal();
            check(&table, &[&AFTER], &format!("{options:?}, {polls} polls")).await;
            if done.is_some() {
                break;
            }
        }
    }
}

/// All data, changelog and index files, whoever names them.
async fn files(table: &Table) -> Vec<String> {
    let mut paths = Vec::new();
    for folder in ["bucket-0", "bucket-1", "index"] {
        let files: Vec<_> = table.storage().list(folder).try_collect().await.unwrap();
        paths.extend(files.into_iter().map(|file| file.path));
    }
    paths.sort_unstable();
    paths
}

#[tokio::test]
async fn an_aborted_writer_leaves_no_file_whatever_it_did() {
    for (options, _) in TABLES {
        let place = FaultyPlace::new();
        let table = table(&place, options).await;
        table.compact_builder().full(true).run().await.unwrap();
        let before = files(&table).await;
        let builder = table.write_builder();
        let mut write = builder.new_write().unwrap();
        for round in 0..6 {
            let (batch, kinds) = kv(&CHANGES);
            write.write_with_kinds(&batch, &kinds).await.unwrap();
            for (partition, bucket) in write.open_buckets() {
                write.compact(&partition, bucket, round % 3 == 0).await.unwrap();
            }
        }
        let messages = write.prepare_commit(true).await.unwrap();
        let (batch, kinds) = kv(&CHANGES);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        for (partition, bucket) in write.open_buckets() {
            write.compact(&partition, bucket, true).await.unwrap();
        }
        write.abort().await;
        builder.new_commit().unwrap().abort(&messages).await.unwrap();
        assert_eq!(files(&table).await, before, "{options:?}");
    }
}
