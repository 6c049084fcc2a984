//! A writer that compacts, in a bucket that others change meanwhile: what it looked up or merged must still be so when it commits.

use paimon::format::meta::CommitMessage;
use paimon::{CommittedPart, ErrorKind, Selection, Table, TableCommit, TableWrite};

use crate::support::{Place, commit, kv, kv_schema, rows, with};

/// Writes rows and compacts; what is to be committed.
async fn written(write: &mut TableWrite, rows: &[(&str, i32, &str)]) -> Vec<CommitMessage> {
    let (batch, kinds) = kv(rows);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    write.prepare_commit(true).await.unwrap()
}

/// Only the rows get in, and the next compaction takes them up.
async fn only_rows_are_committed(table: &Table, committer: &TableCommit, messages: Vec<CommitMessage>) {
    let committed = committer.commit(2, messages.clone()).await;
    let error = committer.or_abort(committed, 2, &messages).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let left = committer.committed_in_part(2, &messages).await.unwrap();
    assert_eq!(left, CommittedPart::Written);
    table.compact_builder().run().await.unwrap();
}

#[tokio::test]
async fn old_rows_are_not_taken_from_files_that_are_gone() {
    for (options, compacted, truncated) in [
        (
            &[
                ("merge-engine", "aggregation"),
                ("fields.v.aggregate-function", "listagg"),
                ("changelog-producer", "lookup"),
            ][..],
            ["1 a,b,c", "9 x"],
            ["1 c"],
        ),
        (&[("deletion-vectors.enabled", "true")], ["1 c", "9 x"], ["1 c"]),
        (&[("merge-engine", "first-row")], ["1 a", "9 x"], ["1 c"]),
    ] {
        for truncate in [false, true] {
            let place = Place::new();
            let schema = options
                .iter()
                .fold(kv_schema(), |schema, (key, value)| schema.option(*key, *value));
            let table = place.create(schema).await;
            commit(&table, &[("+I", 1, "a")]).await;
            table.compact_builder().full(true).run().await.unwrap();
            let builder = table.write_builder();
            let committer = builder.new_commit().unwrap();
            let mut write = builder.new_write().unwrap();
            let messages = written(&mut write, &[("+I", 9, "x")]).await;
            committer.commit(1, messages).await.unwrap();

            let expected = match truncate {
                true => {
                    committer.truncate(&Selection::all()).await.unwrap();
                    &truncated[..]
                }
                false => {
                    commit(&with(&table, "write-only", "true"), &[("+I", 1, "b")]).await;
                    table.compact_builder().full(true).run().await.unwrap();
                    &compacted
                }
            };
            let messages = written(&mut write, &[("+I", 1, "c")]).await;
            only_rows_are_committed(&table, &committer, messages).await;
            write.abort().await;
            assert_eq!(rows(&table).await, expected, "{options:?}");
        }
    }
}

#[tokio::test]
async fn rows_that_were_hidden_during_a_compaction_stay_so() {
    let place = Place::new();
    let table = place
        .create(kv_schema().option("deletion-vectors.enabled", "true"))
        .await;
    commit(&table, &[("+I", 1, "a"), ("+I", 3, "a")]).await;
    table.compact_builder().full(true).run().await.unwrap();
    commit(&table, &[("+I", 2, "a")]).await;

    let builder = table.write_builder();
    let committer = builder.new_commit().unwrap();
    let mut write = builder.new_write().unwrap();
    let (partition, bucket) = {
        let mut buckets = table
            .buckets(&paimon::TimeTravel::Latest, &Selection::all())
            .await
            .unwrap();
        let only = buckets.remove(0);
        (only.partition.row().clone(), only.bucket)
    };
    write.compact(&partition, bucket, true).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    assert_eq!(messages[0].increment.compact.compact_before.len(), 2);
    commit(&table, &[("-D", 1, "")]).await;

    let committed = committer.commit(1, messages.clone()).await;
    let error = committer.or_abort(committed, 1, &messages).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    write.abort().await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, ["2 a", "3 a"]);
}

/// A delete is dropped when nothing is below it: a row that came there meanwhile must not stay.
#[tokio::test]
async fn deletes_are_not_dropped_above_rows_that_came_meanwhile() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.write_builder();
    let committer = builder.new_commit().unwrap();
    let mut write = builder.new_write().unwrap();
    // Nothing is below these rows when the bucket is opened.
    let (batch, kinds) = kv(&[("-D", 7, ""), ("-D", 7, ""), ("-D", 1, "")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();

    commit(&with(&table, "write-only", "true"), &[("+I", 1, "a")]).await;
    table.compact_builder().full(true).run().await.unwrap();
    let bucket = write.open_buckets().swap_remove(0);
    write.compact(&bucket.0, bucket.1, true).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    only_rows_are_committed(&table, &committer, messages).await;
    write.abort().await;
    assert_eq!(rows(&table).await, [""; 0]);
}
