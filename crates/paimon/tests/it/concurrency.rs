//! A writer and a compactor on one table, at once.

#![expect(clippy::disallowed_methods, reason = "several tasks that know nothing of each other")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paimon::format::options::Options;
use paimon::{Context, Table, TimeTravel};

use crate::support::{Place, kv, kv_schema, rows, rows_of};

const COMMITS: i32 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_between_a_writer_and_a_compactor() {
    let place = Place::on_threads();
    let table = place
        .create(kv_schema().option("bucket", "2").option("write-only", "true"))
        .await;
    let done = Arc::new(AtomicBool::new(false));
    let compactor = tokio::spawn({
        // Its own table, as in a process of its own.
        let (location, done) = (table.location().to_owned(), Arc::clone(&done));
        async move {
            let table = Table::open(&location, Options::new(), &Context::system().unwrap())
                .await
                .unwrap();
            let mut compactions = 0;
            while !done.load(Ordering::Acquire) {
                let report = table.compact_builder().full(compactions % 3 == 2).run().await.unwrap();
                compactions += usize::from(report.snapshot.is_some());
                tokio::task::yield_now().await;
            }
            compactions
        }
    });
    let builder = table.write_builder();
    let (mut write, commit) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    for round in 0..COMMITS {
        let text = round.to_string();
        let (batch, kinds) = kv(&[
            ("+I", round % 7, &text),
            ("+I", 1000 + round, &text),
            ("-D", 999 + round, ""),
        ]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        let messages = write.prepare_commit(true).await.unwrap();
        assert_eq!(commit.commit(i64::from(round), messages).await.unwrap().len(), 1);
    }
    done.store(true, Ordering::Release);
    assert!(compactor.await.unwrap() > 0, "nothing was compacted");

    let mut expected: Vec<String> = (0..7)
        .map(|key| format!("{key} {}", (0..COMMITS).rev().find(|round| round % 7 == key).unwrap()))
        .collect();
    expected.push(format!("{} {}", 999 + COMMITS, COMMITS - 1));
    expected.sort_unstable();
    assert_eq!(rows(&table).await, expected);
    for snapshot in table.snapshots(usize::MAX).await.unwrap() {
        let read = table.read_builder().time_travel(TimeTravel::SnapshotId(snapshot.id));
        assert!(!rows_of(read).await.is_empty(), "snapshot {}", snapshot.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_compactors_do_no_harm() {
    let place = Place::on_threads();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    for round in 0..10 {
        crate::support::commit(&table, &[("+I", round, "x")]).await;
    }
    let before = rows(&table).await;
    let compact = |table: Table| async move { table.compact_builder().full(true).run().await };
    let results = futures::future::join_all((0..4).map(|_| tokio::spawn(compact(table.clone())))).await;
    // Who comes second finds nothing to do when it plans anew.
    let snapshots: Vec<_> = results
        .into_iter()
        .filter_map(|result| result.unwrap().unwrap().snapshot)
        .collect();
    assert_eq!(snapshots.len(), 1);
    assert_eq!(rows(&table).await, before);
}
