//! Commits through a storage that answers badly, replays, and ties: what the rows are afterwards.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use paimon::format::meta::{COMMIT_MESSAGE_VERSION, CommitMessage};
use paimon::format::options::Options;
use paimon::{ErrorKind, SchemaBuilder, Table, TableSchema, WriteBuilder};
use paimon_testkit::faulty::{CallKind, Fault, FaultPlan, Rule};

use crate::faulty_place::FaultyPlace;
use crate::support::{kv, kv_schema, rows};

/// `k INT NOT NULL, s BIGINT` with sums: whatever is counted twice shows.
pub(crate) fn sums_schema() -> SchemaBuilder {
    TableSchema::builder()
        .column("k", "INT".parse().unwrap())
        .column("s", "BIGINT".parse().unwrap())
        .primary_key(["k"])
        .option("bucket", "1")
        .option("merge-engine", "aggregation")
        .option("fields.s.aggregate-function", "sum")
}

/// With the row (1, 5).
async fn sums(place: &FaultyPlace) -> Table {
    let table = place.create(sums_schema()).await;
    add(&table.write_builder(), 5).await.unwrap();
    table
}

/// What adds to the row of key 1.
async fn prepare(builder: &WriteBuilder, value: i64) -> paimon::Result<Vec<CommitMessage>> {
    let columns: [(&str, ArrayRef); 2] = [
        ("k", Arc::new(Int32Array::from(vec![1]))),
        ("s", Arc::new(Int64Array::from(vec![value]))),
    ];
    let mut write = builder.new_write()?;
    write.write(&RecordBatch::try_from_iter(columns).unwrap()).await?;
    let messages = write.prepare_commit(true).await;
    write.abort().await;
    messages
}

pub(crate) async fn add(builder: &WriteBuilder, value: i64) -> paimon::Result<Vec<i64>> {
    let messages = prepare(builder, value).await?;
    builder.new_commit()?.commit(1, messages).await
}

#[tokio::test]
async fn a_lost_answer_counts_once() {
    let place = FaultyPlace::new();
    let table = sums(&place).await;
    let lost = Rule::new(CallKind::PutIfAbsent, "snapshot/snapshot-2", Fault::LoseAnswer);
    place.storage.follow(FaultPlan::new().rule(lost));
    assert_eq!(add(&table.write_builder(), 5).await.unwrap(), [2]);
    place.heal();
    assert_eq!(table.snapshots(10).await.unwrap().len(), 2);
    assert_eq!(rows(&table).await, ["1 10"]);
    assert_eq!(place.unreferenced(&table).await, [""; 0]);
}

#[tokio::test]
async fn two_that_want_the_same_id_both_get_one() {
    let place = FaultyPlace::new();
    let table = sums(&place).await;
    let (one, other) = (table.write_builder(), table.write_builder());
    let messages = (prepare(&one, 5).await.unwrap(), prepare(&other, 7).await.unwrap());
    let (one, other) = (one.new_commit().unwrap(), other.new_commit().unwrap());
    // Both are waited for at every call, so that both have looked at snapshot 1 when the first one publishes.
    place.slow();
    let (first, second) = futures::join!(one.commit(1, messages.0), other.commit(1, messages.1));
    place.heal();
    let mut ids = [first.unwrap(), second.unwrap()].concat();
    ids.sort_unstable();
    assert_eq!(ids, [2, 3]);
    assert_eq!(rows(&table).await, ["1 17"]);
    let published = place.storage.calls();
    let published = published
        .iter()
        .filter(|call| call.call == CallKind::PutIfAbsent && call.path == "snapshot/snapshot-2");
    assert_eq!(published.count(), 2, "they did not meet");
}

