//! Commits: what a snapshot says, conflicts, races, unclear answers, replays.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use paimon_format::ErrorKind;
use paimon_format::env::{Env, SystemClock, SystemIds, TokioRuntime};
use paimon_format::meta::{
    CommitMessage, DELETION_VECTORS_INDEX, DataFileMeta, DeletionVectorRange, HASH_INDEX, IndexFileMeta,
};
use paimon_format::storage::{LocalStorage, Storage};
use paimon_manifest::ManifestError;
use paimon_manifest::commit::{
    AppendCheck, CommitBackend, FileStoreCommit, ManifestCommittable, Published, PutIfAbsentCommit,
};
use paimon_manifest::schema::{SchemaStore, TableSchema};
use paimon_manifest::snapshot::{CommitKind, Snapshot, SnapshotStore};
use paimon_manifest::testing::check_backend;

use crate::faulty::{Answer, Scripted};
use crate::support::{TestTable, append, compact, empty_message, env, file, memory, names, partitioned};

async fn table() -> TestTable {
    TestTable::create(memory(), env(), partitioned()).await
}

#[tokio::test]
async fn an_append_and_a_compaction_make_two_snapshots() {
    let mut table = table().await;
    let (a, b) = (file("a", 0, 1, 5), file("b", 0, 3, 9));
    assert_eq!(table.commit(vec![append(1, 0, std::slice::from_ref(&a))]).await, [1]);
    let mut message = compact(1, 0, &[a, Arc::clone(&b)], &[file("c", 5, 1, 9)]);
    message.increment.data.new_files = vec![b];
    message.increment.compact.changelog_files = vec![file("changelog-1", 5, 1, 2)];
    assert_eq!(table.commit(vec![message]).await, [2, 3]);
    assert_eq!(table.live().await, ["p=1 bucket=0 L5 c"]);
    let mut text = String::new();
    for id in 1..=3 {
        text += &table.snapshots.get(id).await.unwrap().to_json().unwrap();
        text.push('\n');
    }
    insta::assert_snapshot!(text);
    let hint = table.storage.read_all("snapshot/LATEST").await.unwrap();
    assert_eq!(hint, "3");
    // Every file below manifest/ is one that a snapshot names.
    assert_eq!(names(&*table.storage, "manifest").await.len(), 11);
}

#[tokio::test]
async fn watermarks_properties_and_statistics_are_carried() {
    let table = table().await;
    let commit = async |identifier: i64, watermark: Option<i64>, property: Option<&str>| {
        let name = format!("f{identifier}");
        let mut committable = ManifestCommittable::new(identifier, vec![append(1, 0, &[file(&name, 0, 1, 1)])]);
        committable.watermark = watermark;
        committable.properties = property
            .map(|value| ("k".to_string(), value.to_string()))
            .into_iter()
            .collect();
        table.commit.commit(&committable, AppendCheck::Skip).await.unwrap();
        table.latest().await
    };
    let first = commit(1, None, None).await;
    assert_eq!((first.watermark, first.properties), (None, None));
    assert_eq!(commit(2, Some(100), Some("v")).await.properties.unwrap()["k"], "v");
    let third = commit(3, Some(50), None).await;
    assert_eq!((third.watermark, third.properties), (Some(100), None));
    assert_eq!(commit(4, None, None).await.watermark, Some(100));

    // As an ANALYZE would leave it.
    let mut analyzed = table.latest().await;
    analyzed.statistics = Some("stat-1".to_string());
    let put = async |path: &str, text: String| table.storage.put(path, Bytes::from(text)).await.unwrap();
    put(&Snapshot::path(4), analyzed.to_json().unwrap()).await;
    put(
        "statistics/stat-1",
        r#"{"snapshotId":4,"schemaId":0,"colStats":{}}"#.to_string(),
    )
    .await;
    assert_eq!(commit(5, None, None).await.statistics.as_deref(), Some("stat-1"));
    put(
        "statistics/stat-1",
        r#"{"snapshotId":4,"schemaId":7,"colStats":{}}"#.to_string(),
    )
    .await;
    assert_eq!(commit(6, None, None).await.statistics, None, "of another schema");
}

