//! A stream that was interrupted goes on, and no row comes twice or never.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::{ArrayRef, Int8Array, Int32Array, RecordBatch, StringArray};
use futures::task::noop_waker;
use paimon::format::ErrorKind;
use paimon::{StreamPosition, StreamStart, Table, TableStream};

use super::support::{available, delta_table, expire, stream_from, text, with};
use crate::support::{Place, commit, commit_batch, kv_schema};

/// Two buckets; 40,000 rows a snapshot, so that a bucket comes in several batches.
async fn large_table(place: &Place) -> Table {
    let table = place.create(kv_schema().option("bucket", "2")).await;
    for snapshot in 0..3 {
        let keys = Int32Array::from_iter_values(snapshot * 10_000..snapshot * 10_000 + 40_000);
        let values = StringArray::from_iter_values(keys.values().iter().map(|key| format!("{snapshot} {key}")));
        let kinds = Int8Array::from_value(0, keys.len());
        let columns: [(&str, ArrayRef); 2] = [("k", Arc::new(keys)), ("v", Arc::new(values))];
        commit_batch(&table, &RecordBatch::try_from_iter(columns).unwrap(), &kinds).await;
    }
    table
}

/// Every row with the position after its batch.
async fn all(stream: &mut TableStream) -> Vec<(String, StreamPosition)> {
    let mut rows = Vec::new();
    while let Some(batch) = stream.next_available().await.unwrap() {
        rows.extend(text(&batch).into_iter().map(|row| (row, batch.position)));
    }
    rows
}

#[tokio::test]
async fn every_position_is_a_place_to_go_on_from() {
    let place = Place::on_threads();
    let table = large_table(&place).await;
    for start in [StreamStart::FromSnapshotFull(2), StreamStart::FromSnapshot(2)] {
        let builder = table.changelog_builder().start(start);
        let expected = all(&mut builder.stream().await.unwrap()).await;
        let mut positions: Vec<StreamPosition> = expected.iter().map(|(_, position)| *position).collect();
        positions.dedup();
        assert!(positions.len() > 5, "several batches a bucket: {positions:?}");
        // In the midst of a batch too: a reader may keep less than it was given.
        positions.push(StreamPosition {
            rows: 7,
            ..positions[0]
        });
        for position in positions {
            let json = serde_json::to_string(&position).unwrap();
            let position: StreamPosition = serde_json::from_str(&json).unwrap();
            let rest = all(&mut builder.clone().resume(position).stream().await.unwrap()).await;
            let done = expected.len() - rest.len();
            assert!(
                rest.iter()
                    .zip(&expected[done..])
                    .all(|(found, expected)| found.0 == expected.0),
                "from {position:?}"
            );
            if position.rows == 7 {
                assert_eq!(done, 7);
            } else {
                assert_eq!(expected[done - 1].1, position);
                assert!(expected.get(done).is_none_or(|(_, next)| *next != position));
            }
        }
    }
}

#[tokio::test]
async fn dropped_calls_lose_nothing() {
    let place = Place::on_threads();
    let table = large_table(&place).await;
    let builder = table.changelog_builder().start(StreamStart::FromSnapshotFull(2));
    let expected = all(&mut builder.stream().await.unwrap()).await;
    let mut stream = builder.stream().await.unwrap();
    let mut found = Vec::new();
    let mut dropped = 0;
    // Each call is given up after more polls than the last one that was, so that all get through in the end.
    let mut patience = 1;
    loop {
        match poll_times(stream.next_available(), patience).await {
            None => (dropped, patience) = (dropped + 1, patience + 1),
            Some(batch) => match batch.unwrap() {
                Some(batch) => {
                    found.extend(text(&batch).into_iter().map(|row| (row, batch.position)));
                    patience = 1;
                }
                None => break,
            },
        }
    }
    assert!(dropped > 10, "calls were dropped: {dropped}");
    assert!(found == expected, "{} rows, expected {}", found.len(), expected.len());
}

/// Polls so often, other tasks in between; drops the future then.
async fn poll_times<T>(future: impl Future<Output = T>, times: usize) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..times {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&noop_waker())) {
            return Some(value);
        }
        tokio::task::yield_now().await;
    }
    None
}