#[tokio::test]
async fn what_the_storage_refuses_is_neither_there_nor_absent() {
    for (call, path) in [
        (CallKind::Size, "snapshot/*"),
        (CallKind::Read, "snapshot/*"),
        (CallKind::PutIfAbsent, "snapshot/*"),
    ] {
        let place = FaultyPlace::new();
        let table = sums(&place).await;
        let builder = table.write_builder();
        let messages = prepare(&builder, 5).await.unwrap();
        let refused = Rule::new(call, path, Fault::Refuse).times(usize::MAX);
        place.storage.follow(FaultPlan::new().rule(refused));
        let outcome = builder.new_commit().unwrap().commit(1, messages).await;
        place.heal();
        let expected = match outcome {
            Ok(ids) => {
                assert_eq!(ids, [2], "{call:?}");
                "1 10"
            }
            Err(error) => {
                assert!(error.to_string().contains("403 by plan"), "{call:?}: {error}");
                "1 5"
            }
        };
        assert_eq!(rows(&table).await, [expected], "{call:?}");
    }
}

#[tokio::test]
async fn a_wrong_hint_hides_no_row() {
    for hint in [None, Some(""), Some("1"), Some("7")] {
        let place = FaultyPlace::new();
        let table = sums(&place).await;
        add(&table.write_builder(), 5).await.unwrap();
        match hint {
            None => table.storage().delete("snapshot/LATEST").await.unwrap(),
            Some(hint) => table.storage().put("snapshot/LATEST", hint.into()).await.unwrap(),
        }
        let reopened = Table::open("t", Options::new(), &place.context).await.unwrap();
        assert_eq!(rows(&reopened).await, ["1 10"], "{hint:?}");
    }
}

#[tokio::test]
async fn a_commit_offered_again_counts_once_with_many_commits_of_others_between() {
    let place = FaultyPlace::new();
    let table = sums(&place).await;
    let builder = table.write_builder().commit_user("u1");
    let messages = prepare(&builder, 5).await.unwrap();
    let sent: Vec<Vec<u8>> = messages
        .iter()
        .map(|message| message.to_bytes(COMMIT_MESSAGE_VERSION).unwrap())
        .collect();
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();
    // A later commit of the same user, so that the first snapshots may expire.
    let later = prepare(&builder, 1).await.unwrap();
    builder.new_commit().unwrap().commit(2, later).await.unwrap();
    let others = table
        .write_builder()
        .commit_user("others")
        .new_commit()
        .unwrap()
        .with_empty_commits();
    for identifier in 1..=300 {
        others.commit(identifier, Vec::new()).await.unwrap();
    }
    for id in 1..=2 {
        table
            .storage()
            .delete(&format!("snapshot/snapshot-{id}"))
            .await
            .unwrap();
    }
    table.storage().put("snapshot/EARLIEST", "3".into()).await.unwrap();
    let recovered = || {
        let messages = sent.iter();
        messages
            .map(|bytes| CommitMessage::from_bytes(COMMIT_MESSAGE_VERSION, bytes).unwrap())
            .collect()
    };
    let again = table.write_builder().commit_user("u1").new_commit().unwrap();
    assert_eq!(again.filter_and_commit(vec![(1, recovered())]).await.unwrap(), 0);
    assert_eq!(rows(&table).await, ["1 11"]);
    // The same files as another user's commit are refused.
    let stranger = table.write_builder().commit_user("u2").new_commit().unwrap();
    let error = stranger.filter_and_commit(vec![(1, recovered())]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(rows(&table).await, ["1 11"]);
}

#[tokio::test]
async fn two_rows_with_one_sequence_number_have_one_winner_everywhere() {
    let place = FaultyPlace::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    let builders = [table.write_builder(), table.write_builder()];
    let mut prepared = Vec::new();
    for (builder, value) in builders.iter().zip(["8", "9"]) {
        let mut write = builder.new_write().unwrap();
        let (batch, kinds) = kv(&[("+I", 1, value)]);
        write.write_with_kinds(&batch, &kinds).await.unwrap();
        prepared.push((builder.new_commit().unwrap(), write));
    }
    for (commit, mut write) in prepared {
        let messages = write.prepare_commit(true).await.unwrap();
        commit.commit(1, messages).await.unwrap();
        write.abort().await;
    }
    assert_eq!(rows(&table).await, ["1 9"]);
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, ["1 9"]);
}
