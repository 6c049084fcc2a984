//! A merge tree over storage and metadata of one's own: no manifests, no snapshots, no object store.
//!
//! `cargo run -p paimon-lsm --example own_storage`

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Int64Array, RecordBatch, StringArray};
use async_trait::async_trait;
use bytes::Bytes;
use futures::TryStreamExt;
use futures::stream::{self, BoxStream, StreamExt};
use paimon_format::env::{Env, InlineRuntime};
use paimon_format::kv::{KvFiles, KvSchema, TableKvFiles};
use paimon_format::meta::{CommitIncrement, DataFileMeta, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::{FileStatus, Storage, StorageError, StorageWriter};
use paimon_format::types::{DataField, DataType, RowKind, TypeKind};
use paimon_lsm::compact::pipeline::{MergeJob, MergePipeline};
use paimon_lsm::levels::{KeyOrder, Levels};
use paimon_lsm::write::{MergeTreeWriter, WaitCompaction};
use paimon_merge::engine::{MergeEngine, Registry};

/// Storage of one's own: names and bytes in a map.
#[derive(Clone, Debug, Default)]
struct MapStorage(Arc<Mutex<BTreeMap<String, Bytes>>>);

impl MapStorage {
    fn map(&self) -> MutexGuard<'_, BTreeMap<String, Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Storage for MapStorage {
    async fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, StorageError> {
        let bytes = self.read_all(path).await?;
        let parts = ranges.iter().map(|range| {
            if range.start > range.end || range.end > bytes.len() as u64 {
                return Err(StorageError::Refused {
                    path: path.into(),
                    message: format!("no bytes {range:?} in a file of {}", bytes.len()),
                });
            }
            Ok(bytes.slice(range.start as usize..range.end as usize))
        });
        parts.collect()
    }

    async fn read_all(&self, path: &str) -> Result<Bytes, StorageError> {
        let found = self.map().get(path).cloned();
        found.ok_or_else(|| StorageError::NotFound { path: path.into() })
    }

    async fn size(&self, path: &str) -> Result<Option<u64>, StorageError> {
        Ok(self.map().get(path).map(|bytes| bytes.len() as u64))
    }

    async fn create(&self, path: &str) -> Result<Box<dyn StorageWriter>, StorageError> {
        Ok(Box::new(MapWriter {
            storage: self.clone(),
            path: path.into(),
            bytes: Vec::new(),
        }))
    }

    async fn put_if_absent(&self, path: &str, bytes: Bytes) -> Result<bool, StorageError> {
        let mut map = self.map();
        if map.contains_key(path) {
            return Ok(false);
        }
        map.insert(path.into(), bytes);
        Ok(true)
    }

    async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.map().insert(path.into(), bytes);
        Ok(())
    }

    fn list<'a>(&'a self, dir: &'a str) -> BoxStream<'a, Result<FileStatus, StorageError>> {
        let inside = |path: &str| {
            let rest = path.strip_prefix(dir)?.strip_prefix('/')?;
            (!rest.contains('/')).then_some(())
        };
        let map = self.map();
        let files = map.iter().filter(|(path, _)| inside(path).is_some());
        let found: Vec<_> = files
            .map(|(path, bytes)| {
                Ok(FileStatus {
                    path: path.clone(),
                    size: bytes.len() as u64,
                    modified_ms: None,
                    is_dir: false,
                })
            })
            .collect();
        stream::iter(found).boxed()
    }

    async fn delete(&self, path: &str) -> Result<(), StorageError> {
        self.map().remove(path);
        Ok(())
    }
}

struct MapWriter {
    storage: MapStorage,
    path: String,
    bytes: Vec<u8>,
}

#[async_trait]
impl StorageWriter for MapWriter {
    async fn write(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn finish(self: Box<Self>) -> Result<u64, StorageError> {
        let size = self.bytes.len() as u64;
        self.storage.map().insert(self.path, self.bytes.into());
        Ok(size)
    }

    async fn abort(self: Box<Self>) {}
}

/// Metadata of one's own: the bucket's files as a line of JSON.
#[derive(Default)]
struct JsonMetadata(String);

impl JsonMetadata {
    fn files(&self) -> Result<Vec<Arc<DataFileMeta>>, serde_json::Error> {
        match self.0.as_str() {
            "" => Ok(Vec::new()),
            json => serde_json::from_str(json),
        }
    }

    fn save(&mut self, increment: &CommitIncrement) -> Result<(), serde_json::Error> {
        let mut files = self.files()?;
        files.extend(increment.data.new_files.iter().map(Arc::clone));
        files.retain(|file| !increment.compact.compact_before.contains(file));
        files.extend(increment.compact.compact_after.iter().map(Arc::clone));
        self.0 = serde_json::to_string(&files)?;
        Ok(())
    }
}

fn users() -> Result<KvSchema, Box<dyn Error>> {
    let fields = vec![
        DataField::new(0, "id", DataType::not_null(TypeKind::BigInt)),
        DataField::new(1, "name", DataType::nullable(TypeKind::VarChar(40))),
    ];
    Ok(KvSchema::new(0, fields, vec![0], None)?)
}

async fn run(env: Env) -> Result<(), Box<dyn Error>> {
    let schema = Arc::new(users()?);
    let paths = TablePaths::new(PathSettings::from_options(Vec::new(), &Options::new())?);
    let bucket = paths.bucket(&BinaryRow::default(), 0)?;
    let storage = Arc::new(MapStorage::default());
    let files: Arc<dyn KvFiles> =
        Arc::new(TableKvFiles::builder(Arc::clone(&storage) as _, env.clone(), Arc::clone(&schema), bucket).build());
    let engine: Arc<dyn MergeEngine> = Registry::default().create("deduplicate", &schema, &Options::new())?;
    let mut metadata = JsonMetadata::default();

    let mut writer = MergeTreeWriter::builder(Arc::clone(&schema), Arc::clone(&files))
        .engine(Arc::clone(&engine))
        .restore(metadata.files()?)
        .env(env.clone())
        .build()?;
    for round in 0..7 {
        let ids = Int64Array::from_iter_values(0..4);
        let names = StringArray::from_iter_values((0..4).map(|id| format!("user {id}, version {round}")));
        let values = RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(ids) as _, false),
            ("name", Arc::new(names) as _, true),
        ])?;
        // User 3 comes and goes.
        let last = if round % 2 == 0 {
            RowKind::Delete
        } else {
            RowKind::Insert
        };
        writer
            .write(&values, &[RowKind::Insert, RowKind::Insert, RowKind::Insert, last])
            .await?;
        metadata.save(&writer.prepare_commit(WaitCompaction::Yes).await?)?;
    }
    writer.close().await;

    let keys = KeyOrder::new(&schema)?;
    let sections = keys.sections(&metadata.files()?)?;
    println!("{}", Levels::restore(keys, metadata.files()?, 6)?.view());
    let job = MergeJob {
        sections,
        drop_delete: true,
        ..MergeJob::default()
    };
    let mut merged = MergePipeline::new(env, files, schema, engine).merge(job);
    while let Some(batch) = merged.try_next().await? {
        if let [ids, names] = batch.values() {
            let ids = ids.as_primitive::<Int64Type>();
            for (id, name) in ids.iter().zip(names.as_string::<i32>()) {
                println!("{id:?} {name:?}");
            }
        }
    }
    println!("{} files in storage", storage.map().len());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = InlineRuntime::new();
    let env = Env::system(Arc::new(runtime.clone()), 256 << 20, 1 << 30, std::env::temp_dir());
    runtime.block_on(run(env))
}