#[tokio::test]
async fn commits_without_files() {
    let mut table = table().await;
    assert_eq!(table.commit(vec![empty_message(1, 0)]).await, [0; 0]);
    table.commit = table.commit.clone().ignore_empty_commit(false);
    assert_eq!(table.commit(vec![]).await, [1]);
    let snapshot = table.latest().await;
    assert_eq!(
        (snapshot.commit_kind, snapshot.delta_record_count),
        (CommitKind::Append, 0)
    );
    assert_eq!(table.live().await, [""; 0]);
}

#[tokio::test]
async fn rows_that_are_taken_away_make_an_overwrite() {
    let mut table = table().await;
    let a = file("a", 0, 1, 5);
    table.commit(vec![append(1, 0, std::slice::from_ref(&a))]).await;
    let mut message = append(1, 0, &[file("b", 0, 1, 2)]);
    message.increment.data.deleted_files = vec![a];
    table.commit(vec![message]).await;
    let snapshot = table.latest().await;
    assert_eq!(snapshot.commit_kind, CommitKind::Overwrite);
    assert_eq!((snapshot.total_record_count, snapshot.delta_record_count), (2, -3));
    assert_eq!(table.live().await, ["p=1 bucket=0 L0 b"]);
}

fn index_file(index_type: &str, name: &str) -> IndexFileMeta {
    IndexFileMeta {
        index_type: index_type.to_string(),
        file_name: name.to_string(),
        file_size: 4,
        row_count: 1,
        dv_ranges: None,
        external_path: None,
        global_index: None,
    }
}

/// Moves a file of the keys `key` and `key + 1` to level 5, with new deletion vectors of its bucket in place of others. All hide a row of `c`.
fn compaction(from: &Arc<DataFileMeta>, key: i32, replaced: &[&str], vectors: &str) -> CommitMessage {
    let to = file(&format!("{}5", from.file_name), 5, key, key + 1);
    let mut message = compact(1, 0, std::slice::from_ref(from), &[to]);
    let index = |name: &&str| IndexFileMeta {
        dv_ranges: Some(vec![DeletionVectorRange {
            data_file_name: "c".to_owned(),
            offset: 1,
            length: 24,
            cardinality: Some(1),
        }]),
        ..index_file(DELETION_VECTORS_INDEX, name)
    };
    message.increment.compact.new_index_files = vec![index(&vectors)];
    message.increment.compact.deleted_index_files = replaced.iter().map(index).collect();
    message
}

/// Every compaction writes the vectors of the whole bucket: of two that began from the same ones, the later would bring back rows that the
/// first has deleted, though they have no data file in common.
#[tokio::test]
async fn a_compaction_from_deletion_vectors_that_are_gone_is_a_conflict() {
    let mut table = table().await;
    let [a, b, c] = [("a", 1), ("b", 3), ("c", 5)].map(|(name, key)| file(name, 0, key, key + 1));
    let all = [&a, &b, &c].map(Arc::clone);
    table.commit(vec![append(1, 0, &all)]).await;
    table.commit(vec![compaction(&a, 1, &[], "v1")]).await;
    for replaced in [&[][..], &["v0"]] {
        let committable = ManifestCommittable::new(9, vec![compaction(&b, 3, replaced, "v2")]);
        let error = table.commit.commit(&committable, AppendCheck::Skip).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("deletion vectors of bucket 0"), "{error}");
    }
    table.commit(vec![compaction(&b, 3, &["v1"], "v2")]).await;
    table.commit(vec![compaction(&c, 5, &["v2"], "v3")]).await;
    assert_eq!(table.live().await.len(), 3);
}

/// A compaction that merges files without knowing that another one has hidden rows of them would bring these back.
#[tokio::test]
async fn a_compaction_of_files_whose_rows_were_hidden_meanwhile_is_a_conflict() {
    let mut table = table().await;
    let [a, c] = [("a", 1), ("c", 5)].map(|(name, key)| file(name, 0, key, key + 1));
    table
        .commit(vec![append(1, 0, &[Arc::clone(&a), Arc::clone(&c)])])
        .await;
    // It hides a row of `c`.
    table.commit(vec![compaction(&a, 1, &[], "v1")]).await;
    let merged = compact(1, 0, std::slice::from_ref(&c), &[file("d", 5, 5, 6)]);
    let committable = ManifestCommittable::new(9, vec![merged]);
    let error = table.commit.commit(&committable, AppendCheck::Skip).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("has deleted rows of c"), "{error}");
    // A file that is only moved keeps its vector.
    let moved = compact(1, 0, std::slice::from_ref(&c), &[file("c", 4, 5, 6)]);
    table.commit(vec![moved]).await;
}

