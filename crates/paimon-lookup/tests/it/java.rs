//! Lookup files of the Java engine: `testdata/lookup` has a table each, with one data file and the lookup file that Java made of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use futures::executor::block_on;
use paimon_format::env::Env;
use paimon_format::kv::{KvBatch, KvFiles, KvSchema, ReadSpec, TableKvFiles};
use paimon_format::meta::{BucketPaths, DataFileMeta, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::{BinaryRow, row_at};
use paimon_format::storage::{FileRoots, LocalStorage, MemoryStorage, Storage};
use paimon_format::types::{DataField, DataType, Datum};
use paimon_lookup::{BucketRemoteLookups, LookupFileCache, LookupLevels, LookupSettings};
use paimon_lsm::lookup::{LookupSource, SortedKeys};
use paimon_lsm::testing::file;
use paimon_merge::changelog::{Hits, LookupNeed};
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::view;

struct JavaTable {
    root: PathBuf,
    env: Env,
    settings: LookupSettings,
    schema: Arc<KvSchema>,
    files: Arc<dyn KvFiles>,
    data: DataFileMeta,
    /// The name of Java's lookup file.
    lookup: String,
    rows: KvBatch,
    _temp: TempDir,
}

fn paths() -> BucketPaths {
    let settings = PathSettings::from_options(Vec::new(), &Options::new()).unwrap();
    TablePaths::new(settings).bucket(&BinaryRow::empty(), 0).unwrap()
}

impl JavaTable {
    fn open(name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../testdata/lookup")
            .join(name);
        let json: Value = serde_json::from_slice(&std::fs::read(root.join("schema-0")).unwrap()).unwrap();
        let fields: Vec<DataField> = serde_json::from_value(json["fields"].clone()).unwrap();
        let keys: Vec<String> = serde_json::from_value(json["primaryKeys"].clone()).unwrap();
        let key = keys
            .iter()
            .map(|key| fields.iter().position(|field| field.name == *key).unwrap());
        let schema = Arc::new(KvSchema::new(0, fields.clone(), key.collect(), None).unwrap());
        let options: Options = serde_json::from_value(json["options"].clone()).unwrap();
        let names: Vec<String> = std::fs::read_dir(root.join("bucket-0"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let named = |suffix: &str| names.iter().find(|name| name.ends_with(suffix)).unwrap().clone();
        let (data, lookup) = (named(".parquet"), named(".lookup"));

        let temp = tempfile::tempdir().unwrap();
        let env = Env::fixed(temp.path());
        let storage = Arc::new(LocalStorage::new(&root, env.clone()));
        let files = TableKvFiles::builder(storage, env.clone(), Arc::clone(&schema), paths()).build();
        let bytes = std::fs::metadata(root.join("bucket-0").join(&data)).unwrap().len();
        let mut table = Self {
            settings: LookupSettings::from_options(&options).unwrap(),
            rows: read_all(&files, &schema, &file(&data, 5, bytes as i64)),
            files: Arc::new(files),
            data: file(&data, 5, bytes as i64),
            root,
            env,
            schema,
            lookup,
            _temp: temp,
        };
        let types: Vec<DataType> = table.schema.key_fields().map(|field| field.data_type.clone()).collect();
        let columns = table.key_columns();
        let rows = table.rows.len();
        table.data.row_count = rows as i64;
        table.data.min_key = row_at(&columns, &types, 0).unwrap();
        table.data.max_key = row_at(&columns, &types, rows - 1).unwrap();
        table
    }

    fn need(&self) -> LookupNeed {
        match self.lookup.rsplit('.').nth(2).unwrap() {
            "empty" => LookupNeed::Existence,
            "position" => LookupNeed::Position,
            "value" => LookupNeed::Value,
            _ => LookupNeed::PositionAndValue,
        }
    }

    fn key_columns(&self) -> Vec<arrow_array::ArrayRef> {
        let columns = self
            .schema
            .key
            .iter()
            .map(|&column| Arc::clone(&self.rows.values()[column]));
        columns.collect()
    }

    fn levels(&self, storage: Arc<dyn Storage>, cache: &LookupFileCache) -> LookupLevels {
        let files = Arc::clone(&self.files);
        LookupLevels::builder(self.env.clone(), files, Arc::clone(&self.schema), cache.clone())
            .settings(self.settings.clone())
            .remote(
                Arc::new(BucketRemoteLookups::new(FileRoots::new(storage), paths())),
                self.need(),
            )
            .build()
            .unwrap()
    }

    /// All keys of the file, looked up.
    fn ask_all(&self, levels: &LookupLevels, data: DataFileMeta) -> Hits {
        let keys = SortedKeys {
            schema: Arc::clone(&self.schema),
            keys: self.rows.keys.clone(),
            columns: self.key_columns(),
        };
        let view = view(&self.schema, &[Arc::new(data)], &[]);
        block_on(levels.lookup(&keys, &view, 1, self.need(), u64::MAX)).unwrap()
    }

    /// Every key was found, with its own row and place.
    fn check(&self, hits: &Hits) {
        for (row, hit) in hits.found.iter().enumerate() {
            let hit = hit.unwrap_or_else(|| panic!("key {row} is not found"));
            assert_eq!(
                hit.position.map(|(_, position)| position),
                self.need().position().then_some(row as u64)
            );
            assert_eq!(hit.row.is_some(), self.need().value());
            if let (Some(found), Some(rows)) = (hit.row, &hits.rows) {
                for (expected, column) in self.rows.columns.columns().iter().zip(rows.columns.columns()) {
                    let expected = Datum::from_array(expected, row).unwrap();
                    let found = Datum::from_array(column, found as usize).unwrap();
                    assert_eq!(format!("{expected:?}"), format!("{found:?}"));
                }
            }
        }
    }
}

fn read_all(files: &TableKvFiles, schema: &Arc<KvSchema>, data: &DataFileMeta) -> KvBatch {
    let read = ReadSpec::all(Arc::clone(schema));
    let batches: Vec<KvBatch> = block_on(files.open(data, read).map(Result::unwrap).collect());
    let [batch] = <[KvBatch; 1]>::try_from(batches).unwrap();
    batch
}

/// Without a lookup file the data file is read, whose pages stay in memory until it leaves the tree.
#[rstest]
fn pages_of_data_files_stay_in_memory(#[values("position_and_value", "value_zstd")] name: &str) {
    let mut table = JavaTable::open(name);
    table.settings.build_after = u32::MAX;
    let cache = LookupFileCache::new(table.env.clone(), &table.settings);
    let levels = table.levels(Arc::new(MemoryStorage::new(Arc::clone(&table.env.clock))), &cache);
    for _ in 0..2 {
        table.check(&table.ask_all(&levels, table.data.clone()));
        assert!(cache.is_empty() && cache.page_bytes() > 0);
    }
    assert_eq!(table.env.cache.total() - table.env.cache.free(), cache.page_bytes());
    levels.dropped(&[Arc::new(table.data.clone())]);
    assert_eq!(cache.page_bytes(), 0);
    // With a lookup file they are not needed.
    table.check(&table.ask_all(&levels, table.data.clone()));
    table.settings.build_after = 0;
    let levels = table.levels(Arc::new(MemoryStorage::new(Arc::clone(&table.env.clock))), &cache);
    table.check(&table.ask_all(&levels, table.data.clone()));
    assert_eq!((cache.len(), cache.page_bytes()), (1, 0));
}

/// Java's file answers, without the data file being read.
#[rstest]
fn what_java_wrote_is_read(
    #[values(
        "exists",
        "position",
        "position_and_value",
        "value_agg",
        "value_lz4",
        "value_none",
        "value_zstd"
    )]
    name: &str,
) {
    let mut table = JavaTable::open(name);
    table.settings.build_after = u32::MAX;
    let cache = LookupFileCache::new(table.env.clone(), &table.settings);
    let levels = table.levels(Arc::new(LocalStorage::new(&table.root, table.env.clone())), &cache);
    let data = DataFileMeta {
        extra_files: vec![table.lookup.clone()],
        ..table.data.clone()
    };
    table.check(&table.ask_all(&levels, data));
    assert_eq!(cache.len(), 1, "Java's file was downloaded");
}

/// The same data file makes the same lookup file: the bytes, and the name but for the id behind the data file's.
#[rstest]
fn what_is_written_is_what_java_writes(
    #[values("exists", "position", "position_and_value", "value_agg", "value_none")] name: &str,
) {
    let table = JavaTable::open(name);
    let cache = LookupFileCache::new(table.env.clone(), &table.settings);
    let storage = Arc::new(MemoryStorage::new(Arc::clone(&table.env.clock)));
    let levels = table.levels(Arc::<MemoryStorage>::clone(&storage), &cache);
    let written = block_on(levels.written(vec![table.data.clone()])).unwrap();
    let (data, [ours]) = (&table.data.file_name, written[0].extra_files.as_slice()) else {
        panic!("{written:?}");
    };
    let behind = ours.strip_prefix(data).and_then(|name| name.strip_prefix('.')).unwrap();
    let (_id, behind) = behind.split_once('.').unwrap();
    assert_eq!(format!("{data}.{behind}"), table.lookup);
    let bytes = block_on(storage.read_all(&format!("bucket-0/{ours}"))).unwrap();
    let theirs = std::fs::read(table.root.join("bucket-0").join(&table.lookup)).unwrap();
    assert!(bytes == theirs, "the bytes differ");
}

/// Codecs may compress otherwise than Java's; what they hold is the same.
#[rstest]
fn what_is_written_compressed_is_found(#[values("value_lz4", "value_zstd")] name: &str) {
    let table = JavaTable::open(name);
    let cache = LookupFileCache::new(table.env.clone(), &table.settings);
    let storage = Arc::new(MemoryStorage::new(Arc::clone(&table.env.clock)));
    let levels = table.levels(Arc::<MemoryStorage>::clone(&storage), &cache);
    let written = block_on(levels.written(vec![table.data.clone()])).unwrap();
    cache.clear();
    table.check(&table.ask_all(&levels, written[0].clone()));
    assert_eq!(cache.len(), 1, "our own file was downloaded");
}
