//! Commit users, identifiers, recovery.

use paimon::format::meta::{COMMIT_MESSAGE_VERSION, CommitMessage};
use paimon::{CommittedPart, ErrorKind};

use crate::support::{Place, commit, kv, kv_schema, rows, with};

#[tokio::test]
async fn a_commit_that_is_offered_again_is_recognised() {
    let place = Place::new();
    let table = place.create(kv_schema().option("write-only", "true")).await;
    let builder = table.write_builder().commit_user("u1");
    let mut write = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 1, "a")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    let sent: Vec<Vec<u8>> = messages
        .iter()
        .map(|message| message.to_bytes(COMMIT_MESSAGE_VERSION).unwrap())
        .collect();
    builder.new_commit().unwrap().commit(1, messages).await.unwrap();

    // A new process of the user does not know whether its predecessor came that far.
    let recovered = |user: &str| {
        let messages = sent
            .iter()
            .map(|bytes| CommitMessage::from_bytes(COMMIT_MESSAGE_VERSION, bytes).unwrap());
        (
            table.write_builder().commit_user(user).new_commit().unwrap(),
            messages.collect::<Vec<_>>(),
        )
    };
    let (commit, messages) = recovered("u1");
    assert_eq!(commit.filter_and_commit(vec![(1, messages)]).await.unwrap(), 0);
    assert_eq!(table.snapshots(10).await.unwrap().len(), 1);

    // Of another user it is another commit, of files that are in the table already.
    let (commit, messages) = recovered("u2");
    let error = commit.filter_and_commit(vec![(1, messages)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(rows(&table).await, ["1 a"]);
}

/// What was written is in the table, what was compacted of it lost to another compaction: no file may go.
#[tokio::test]
async fn a_commit_that_is_there_in_part_keeps_its_files() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    commit(&with(&table, "write-only", "true"), &[("+I", 1, "a")]).await;
    commit(&with(&table, "write-only", "true"), &[("+I", 2, "a")]).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 3, "b")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let bucket = write.open_buckets().swap_remove(0);
    write.compact(&bucket.0, bucket.1, true).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    table.compact_builder().full(true).run().await.unwrap();

    let committer = builder.new_commit().unwrap();
    let committed = committer.commit(1, messages.clone()).await;
    let error = committer.or_abort(committed, 1, &messages).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    let left = async |identifier: i64, messages: &[CommitMessage]| {
        committer.committed_in_part(identifier, messages).await.unwrap()
    };
    assert_eq!(left(1, &messages).await, CommittedPart::Written);
    assert_eq!(left(2, &messages).await, CommittedPart::Nothing);
    write.abort().await;
    assert_eq!(rows(&table).await, ["1 a", "2 a", "3 b"]);

    // Only its answer is lost.
    let mut write = builder.new_write().unwrap();
    write.compact(&bucket.0, bucket.1, true).await.unwrap();
    let compacted = write.prepare_commit(true).await.unwrap();
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let written = write.prepare_commit(true).await.unwrap();
    committer
        .commit(2, [compacted.clone(), written.clone()].concat())
        .await
        .unwrap();
    assert_eq!(
        left(2, &[compacted.clone(), written.clone()].concat()).await,
        CommittedPart::All
    );
    assert_eq!(left(2, &written).await, CommittedPart::All);
    assert_eq!(left(2, &compacted).await, CommittedPart::Nothing);
    write.abort().await;
}

#[tokio::test]
async fn a_recovered_commit_whose_files_are_gone_is_refused() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    let (batch, kinds) = kv(&[("+I", 1, "a")]);
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    let commit = builder.new_commit().unwrap();
    commit.abort(&messages).await.unwrap();
    let error = commit.filter_and_commit(vec![(1, messages)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("bucket-0/data-"), "{error}");
    assert!(table.snapshots(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn options_decide_about_empty_commits_too() {
    for (options, snapshots) in [
        (&[("commit.force-create-snapshot", "true")][..], 1),
        (&[("snapshot.ignore-empty-commit", "false")], 1),
        (
            &[
                ("commit.force-create-snapshot", "true"),
                ("snapshot.ignore-empty-commit", "true"),
            ],
            0,
        ),
    ] {
        let place = Place::new();
        let schema = options
            .iter()
            .fold(kv_schema(), |schema, (key, value)| schema.option(*key, *value));
        let table = place.create(schema).await;
        let commit = table.write_builder().new_commit().unwrap();
        assert_eq!(
            commit.commit(1, Vec::new()).await.unwrap().len(),
            snapshots,
            "{options:?}"
        );
    }
}

#[tokio::test]
async fn generated_users_begin_as_the_table_says() {
    let place = Place::new();
    let table = place.create(kv_schema().option("commit.user-prefix", "night")).await;
    let builder = table.write_builder();
    assert!(builder.user().starts_with("night_"), "{}", builder.user());
    assert_eq!(builder.commit_user("day").user(), "day");
}

#[tokio::test]
async fn an_empty_commit_makes_a_snapshot_only_when_asked_for() {
    let place = Place::new();
    let table = place.create(kv_schema()).await;
    let builder = table.write_builder();
    assert!(
        builder
            .new_commit()
            .unwrap()
            .commit(1, Vec::new())
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(
        builder
            .new_commit()
            .unwrap()
            .with_empty_commits()
            .commit(2, Vec::new())
            .await
            .unwrap(),
        [1]
    );
}