/// What lies above level 0 was looked up, and says which deletes can be dropped.
#[tokio::test]
async fn a_compaction_on_other_upper_levels_is_a_conflict() {
    let mut table = table().await;
    let [a, b, c] = [("a", 1), ("b", 3), ("c", 5)].map(|(name, key)| file(name, 0, key, key + 1));
    table
        .commit(vec![append(1, 0, &[Arc::clone(&a), Arc::clone(&b), Arc::clone(&c)])])
        .await;
    let up = |from: &Arc<DataFileMeta>, key: i32, upper: &[&str]| {
        let to = file(&format!("{}5", from.file_name), 5, key, key + 1);
        let mut message = compact(1, 0, std::slice::from_ref(from), &[to]);
        message.increment.compact.upper_files = Some(upper.iter().map(|&name| name.to_owned()).collect());
        message
    };
    table.commit(vec![up(&a, 1, &["a5"])]).await;
    let mut errors = Vec::new();
    for upper in [&["b5"][..], &["a5", "b5", "x"]] {
        let committable = ManifestCommittable::new(9, vec![up(&b, 3, upper)]);
        let error = table.commit.commit(&committable, AppendCheck::Skip).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        errors.push(error.to_string());
    }
    insta::assert_snapshot!(errors.join("\n"), @r"
    commit conflict: bucket 0: another commit has brought the file a5 above level 0 while it was compacted
    commit conflict: bucket 0: another commit has taken away the file x above level 0 while it was compacted
    ");
    table.commit(vec![up(&b, 3, &["a5", "b5"])]).await;
    // One that does not say what it expects is not asked.
    table.commit(vec![compact(1, 0, &[c], &[file("c5", 5, 5, 6)])]).await;
}

#[tokio::test]
async fn index_files_are_carried_until_they_are_replaced() {
    let mut table = table().await;
    let index = |name: &str| index_file(HASH_INDEX, name);
    let mut message = append(1, 0, &[file("a", 0, 1, 1)]);
    message.increment.data.new_index_files = vec![index("h1")];
    table.commit(vec![message]).await;
    let first = table.latest().await.index_manifest.unwrap();
    table.commit(vec![append(1, 1, &[file("b", 0, 2, 2)])]).await;
    assert_eq!(
        table.latest().await.index_manifest.as_ref(),
        Some(&first),
        "no change: the same file"
    );
    let mut message = append(1, 0, &[file("c", 0, 3, 3)]);
    message.increment.data.new_index_files = vec![index("h2")];
    message.increment.data.deleted_index_files = vec![index("h1")];
    table.commit(vec![message.clone()]).await;
    let entries = table
        .scan()
        .manifests()
        .read_index(&table.latest().await.index_manifest.unwrap())
        .await
        .unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].file.file_name, "h2");

    // The keys of a dynamic bucket have one writer: an index that builds on another one than there is.
    message.increment.data.new_index_files = vec![index("h3")];
    let committable = |message| ManifestCommittable::new(9, vec![message]);
    let refused = table
        .commit
        .commit(&committable(message.clone()), AppendCheck::Skip)
        .await;
    let error = refused.unwrap_err();
    assert_eq!(
        error.to_string(),
        "commit conflict: h3, the index of the keys in bucket 0, builds on h1, but there is h2: another job has written new keys"
    );
    message.increment.data.deleted_index_files.clear();
    let refused = table.commit.commit(&committable(message), AppendCheck::Skip).await;
    let error = refused.unwrap_err();
    assert!(
        error.to_string().contains("builds on no index, but there is h2"),
        "{error}"
    );
}

