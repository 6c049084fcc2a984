//! Tables for tests.

use std::path::PathBuf;
use std::sync::Arc;

use paimon_format::env::{Env, TickingClock};
use paimon_format::meta::{CommitMessage, DataFileMeta, FileSource, SimpleStats};
use paimon_format::row::BinaryRow;
use paimon_format::storage::{LocalStorage, MemoryStorage, Storage};
use paimon_format::types::{DataType, Datum, TypeKind};
use paimon_manifest::commit::{AppendCheck, FileStoreCommit, ManifestCommittable};
use paimon_manifest::scan::{BucketFiles, FileStoreScan, ScanKind};
use paimon_manifest::schema::{SchemaBuilder, SchemaStore, TableSchema};
use paimon_manifest::snapshot::{Snapshot, SnapshotStore};

/// The table of a scenario that Java wrote.
pub(crate) fn golden(scenario: &str) -> Arc<dyn Storage> {
    Arc::new(LocalStorage::new(golden_path(scenario), env()))
}

pub(crate) fn golden_path(scenario: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/golden")
        .join(scenario)
        .join("warehouse/default.db/t")
}

/// All scenarios that have a warehouse.
pub(crate) fn golden_scenarios() -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden");
    let mut names: Vec<String> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| golden_path(name).join("schema/schema-0").exists())
        .collect();
    names.sort();
    assert!(names.len() >= 20, "the Java-written tables are not there: {names:?}");
    names
}

/// A fixed environment: everything inline, names count up.
pub(crate) fn env() -> Env {
    Env::fixed(std::env::temp_dir())
}

/// An empty folder in memory.
pub(crate) fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new(Arc::new(TickingClock::new(0, 1))))
}

pub(crate) fn int() -> DataType {
    DataType::nullable(TypeKind::Int)
}

/// `p INT, k INT, v INT`, partitioned by `p`, primary key `(p, k)`, two buckets.
pub(crate) fn partitioned() -> SchemaBuilder {
    TableSchema::builder()
        .column("p", int())
        .column("k", int())
        .column("v", int())
        .primary_key(["p", "k"])
        .partition_keys(["p"])
        .option("bucket", "2")
}

/// A table on a storage, with one committer.
pub(crate) struct TestTable {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) env: Env,
    pub(crate) schema: TableSchema,
    pub(crate) commit: FileStoreCommit,
    pub(crate) snapshots: SnapshotStore,
    next_identifier: i64,
}

impl TestTable {
    pub(crate) async fn create(storage: Arc<dyn Storage>, env: Env, schema: SchemaBuilder) -> Self {
        let schema = schema.build(0).unwrap();
        SchemaStore::new(Arc::clone(&storage)).create(&schema).await.unwrap();
        Self::open(storage, env, schema, "user")
    }

    pub(crate) fn open(storage: Arc<dyn Storage>, env: Env, schema: TableSchema, user: &str) -> Self {
        Self {
            commit: FileStoreCommit::new(Arc::clone(&storage), env.clone(), &schema, user).unwrap(),
            snapshots: SnapshotStore::new(Arc::clone(&storage), env.clone()),
            storage,
            env,
            schema,
            next_identifier: 0,
        }
    }

    /// Commits under the next identifier.
    pub(crate) async fn commit(&mut self, messages: Vec<CommitMessage>) -> Vec<i64> {
        self.next_identifier += 1;
        let committable = ManifestCommittable::new(self.next_identifier, messages);
        self.commit.commit(&committable, AppendCheck::Skip).await.unwrap()
    }

    pub(crate) async fn latest(&self) -> Snapshot {
        self.snapshots.latest().await.unwrap().unwrap()
    }

    pub(crate) fn scan(&self) -> FileStoreScan {
        FileStoreScan::new(
            Arc::clone(&self.storage),
            self.env.clone(),
            Arc::new(self.schema.clone()),
        )
        .unwrap()
    }

    /// The files of the latest snapshot, as `p=1 bucket=0 L0 name`.
    pub(crate) async fn live(&self) -> Vec<String> {
        let plan = self.scan().plan(&self.latest().await, ScanKind::All).await.unwrap();
        let mut lines: Vec<String> = plan.buckets.iter().flat_map(lines).collect();
        lines.sort();
        lines
    }
}

fn lines(bucket: &BucketFiles) -> Vec<String> {
    let partition = match bucket.partition.arity() {
        0 => String::new(),
        _ => match bucket.partition.get(0, &int()).unwrap() {
            Datum::Int32(p) => format!("p={p} "),
            other => format!("p={other:?} "),
        },
    };
    bucket
        .files
        .iter()
        .map(|file| format!("{partition}bucket={} L{} {}", bucket.bucket, file.level, file.file_name))
        .collect()
}

pub(crate) fn partition(p: i32) -> BinaryRow {
    BinaryRow::from_datums(&[Datum::Int32(p)], &[int()]).unwrap()
}

pub(crate) fn key(k: i32) -> BinaryRow {
    BinaryRow::from_datums(&[Datum::Int32(k)], &[int()]).unwrap()
}

/// A data file of `min..=max` keys, one row each, of 100 bytes.
pub(crate) fn file(name: &str, level: i32, min: i32, max: i32) -> Arc<DataFileMeta> {
    Arc::new(DataFileMeta {
        row_count: i64::from(max - min + 1),
        min_key: key(min),
        max_key: key(max),
        key_stats: SimpleStats {
            min_values: key(min),
            max_values: key(max),
            null_counts: vec![Some(0)],
        },
        max_sequence_number: 10,
        level,
        creation_time_ms: Some(1_700_000_000_000),
        delete_row_count: Some(0),
        file_source: Some(if level == 0 {
            FileSource::Append
        } else {
            FileSource::Compact
        }),
        value_stats_cols: Some(Vec::new()),
        ..DataFileMeta::new(name, 100)
    })
}

/// A message of new files for one bucket.
pub(crate) fn append(p: i32, bucket: i32, files: &[Arc<DataFileMeta>]) -> CommitMessage {
    let mut message = empty_message(p, bucket);
    message.increment.data.new_files = files.to_vec();
    message
}

/// A message of a compaction of one bucket.
pub(crate) fn compact(p: i32, bucket: i32, before: &[Arc<DataFileMeta>], after: &[Arc<DataFileMeta>]) -> CommitMessage {
    let mut message = empty_message(p, bucket);
    message.increment.compact.compact_before = before.to_vec();
    message.increment.compact.compact_after = after.to_vec();
    message
}

pub(crate) fn empty_message(p: i32, bucket: i32) -> CommitMessage {
    CommitMessage {
        partition: partition(p),
        bucket,
        total_buckets: Some(2),
        increment: Default::default(),
    }
}

/// Names of all files in a directory, sorted.
pub(crate) async fn names(storage: &dyn Storage, dir: &str) -> Vec<String> {
    use futures::TryStreamExt;
    let mut names: Vec<String> = storage.list(dir).map_ok(|file| file.path).try_collect().await.unwrap();
    names.sort();
    names
}
