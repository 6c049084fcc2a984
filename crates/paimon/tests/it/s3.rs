//! Commits that race on a real S3 server: `.ci/with_s3.py cargo test -p paimon s3`.

#![expect(clippy::disallowed_methods, reason = "several tasks that know nothing of each other")]

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use paimon::format::options::Options;
use paimon::format::storage::testing::S3Server;
use paimon::{Context, Table, TimeTravel};

use crate::support::{kv, kv_schema, rows, rows_of};

const WRITERS: i32 = 4;
const COMMITS: i32 = 8;

/// A context of its own, as a process has it.
fn context(options: &Options) -> Context {
    Context::system().unwrap().with_storage_options(options.clone())
}

/// Commits one row a commit as `user`, identifiers from 1 on; each is offered again, as by a process that lost the answer.
async fn write(location: String, options: Options, writer: i32) {
    let table = Table::open(&location, Options::new(), &context(&options))
        .await
        .unwrap();
    let builder = table.write_builder().commit_user(format!("writer-{writer}"));
    let (mut write, commit) = (builder.new_write().unwrap(), builder.new_commit().unwrap());
    for round in 0..COMMITS {
        let (batch, kinds) = kv(&[
            ("+I", writer * 100 + round, &round.to_string()),
            ("+U", 1000 + writer, &round.to_string()),
        ]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        let messages = write.prepare_commit(true).await.unwrap();
        let identifier = i64::from(round) + 1;
        assert_eq!(commit.commit(identifier, messages.clone()).await.unwrap().len(), 1);
        assert_eq!(commit.filter_and_commit(vec![(identifier, messages)]).await.unwrap(), 0);
    }
    write.abort().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_commit_wins_once_on_s3() {
    let Some(S3Server { options, bucket }) = S3Server::from_env() else {
        return;
    };
    let context = context(&options);
    let location = format!("s3://{bucket}/facade-{}/t", context.env().ids.uuid());
    let schema = kv_schema().option("bucket", "2").option("write-only", "true");
    let table = Table::create(&location, schema, &context).await.unwrap();
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(location.clone(), options.clone(), writer)));
    for writer in join_all(writers).await {
        writer.unwrap();
    }
    let snapshots = table.snapshots(usize::MAX).await.unwrap();
    let count = i64::from(WRITERS * COMMITS);
    let ids: BTreeSet<i64> = snapshots.iter().map(|snapshot| snapshot.id).collect();
    assert_eq!(ids, (1..=count).collect());
    // Of each user every identifier once, in the order of its commits.
    let mut identifiers: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for snapshot in snapshots.iter().rev() {
        identifiers
            .entry(&snapshot.commit_user)
            .or_default()
            .push(snapshot.commit_identifier);
    }
    assert_eq!(identifiers.len(), WRITERS as usize);
    for found in identifiers.values() {
        assert_eq!(*found, (1..=i64::from(COMMITS)).collect::<Vec<_>>());
    }
    let mut expected: Vec<String> = (0..WRITERS)
        .flat_map(|writer| {
            let own = (0..COMMITS).map(move |round| format!("{} {round}", writer * 100 + round));
            own.chain([format!("{} {}", 1000 + writer, COMMITS - 1)])
        })
        .collect();
    expected.sort_unstable();
    assert_eq!(rows(&table).await, expected);
    for id in ids {
        let read = table.read_builder().time_travel(TimeTravel::SnapshotId(id));
        assert!(!rows_of(read).await.is_empty(), "snapshot {id}");
    }
}