#[tokio::test]
async fn conflicts_are_told_and_leave_nothing_behind() {
    let mut table = table().await;
    let (a, b) = (file("a", 0, 1, 5), file("b", 0, 6, 9));
    table
        .commit(vec![append(1, 0, &[Arc::clone(&a), Arc::clone(&b)])])
        .await;
    table
        .commit(vec![compact(1, 0, std::slice::from_ref(&a), &[file("c", 5, 1, 5)])])
        .await;
    let before = names(&*table.storage, "manifest").await;
    let mut other_buckets = compact(1, 0, std::slice::from_ref(&b), &[file("d", 5, 6, 9)]);
    other_buckets.total_buckets = Some(4);
    let mut errors = Vec::new();
    for message in [
        compact(1, 0, &[a], &[file("d", 4, 1, 5)]),
        compact(1, 0, std::slice::from_ref(&b), &[file("d", 5, 5, 9)]),
        compact(1, 0, &[], &[file("d", 4, 1, 2), file("e", 4, 2, 3)]),
        compact(1, 0, &[], &[file("d", 4, 1, 2), file("d", 4, 1, 2)]),
        compact(1, 0, &[], &[file("c", 5, 1, 5)]),
        other_buckets,
    ] {
        let committable = ManifestCommittable::new(9, vec![message]);
        let error = table.commit.commit(&committable, AppendCheck::Skip).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        errors.push(error.to_string());
    }
    insta::assert_snapshot!(errors.join("\n"));
    assert_eq!(names(&*table.storage, "manifest").await, before);
    assert_eq!(table.latest().await.id, 2);
    // What does not conflict: other levels, other partitions, other buckets, and appends of the very same keys.
    table
        .commit(vec![
            compact(1, 0, &[b], &[file("d", 5, 6, 9)]),
            compact(2, 0, &[], &[file("e", 5, 1, 9)]),
        ])
        .await;
    table
        .commit(vec![
            compact(1, 1, &[], &[file("f", 5, 1, 9)]),
            append(1, 0, &[file("g", 0, 1, 9)]),
        ])
        .await;
}

#[tokio::test]
async fn put_if_absent_keeps_the_backends_promises() {
    let storage = memory();
    let backend = PutIfAbsentCommit::new(Arc::clone(&storage));
    check_backend(&backend, &SnapshotStore::new(storage, env()), 20, 8)
        .await
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path(), env()));
    let backend = PutIfAbsentCommit::new(Arc::clone(&storage));
    check_backend(&backend, &SnapshotStore::new(storage, env()), 10, 4)
        .await
        .unwrap();
}

/// Runs on tokio's threads, with real time and random names.
fn real_env(folder: &std::path::Path) -> Env {
    Env {
        clock: Arc::new(SystemClock),
        ids: Arc::new(SystemIds),
        runtime: Arc::new(TokioRuntime::with_threads(tokio::runtime::Handle::current(), 2).unwrap()),
        ..Env::fixed(folder)
    }
}

