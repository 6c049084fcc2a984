//! Lookup files beside their data files.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use paimon_format::FormatError;
use paimon_format::kv::{KvFiles, SchemaSource};
use paimon_format::meta::{BucketPaths, DataFileMeta, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::{FileRoots, MemoryStorage, Storage, StorageError, StorageWriter};
use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_lookup::{BucketRemoteLookups, LookupFileCache, LookupLevels, RemoteLookupStore};
use paimon_lsm::lookup::LookupSource;
use paimon_merge::changelog::LookupNeed;

use crate::support::{Bucket, rows};

fn bucket_paths() -> BucketPaths {
    let settings = PathSettings::from_options(Vec::new(), &Options::new()).unwrap();
    TablePaths::new(settings).bucket(&BinaryRow::empty(), 0).unwrap()
}

/// A bucket with a store beside it.
struct Remote {
    bucket: Bucket,
    storage: Arc<MemoryStorage>,
}

impl Remote {
    fn new() -> Self {
        let mut bucket = Bucket::building();
        bucket.settings.remote_files = true;
        Self {
            storage: Arc::new(MemoryStorage::new(Arc::clone(&bucket.env.clock))),
            bucket,
        }
    }

    fn store(&self) -> Arc<BucketRemoteLookups> {
        let storage: Arc<dyn Storage> = Arc::<MemoryStorage>::clone(&self.storage);
        Arc::new(BucketRemoteLookups::new(FileRoots::new(storage), bucket_paths()))
    }

    /// Another process: its own cache.
    fn levels(&mut self, need: LookupNeed) -> LookupLevels {
        let store = self.store();
        self.levels_with(store, need)
    }

    fn levels_with(&mut self, store: Arc<dyn RemoteLookupStore>, need: LookupNeed) -> LookupLevels {
        let bucket = &mut self.bucket;
        bucket.cache = LookupFileCache::new(bucket.env.clone(), &bucket.settings);
        let files: Arc<dyn KvFiles> = Arc::new(bucket.data.clone());
        let schema = Arc::clone(&bucket.schema);
        LookupLevels::builder(bucket.env.clone(), files, schema, bucket.cache.clone())
            .settings(bucket.settings.clone())
            .schemas(Arc::new(Schemas::of(&bucket.schema.fields)))
            .remote(store, need)
            .build()
            .unwrap()
    }

    /// The bucket's files after a compaction has made them.
    fn written(&mut self, levels: &LookupLevels) -> Result<(), paimon_lsm::LsmError> {
        let files = self.bucket.files.iter().map(|file| file.as_ref().clone()).collect();
        let written = block_on(levels.written(files))?;
        self.bucket.files = written.into_iter().map(Arc::new).collect();
        Ok(())
    }

    fn extra_files(&self) -> Vec<Vec<String>> {
        self.bucket.files.iter().map(|file| file.extra_files.clone()).collect()
    }

    fn sidecar(&self, name: &str) -> Option<Bytes> {
        block_on(self.storage.read_all(&format!("bucket-0/{name}"))).ok()
    }
}

/// Version 1: as now, but for a NOT NULL. Version 2: a column less.
#[derive(Debug)]
struct Schemas(HashMap<i64, Arc<[DataField]>>);

impl Schemas {
    fn of(fields: &[DataField]) -> Self {
        let mut nullable = fields.to_vec();
        nullable[1].data_type = DataType::not_null(TypeKind::Int);
        Self([(1, nullable.into()), (2, fields[..2].into())].into())
    }
}

#[async_trait]
impl SchemaSource for Schemas {
    async fn fields(&self, schema_id: i64) -> Result<Arc<[DataField]>, FormatError> {
        let fields = self.0.get(&schema_id).map(Arc::clone);
        fields.ok_or_else(|| StorageError::not_found(format!("schema-{schema_id}")).into())
    }
}

#[test]
fn written_once_used_by_all() {
    for need in [
        LookupNeed::Existence,
        LookupNeed::Value,
        LookupNeed::Position,
        LookupNeed::PositionAndValue,
    ] {
        let mut remote = Remote::new();
        remote.bucket.add(5, &rows(0..20, 1));
        remote.bucket.add(4, &rows(100..120, 2));
        let levels = remote.levels(need);
        remote.written(&levels).unwrap();
        for extra in remote.extra_files() {
            let [name] = extra.as_slice() else { panic!("{extra:?}") };
            let bytes = remote.sidecar(name).unwrap();
            assert!(name.contains(&format!(".{}.", bytes.len())), "{name}");
        }
        assert_eq!(remote.bucket.cache.len(), 2, "the local files stay");
        // A second look at the same files changes nothing.
        let before = remote.extra_files();
        remote.written(&levels).unwrap();
        assert_eq!(remote.extra_files(), before);
        // Another process reads no data file.
        let opened = remote.bucket.data.opened().len();
        let levels = remote.levels(need);
        let found = remote.bucket.ask(&levels, &[3, 50, 110], 1, need, &[]);
        assert!(found[0].is_some() && found[1].is_none() && found[2].is_some());
        assert_eq!(remote.bucket.data.opened().len(), opened);
        // What another need would ask is not in it.
        if need == LookupNeed::Existence {
            let levels = remote.levels(need);
            remote.bucket.ask(&levels, &[3], 1, LookupNeed::Value, &[]);
            assert_eq!(remote.bucket.data.opened().len(), opened + 1);
        }
    }
}

/// As a full disk: a compaction goes on, its files get no sidecars, and downloads are done without.
#[test]
fn a_local_disk_that_fails_stops_no_compaction() {
    let mut remote = Remote::new();
    remote.bucket.add(5, &rows(0..20, 1));
    let levels = remote.levels(LookupNeed::Value);
    // A local file that is gone cannot be copied; the next compaction makes a new one.
    assert_eq!(remote.bucket.values(&levels, &[3]), [Some(30)]);
    for file in std::fs::read_dir(remote.bucket.temp.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    for sidecars in [0, 1] {
        remote.written(&levels).unwrap();
        assert_eq!(remote.extra_files()[0].len(), sidecars);
    }
    // None can be made.
    remote.bucket.env.temp = remote.bucket.temp.path().join("no-folder");
    std::fs::write(&remote.bucket.env.temp, "").unwrap();
    remote.bucket.add(4, &rows(100..120, 2));
    let levels = remote.levels(LookupNeed::Value);
    remote.written(&levels).unwrap();
    assert_eq!(remote.extra_files()[1], Vec::<String>::new());
    assert_eq!(remote.bucket.values(&levels, &[3, 110]), [Some(30), Some(1100)]);
}

#[test]
fn levels_below_the_threshold_get_none() {
    let mut remote = Remote::new();
    remote.bucket.settings.remote_level_threshold = 5;
    remote.bucket.add(5, &rows(0..20, 1));
    remote.bucket.add(4, &rows(100..120, 2));
    let levels = remote.levels(LookupNeed::Value);
    remote.written(&levels).unwrap();
    let counts: Vec<usize> = remote.extra_files().iter().map(Vec::len).collect();
    assert_eq!(counts, [1, 0]);
}

#[test]
fn disabled_means_neither_written_nor_read() {
    let mut remote = Remote::new();
    remote.bucket.add(5, &rows(0..20, 1));
    let levels = remote.levels(LookupNeed::Value);
    remote.written(&levels).unwrap();
    let opened = remote.bucket.data.opened().len();
    remote.bucket.settings.remote_files = false;
    let levels = remote.levels(LookupNeed::Value);
    assert_eq!(remote.bucket.values(&levels, &[3]), [Some(30)]);
    assert_eq!(remote.bucket.data.opened().len(), opened + 1);
    remote.bucket.add(4, &rows(100..120, 2));
    remote.written(&levels).unwrap();
    assert_eq!(remote.extra_files()[1], Vec::<String>::new());
}

/// Missing, broken, of another version: each is built again, and answers are right.
#[test]
fn what_cannot_be_used_is_built_again() {
    let mut remote = Remote::new();
    remote.bucket.add(5, &rows(0..20, 1));
    let levels = remote.levels(LookupNeed::Value);
    remote.written(&levels).unwrap();
    let name = remote.extra_files()[0][0].clone();
    let path = format!("bucket-0/{name}");
    let whole = remote.sidecar(&name).unwrap();
    let mut broken = whole.to_vec();
    broken[10] ^= 1;
    for bytes in [
        None,
        Some(Bytes::from(broken)),
        Some(Bytes::new()),
        Some(whole.slice(..40)),
    ] {
        block_on(remote.storage.delete(&path)).unwrap();
        if let Some(bytes) = bytes {
            block_on(remote.storage.put(&path, bytes)).unwrap();
        }
        let levels = remote.levels(LookupNeed::Value);
        assert_eq!(remote.bucket.values(&levels, &[3, 50]), [Some(30), None]);
        assert_eq!(remote.bucket.values(&levels, &[4]), [Some(40)]);
        assert_eq!(remote.bucket.cache.len(), 1, "built");
    }
}

#[test]
fn files_of_another_schema_are_built_again() {
    let mut remote = Remote::new();
    remote.bucket.add(5, &rows(0..20, 1));
    let levels = remote.levels(LookupNeed::Value);
    remote.written(&levels).unwrap();
    for (schema_id, used) in [(0, true), (1, true), (2, false), (3, false)] {
        remote.bucket.files = remote
            .bucket
            .files
            .iter()
            .map(|file| {
                Arc::new(DataFileMeta {
                    schema_id,
                    ..file.as_ref().clone()
                })
            })
            .collect();
        let opened = remote.bucket.data.opened().len();
        let levels = remote.levels(LookupNeed::Value);
        assert_eq!(remote.bucket.values(&levels, &[3]), [Some(30)]);
        assert_eq!(remote.bucket.data.opened().len() == opened, used, "schema {schema_id}");
    }
    // No sidecar is made for a file of another schema: readers would take its values for those of the file's schema.
    let mut file = remote.bucket.files[0].as_ref().clone();
    (file.schema_id, file.extra_files) = (2, Vec::new());
    let written = block_on(levels.written(vec![file])).unwrap();
    assert_eq!(written[0].extra_files, Vec::<String>::new());
}

/// Of two compactions that move the same file up, one commits; the other removes what it made.
#[test]
fn compactions_of_one_file_do_not_touch_each_others_sidecars() {
    let mut remote = Remote::new();
    remote.bucket.add(5, &rows(0..20, 1));
    let before = remote.bucket.files.clone();
    let mut made = Vec::new();
    for _ in 0..2 {
        let levels = remote.levels(LookupNeed::Value);
        remote.bucket.files = before.clone();
        remote.written(&levels).unwrap();
        made.push(remote.extra_files()[0][0].clone());
    }
    let [first, second] = made.as_slice() else {
        panic!("{made:?}")
    };
    assert_eq!(remote.sidecar(first), remote.sidecar(second));
    block_on(remote.store().delete(&before[0], second)).unwrap();
    assert!(remote.sidecar(first).is_some() && remote.sidecar(second).is_none());
}

/// Refuses to write the second file.
#[derive(Debug)]
struct Failing {
    inner: BucketRemoteLookups,
    created: Mutex<usize>,
}

#[async_trait]
impl RemoteLookupStore for Failing {
    async fn create(&self, file: &DataFileMeta, name: &str) -> Result<Box<dyn StorageWriter>, FormatError> {
        let number = {
            let mut created = self.created.lock().unwrap();
            *created += 1;
            *created
        };
        match number {
            2 => Err(StorageError::unavailable(name, "no answer").into()),
            _ => self.inner.create(file, name).await,
        }
    }

    async fn size(&self, file: &DataFileMeta, name: &str) -> Result<Option<u64>, FormatError> {
        self.inner.size(file, name).await
    }

    async fn read(&self, file: &DataFileMeta, name: &str, range: Range<u64>) -> Result<Bytes, FormatError> {
        self.inner.read(file, name, range).await
    }

    async fn delete(&self, file: &DataFileMeta, name: &str) -> Result<(), FormatError> {
        self.inner.delete(file, name).await
    }
}

#[test]
fn after_an_error_no_sidecar_is_left() {
    let mut remote = Remote::new();
    remote.bucket.add(5, &rows(0..20, 1));
    remote.bucket.add(4, &rows(100..120, 2));
    let store = Failing {
        inner: remote.store().as_ref().clone(),
        created: Mutex::new(0),
    };
    let levels = remote.levels_with(Arc::new(store), LookupNeed::Value);
    let error = remote.written(&levels).unwrap_err();
    assert!(error.to_string().contains("no answer"), "{error}");
    let mut left = Vec::new();
    block_on(async {
        use futures::StreamExt;
        let mut listed = remote.storage.list("bucket-0");
        while let Some(file) = listed.next().await {
            left.push(file.unwrap().path);
        }
    });
    assert_eq!(left, Vec::<String>::new());
}