#[tokio::test]
async fn a_consumer_goes_on_where_it_committed() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let builder = table.changelog_builder().start(StreamStart::earliest()).consumer("c");
    let mut stream = builder.stream().await.unwrap();
    let first = stream.next_available().await.unwrap().unwrap();
    assert_eq!(text(&first), ["1 +I 1 a", "1 +I 2 b"]);
    // Whether more rows of the snapshot follow is not known yet: a crash now repeats them.
    assert!(stream.commit(&first.position).await.unwrap());
    assert_eq!(table.consumers().find("c").await.unwrap().unwrap().next_snapshot, 1);
    let second = stream.next_available().await.unwrap().unwrap();
    assert_eq!(text(&second), ["2 +U 1 c", "2 +I 3 d"]);
    assert!(stream.commit(&second.position).await.unwrap());
    assert_eq!(table.consumers().find("c").await.unwrap().unwrap().next_snapshot, 2);
    // The stream is lost here.
    let mut stream = builder.stream().await.unwrap();
    assert_eq!(available(&mut stream).await, ["2 +U 1 c", "2 +I 3 d", "4 -D 2 b"]);
    // Caught up: whole snapshots are behind.
    assert!(stream.commit(&stream.position().unwrap()).await.unwrap());
    let mut stream = builder.stream().await.unwrap();
    assert!(available(&mut stream).await.is_empty());
    commit(&table, &[("+I", 5, "e")]).await;
    assert_eq!(available(&mut stream).await, ["5 +I 5 e"]);
    // Progress can be ignored, by a call or by an option.
    let mut again = builder.clone().ignore_progress().stream().await.unwrap();
    assert_eq!(available(&mut again).await.len(), 6);
    let ignoring = with(&table, &[("consumer-id", "c"), ("consumer.ignore-progress", "true")]);
    let mut again = ignoring.changelog_builder().stream().await.unwrap();
    assert_eq!(available(&mut again).await.len(), 3);
}

#[tokio::test]
async fn a_full_read_counts_when_it_is_through() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let builder = table.changelog_builder().consumer("c");
    let mut stream = builder.stream().await.unwrap();
    let first = stream.next_available().await.unwrap().unwrap();
    assert!(first.position.full);
    assert!(!stream.commit(&first.position).await.unwrap(), "rows may be missing");
    assert_eq!(table.consumers().find("c").await.unwrap(), None);
    assert!(available(&mut stream).await.is_empty());
    assert!(stream.commit(&stream.position().unwrap()).await.unwrap());
    assert_eq!(table.consumers().find("c").await.unwrap().unwrap().next_snapshot, 5);

    let mut nobody = table.changelog_builder().stream().await.unwrap();
    available(&mut nobody).await;
    let error = nobody.commit(&nobody.position().unwrap()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the progress of a stream can be noted only for a consumer: set 'consumer-id'"
    );
}

#[tokio::test]
async fn of_two_readers_of_a_consumer_none_loses_rows() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let builder = table.changelog_builder().start(StreamStart::earliest()).consumer("c");
    let (mut fast, mut slow) = (builder.stream().await.unwrap(), builder.stream().await.unwrap());
    assert_eq!(available(&mut fast).await.len(), 5);
    let behind = slow.next_available().await.unwrap().unwrap();
    let (ahead, behind) = (fast.position().unwrap(), behind.position);
    let (a, b) = futures::join!(fast.commit(&ahead), slow.commit(&behind));
    assert!(a.unwrap() && b.unwrap());
    // The last that writes wins: the file is one of the two, never garbled.
    slow.commit(&behind).await.unwrap();
    assert_eq!(available(&mut builder.stream().await.unwrap()).await.len(), 5);
    assert_eq!(available(&mut slow).await.len(), 3);
}

#[tokio::test]
async fn snapshots_that_expired_under_the_reader_are_an_error_that_says_what_to_do() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let mut stream = table
        .changelog_builder()
        .start(StreamStart::earliest())
        .consumer("c")
        .stream()
        .await
        .unwrap();
    let first = stream.next_available().await.unwrap().unwrap();
    stream.commit(&first.position).await.unwrap();
    expire(&table, [1, 2]).await;
    let error = stream.next_available().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    insta::assert_snapshot!(error.to_string());
    // It stays where it is, and says so again.
    assert_eq!(
        stream.next_available().await.unwrap_err().to_string(),
        error.to_string()
    );
    assert_eq!(stream.position(), Some(StreamPosition::changes_of(2)));
    // So does a new stream of the consumer: changes are missing, and nobody is told otherwise.
    let mut again = table.changelog_builder().consumer("c").stream().await.unwrap();
    assert!(
        again
            .next_available()
            .await
            .unwrap_err()
            .to_string()
            .starts_with("snapshot 1, which")
    );
    // A full read that was interrupted cannot go on either.
    let full = StreamPosition::rows_of(2);
    let mut again = table.changelog_builder().resume(full).stream().await.unwrap();
    assert!(
        again
            .next_available()
            .await
            .unwrap_err()
            .to_string()
            .starts_with("snapshot 2, which")
    );
    // A start that is asked for moves up to what is there.
    let mut again = stream_from(&table, StreamStart::FromSnapshot(1)).await;
    assert_eq!(available(&mut again).await, ["4 -D 2 b"]);
}

#[tokio::test]
async fn files_that_expired_under_the_reader_are_told_as_an_expired_snapshot() {
    let place = Place::new();
    let table = delta_table(&place).await;
    let snapshot = table.snapshot_store().get(2).await.unwrap();
    let mut stream = stream_from(&table, StreamStart::FromSnapshot(2)).await;
    let list = format!("manifest/{}", snapshot.delta_manifest_list);
    table.storage().delete(&list).await.unwrap();
    // A file that is missing while its snapshot is there is another matter.
    let error = stream.next_available().await.unwrap_err();
    assert!(error.to_string().contains(&list), "{error}");
    expire(&table, [1, 2]).await;
    let error = stream.next_available().await.unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("snapshot 2, which this read wants next, has expired"),
        "{error}"
    );
}