#[expect(clippy::disallowed_methods, reason = "real threads are what is tested")]
async fn many_committers_at_once(storage: Arc<dyn Storage>, env: Env) {
    const COMMITTERS: i32 = 6;
    const COMMITS: i64 = 8;
    let schema = partitioned()
        .option("commit.max-retries", "1000")
        .option("commit.max-retry-wait", "20 ms")
        .option("manifest.merge-min-count", "5")
        .build(0)
        .unwrap();
    SchemaStore::new(Arc::clone(&storage)).create(&schema).await.unwrap();
    let committers: Vec<_> = (0..COMMITTERS)
        .map(|committer| {
            let user = format!("user-{committer}");
            let commit = FileStoreCommit::new(Arc::clone(&storage), env.clone(), &schema, user).unwrap();
            tokio::spawn(async move {
                for identifier in 1..=COMMITS {
                    let new = file(&format!("new-{committer}-{identifier}"), 0, 1, 9);
                    let mut message = append(1, 0, &[new]);
                    // One of them compacts its own bucket as well.
                    if committer == 0 {
                        message.bucket = 1;
                        let old = file(&format!("new-0-{identifier}"), 0, 1, 9);
                        let low = identifier as i32 * 10;
                        message.increment.compact.compact_before = vec![old];
                        message.increment.compact.compact_after =
                            vec![file(&format!("old-{identifier}"), 5, low, low + 9)];
                    }
                    let committable = ManifestCommittable::new(identifier, vec![message]);
                    commit.commit(&committable, AppendCheck::Skip).await.unwrap();
                }
            })
        })
        .collect();
    for committer in committers {
        committer.await.unwrap();
    }

    let table = TestTable::open(Arc::clone(&storage), env, schema, "reader");
    let mut expected = BTreeSet::new();
    for identifier in 1..=COMMITS {
        expected.insert(format!("p=1 bucket=1 L5 old-{identifier}"));
        expected.extend((1..COMMITTERS).map(|committer| format!("p=1 bucket=0 L0 new-{committer}-{identifier}")));
    }
    assert_eq!(table.live().await, expected.into_iter().collect::<Vec<_>>());
    let ids = table.snapshots.list_ids().await.unwrap();
    assert_eq!(
        ids,
        (1..=i64::from(COMMITTERS + 1) * COMMITS).collect::<Vec<_>>(),
        "no gap, none twice"
    );
    // Every snapshot is whole, and no metadata file is left over.
    let mut named = BTreeSet::new();
    let mut commits = BTreeSet::new();
    for id in ids {
        let snapshot = table.snapshots.get(id).await.unwrap();
        assert!(commits.insert((
            snapshot.commit_user.clone(),
            snapshot.commit_identifier,
            snapshot.commit_kind.to_string()
        )));
        for (list, size) in [
            (&snapshot.base_manifest_list, snapshot.base_manifest_list_size),
            (&snapshot.delta_manifest_list, snapshot.delta_manifest_list_size),
        ] {
            named.insert(format!("manifest/{list}"));
            for manifest in table.scan().manifests().read_list(list, size).await.unwrap() {
                table.scan().manifests().read_manifest(&manifest).await.unwrap();
                named.insert(format!("manifest/{}", manifest.file_name));
            }
        }
    }
    assert_eq!(
        names(&*storage, "manifest").await,
        named.into_iter().collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_committers_at_once_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    many_committers_at_once(memory(), real_env(folder.path())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_committers_at_once_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let env = real_env(folder.path());
    many_committers_at_once(Arc::new(LocalStorage::new(folder.path().join("t"), env.clone())), env).await;
}

/// A table with one snapshot, on a storage whose answers can be scripted from now on.
async fn scripted() -> (TestTable, Arc<Scripted>) {
    let storage = Arc::new(Scripted::new(memory()));
    let mut table = TestTable::create(Arc::clone(&storage) as Arc<dyn Storage>, env(), partitioned()).await;
    table.commit(vec![append(1, 0, &[file("first", 0, 1, 1)])]).await;
    (table, storage)
}

async fn commit(table: &TestTable, name: &str) -> Result<Vec<i64>, ManifestError> {
    let committable = ManifestCommittable::new(7, vec![append(1, 0, &[file(name, 0, 1, 1)])]);
    table.commit.commit(&committable, AppendCheck::Skip).await
}

/// Whether the latest snapshot is whole and holds exactly these files.
async fn assert_live(table: &TestTable, files: &[&str]) {
    let lines: Vec<String> = files.iter().map(|name| format!("p=1 bucket=0 L0 {name}")).collect();
    assert_eq!(table.live().await, lines);
}

#[tokio::test]
async fn an_attempt_reads_the_index_manifest_once() {
    let (mut table, storage) = scripted().await;
    let [a, b, c] = [("a", 1), ("b", 3), ("c", 5)].map(|(name, key)| file(name, 0, key, key + 1));
    let all = [&a, &b, &c].map(Arc::clone);
    table.commit(vec![append(1, 0, &all)]).await;
    table.commit(vec![compaction(&a, 1, &[], "v1")]).await;
    let once = || storage.script("read", "manifest/index-manifest-", &[Answer::Fine, Answer::Refused]);
    once();
    table.commit(vec![compaction(&b, 3, &["v1"], "v2")]).await;
    // The second answer is still there.
    assert!(storage.read_all("manifest/index-manifest-").await.is_err());

    once();
    table.commit.truncate(9, None).await.unwrap();
    assert!(!storage.exhausted());
}

#[tokio::test]
async fn a_lost_answer_is_looked_up() {
    for answer in [Answer::Lost, Answer::Twice] {
        let (table, storage) = scripted().await;
        storage.script("put_if_absent", "snapshot/", &[answer]);
        assert_eq!(commit(&table, "second").await.unwrap(), [2], "{answer:?}");
        assert!(storage.exhausted());
        assert_eq!(table.snapshots.list_ids().await.unwrap(), [1, 2]);
        assert_live(&table, &["first", "second"]).await;
    }
}

#[tokio::test]
async fn a_lost_answer_that_cannot_be_looked_up_at_once_is_looked_up_later() {
    let (table, storage) = scripted().await;
    storage.script("put_if_absent", "snapshot/", &[Answer::Lost]);
    storage.script("read", "snapshot/snapshot-2", &[Answer::Unavailable]);
    assert_eq!(commit(&table, "second").await.unwrap(), [2]);
    assert!(storage.exhausted());
    assert_eq!(table.snapshots.list_ids().await.unwrap(), [1, 2]);
    assert_live(&table, &["first", "second"]).await;
}

#[tokio::test]
async fn the_own_snapshot_is_found_below_those_of_others() {
    let (table, storage) = scripted().await;
    storage.script("put_if_absent", "snapshot/", &[Answer::Lost]);
    // Both looks at the file fail; meanwhile (as far as this committer sees) others go on. The next attempt finds snapshot 2.
    storage.script("read", "snapshot/snapshot-2", &[Answer::Unavailable]);
    let other = Other::new(&table);
    let (ours, ()) = futures::join!(commit(&table, "second"), other.commit_later("third"));
    assert_eq!(ours.unwrap(), [2]);
    assert_eq!(table.snapshots.list_ids().await.unwrap(), [1, 2, 3]);
    assert_live(&table, &["first", "second", "third"]).await;
}

/// Another committer of the same table.
struct Other(FileStoreCommit, Env);

impl Other {
    fn new(table: &TestTable) -> Self {
        let commit = FileStoreCommit::new(Arc::clone(&table.storage), table.env.clone(), &table.schema, "other");
        Self(commit.unwrap(), table.env.clone())
    }

    async fn commit_later(&self, name: &str) {
        // Sleeping lets the first committer run until it sleeps itself.
        self.1.runtime.sleep(Duration::from_millis(1)).await;
        let committable = ManifestCommittable::new(1, vec![append(1, 0, &[file(name, 0, 1, 1)])]);
        self.0.commit(&committable, AppendCheck::Skip).await.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_stays_unclear_is_told_and_nothing_is_deleted() {
    let (table, storage) = scripted().await;
    storage.script("put_if_absent", "snapshot/", &[Answer::Lost; 1]);
    storage.script("put_if_absent", "snapshot/", &[Answer::Unavailable; 50]);
    storage.script("read", "snapshot/snapshot-2", &[Answer::Unavailable; 50]);
    let error = commit(&table, "second").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    insta::assert_snapshot!(error, @"commit given up after 11 attempts, its snapshot may be there all the same: snapshot/snapshot-2: storage unavailable: 503 Slow Down");
    // It was there all the time: with the storage back, it is whole.
    let healed = TestTable::open(storage.below(), env(), table.schema.clone(), "reader");
    assert_live(&healed, &["first", "second"]).await;
}

#[tokio::test]
async fn manifests_that_cannot_be_written_at_first_are_written_later() {
    let (table, storage) = scripted().await;
    storage.script("create", "manifest/manifest-", &[Answer::Unavailable; 2]);
    assert_eq!(commit(&table, "second").await.unwrap(), [2]);
    assert!(storage.exhausted());
    assert_live(&table, &["first", "second"]).await;
}

#[tokio::test]
async fn a_commit_that_never_reaches_the_storage_leaves_nothing_behind() {
    let (table, storage) = scripted().await;
    let before = names(&*table.storage, "manifest").await;
    storage.script("create", "manifest/manifest-list-", &[Answer::Unavailable; 1000]);
    let error = commit(&table, "second").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(matches!(error, ManifestError::GaveUp { .. }), "it is certain");
    assert_eq!(names(&*table.storage, "manifest").await, before);
    assert_eq!(table.snapshots.list_ids().await.unwrap(), [1]);
}

#[tokio::test]
async fn a_refused_look_is_neither_absent_nor_present() {
    for call in ["size", "put_if_absent"] {
        let (table, storage) = scripted().await;
        let path = if call == "size" {
            "snapshot/"
        } else {
            "snapshot/snapshot-"
        };
        storage.script(call, path, &[Answer::Refused; 50]);
        let error = commit(&table, "second").await.unwrap_err().to_string();
        assert!(error.contains("403 Forbidden"), "{error}");
        let healed = TestTable::open(storage.below(), env(), table.schema.clone(), "reader");
        assert_eq!(healed.snapshots.list_ids().await.unwrap(), [1]);
        assert_live(&healed, &["first"]).await;
    }
}

#[tokio::test]
async fn wrong_hints_do_not_mislead_a_commit() {
    for hint in [None, Some(""), Some("1"), Some("9"), Some("no number")] {
        let mut table = table().await;
        for name in ["a", "b"] {
            table.commit(vec![append(1, 0, &[file(name, 0, 1, 1)])]).await;
        }
        match hint {
            None => table.storage.delete("snapshot/LATEST").await.unwrap(),
            Some(hint) => table.storage.put("snapshot/LATEST", Bytes::from(hint)).await.unwrap(),
        }
        assert_live(&table, &["a", "b"]).await;
        assert_eq!(
            table.commit(vec![append(1, 0, &[file("c", 0, 1, 1)])]).await,
            [3],
            "hint {hint:?}"
        );
        assert_live(&table, &["a", "b", "c"]).await;
    }
}

#[tokio::test]
async fn a_hint_that_cannot_be_written_does_no_harm() {
    let (table, storage) = scripted().await;
    storage.script("put", "snapshot/LATEST", &[Answer::Unavailable; 5]);
    assert_eq!(commit(&table, "second").await.unwrap(), [2]);
    assert_live(&table, &["first", "second"]).await;
}

#[tokio::test]
async fn a_replayed_commit_is_recognised() {
    let storage = memory();
    let mut table = TestTable::create(Arc::clone(&storage), env(), partitioned()).await;
    let committable = |identifier: i64| {
        let name = format!("f{identifier}");
        ManifestCommittable::new(identifier, vec![append(1, 0, &[file(&name, 0, 1, 1)])])
    };
    let open = |user: &str| FileStoreCommit::new(Arc::clone(&storage), table.env.clone(), &table.schema, user).unwrap();
    let (u1, u2) = (open("u1"), open("u2"));
    for name in ["f1", "f2", "f3", "of-u2"] {
        storage
            .put(&format!("p=1/bucket-0/{name}"), Bytes::from(vec![0; 100]))
            .await
            .unwrap();
    }
    u1.commit(&committable(1), AppendCheck::Skip).await.unwrap();
    u1.commit(&committable(2), AppendCheck::Skip).await.unwrap();
    assert_eq!(
        u1.filter_and_commit(vec![committable(2), committable(1)])
            .await
            .unwrap(),
        0
    );
    assert_eq!(table.snapshots.latest_id().await.unwrap(), Some(2));

    // 300 snapshots of others later, and with the first of its own expired.
    let mut snapshot = table.latest().await;
    for id in 3..=302 {
        snapshot = Snapshot {
            id,
            commit_user: "other".to_string(),
            ..snapshot
        };
        storage
            .put(&Snapshot::path(id), Bytes::from(snapshot.to_json().unwrap()))
            .await
            .unwrap();
    }
    storage.delete(&Snapshot::path(1)).await.unwrap();
    assert_eq!(
        u1.filter_and_commit(vec![committable(1), committable(2)])
            .await
            .unwrap(),
        0
    );
    assert_eq!(
        u1.filter_and_commit(vec![committable(2), committable(3)])
            .await
            .unwrap(),
        1,
        "only the new one"
    );
    assert_eq!(table.snapshots.latest_id().await.unwrap(), Some(303));

    // Of another user it is another commit; its files are there already, which the check notices.
    let error = u2.filter_and_commit(vec![committable(1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let fresh = ManifestCommittable::new(1, vec![append(1, 0, &[file("of-u2", 0, 1, 1)])]);
    assert_eq!(u2.filter_and_commit(vec![fresh]).await.unwrap(), 1);
    table.commit(vec![]).await;
}

/// Two processes recover the same commit at once: the snapshot of the one comes while the other tries its own.
#[tokio::test]
async fn a_commit_that_is_recovered_twice_at_once_is_made_once() {
    let table = table().await;
    let committable = |name: &str| ManifestCommittable::new(7, vec![append(1, 0, &[file(name, 0, 1, 1)])]);
    for name in ["mine", "theirs"] {
        let path = format!("p=1/bucket-0/{name}");
        table.storage.put(&path, Bytes::from(vec![0; 100])).await.unwrap();
    }
    let twin = FileStoreCommit::new(Arc::clone(&table.storage), table.env.clone(), &table.schema, "user").unwrap();
    let rival = CommitsFirst {
        twin: twin.clone(),
        committable: committable("theirs"),
        publishes: PutIfAbsentCommit::new(Arc::clone(&table.storage)),
    };
    let commit = twin.with_backend(Arc::new(rival));
    assert_eq!(commit.filter_and_commit(vec![committable("mine")]).await.unwrap(), 0);
    assert_eq!(table.latest().await.id, 1);
    assert_live(&table, &["theirs"]).await;
}

/// Commits something else the first time that it is asked to publish.
#[derive(Debug)]
struct CommitsFirst {
    twin: FileStoreCommit,
    committable: ManifestCommittable,
    publishes: PutIfAbsentCommit,
}

#[async_trait]
impl CommitBackend for CommitsFirst {
    async fn publish(&self, base: Option<&Snapshot>, next: &Snapshot) -> Result<Published, ManifestError> {
        if base.is_none() {
            self.twin.commit(&self.committable, AppendCheck::Skip).await?;
        }
        self.publishes.publish(base, next).await
    }
}

#[tokio::test]
async fn recovery_does_not_commit_files_that_are_gone() {
    let table = table().await;
    let message = append(1, 0, &[file("here", 0, 1, 1), file("gone", 0, 2, 2)]);
    table
        .storage
        .put("p=1/bucket-0/here", Bytes::from(vec![0; 100]))
        .await
        .unwrap();
    let committables = vec![ManifestCommittable::new(1, vec![message])];
    let error = table.commit.filter_and_commit(committables.clone()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    insta::assert_snapshot!(error, @"p=1/bucket-0/gone was to be committed, but it is gone: recover from a later state");
    assert_eq!(table.snapshots.latest().await.unwrap(), None);

    // As little may one that was cut short.
    let short = ("p=1/bucket-0/gone", Bytes::from("rows"));
    table.storage.put(short.0, short.1).await.unwrap();
    let error = table.commit.filter_and_commit(committables).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    insta::assert_snapshot!(error, @"p=1/bucket-0/gone: corrupt: it was to be committed, but has 4 bytes, not 100");
    assert_eq!(table.snapshots.latest().await.unwrap(), None);
}

#[tokio::test]
async fn an_abort_deletes_what_was_written_and_nothing_else() {
    let table = table().await;
    let old = file("old", 0, 1, 1);
    let mut moved = DataFileMeta::clone(&file("moved", 0, 2, 2));
    moved.extra_files = vec!["moved.had".to_owned()];
    let mut after = moved.upgrade(5);
    after.extra_files.push("moved.got".to_owned());
    let mut message = append(1, 0, &[file("new", 0, 3, 3)]);
    message.increment.data.changelog_files = vec![file("changelog", 0, 3, 3)];
    message.increment.compact.compact_before = vec![old, Arc::new(moved)];
    message.increment.compact.compact_after = vec![file("merged", 5, 1, 1), Arc::new(after)];
    for name in [
        "old",
        "moved",
        "moved.had",
        "moved.got",
        "new",
        "changelog",
        "merged",
        "stranger",
    ] {
        table
            .storage
            .put(&format!("p=1/bucket-0/{name}"), Bytes::from("rows"))
            .await
            .unwrap();
    }
    table.commit.abort(&[message]).await.unwrap();
    let left = names(&*table.storage, "p=1/bucket-0").await;
    assert_eq!(
        left,
        ["moved", "moved.had", "old", "stranger"].map(|name| format!("p=1/bucket-0/{name}"))
    );
}

#[tokio::test]
async fn a_table_that_was_dropped_takes_no_commits() {
    let mut table = table().await;
    table.commit(vec![append(1, 0, &[file("a", 0, 1, 1)])]).await;
    table.storage.delete(&TableSchema::path(0)).await.unwrap();
    let error = commit(&table, "b").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let backend: Arc<dyn CommitBackend> = Arc::new(PutIfAbsentCommit::new(Arc::clone(&table.storage)));
    let again = table.commit.clone().with_backend(backend);
    let committable = ManifestCommittable::new(8, vec![append(1, 0, &[file("b", 0, 1, 1)])]);
    let error = again.commit(&committable, AppendCheck::Skip).await.unwrap_err();
    insta::assert_snapshot!(error, @"the table has no schema: it was dropped, or never was");
}
