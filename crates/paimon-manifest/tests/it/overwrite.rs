//! Commits that replace what is there.

use std::sync::Arc;

use paimon_format::meta::{HASH_INDEX, IndexFileMeta};
use paimon_manifest::commit::{AppendCheck, ManifestCommittable, Overwrite};
use paimon_manifest::snapshot::CommitKind;

use crate::support::{TestTable, append, compact, env, file, memory, partitioned};

fn hash_index(name: &str) -> IndexFileMeta {
    IndexFileMeta {
        index_type: HASH_INDEX.to_string(),
        file_name: name.to_string(),
        file_size: 4,
        row_count: 1,
        dv_ranges: None,
        external_path: None,
        global_index: None,
    }
}

#[tokio::test]
async fn rows_that_are_written_back_lose_nobodys_changes() {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    table
        .commit(vec![
            append(1, 0, &[file("a", 0, 1, 5)]),
            append(2, 0, &[file("b", 0, 1, 5)]),
        ])
        .await;
    let read_from = table.latest().await.id;
    let other = TestTable::open(
        Arc::clone(&table.storage),
        table.env.clone(),
        table.schema.clone(),
        "other",
    );
    let overwrite = Overwrite {
        read_from: Some(read_from),
        ..Overwrite::default()
    };
    let rewrite = |name: &str| ManifestCommittable::new(i64::MAX, vec![append(1, 0, &[file(name, 0, 1, 5)])]);
    // Rows in another partition, and a compaction, change nothing here.
    other
        .commit
        .commit(
            &ManifestCommittable::new(1, vec![append(2, 1, &[file("c", 0, 6, 9)])]),
            AppendCheck::Skip,
        )
        .await
        .unwrap();
    let compacted = compact(1, 0, &[file("a", 0, 1, 5)], &[file("a2", 5, 1, 5)]);
    other
        .commit
        .commit(&ManifestCommittable::new(2, vec![compacted]), AppendCheck::Skip)
        .await
        .unwrap();
    assert_eq!(table.commit.overwrite(&rewrite("new"), &overwrite).await.unwrap(), [4]);
    assert_eq!(
        table.live().await,
        ["p=1 bucket=0 L5 new", "p=2 bucket=0 L0 b", "p=2 bucket=1 L0 c"]
    );

    other
        .commit
        .commit(
            &ManifestCommittable::new(3, vec![append(1, 1, &[file("d", 0, 6, 9)])]),
            AppendCheck::Skip,
        )
        .await
        .unwrap();
    let error = table.commit.overwrite(&rewrite("late"), &overwrite).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "commit conflict: user other has changed rows in snapshot 5 that were read from snapshot 1 to be written back"
    );
    assert_eq!(table.latest().await.id, 5);
}

#[tokio::test]
async fn an_overwrite_takes_index_files_and_rows_that_come_meanwhile_away() {
    let mut table = TestTable::create(memory(), env(), partitioned()).await;
    let mut message = append(1, 0, &[file("a", 0, 1, 5)]);
    message.increment.data.new_index_files = vec![hash_index("hash-a")];
    let mut other = append(2, 0, &[file("b", 0, 1, 5)]);
    other.increment.data.new_index_files = vec![hash_index("hash-b")];
    table.commit(vec![message, other]).await;
    let mut overwriting = append(1, 1, &[file("new", 0, 1, 5)]);
    overwriting.increment.data.changelog_files = vec![file("changelog", 0, 1, 5)];
    let committable = ManifestCommittable::new(9, vec![overwriting]);
    let ids = table
        .commit
        .overwrite(&committable, &Overwrite::default())
        .await
        .unwrap();
    let snapshot = table.latest().await;
    assert_eq!(
        (ids, snapshot.commit_kind, snapshot.delta_record_count),
        (vec![2], CommitKind::Overwrite, 0)
    );
    assert_eq!(
        (snapshot.changelog_manifest_list, snapshot.commit_identifier),
        (None, 9)
    );
    let index = table
        .scan()
        .manifests()
        .read_index(&snapshot.index_manifest.unwrap())
        .await
        .unwrap();
    let names: Vec<&str> = index.iter().map(|entry| entry.file.file_name.as_str()).collect();
    assert_eq!(names, ["hash-b"]);
    assert_eq!(table.live().await, ["p=1 bucket=1 L5 new", "p=2 bucket=0 L0 b"]);
    assert_eq!(table.commit.truncate(10, None).await.unwrap(), 3);
    assert_eq!(table.live().await, [] as [&str; 0]);
}
