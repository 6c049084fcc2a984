//! Data files of older schemas: values come in the current one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch};
use async_trait::async_trait;
use futures::executor::block_on;
use paimon_format::FormatError;
use paimon_format::env::Env;
use paimon_format::kv::{KeyCodec, KvBatch, KvFiles, KvSchema, RowLevels, SchemaSource, TableKvFiles};
use paimon_format::meta::{DataFileMeta, FileSource, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::{MemoryStorage, Storage, StorageError};
use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_lookup::{LookupFileCache, LookupLevels, LookupSettings};
use paimon_lsm::lookup::{LookupSource, SortedKeys};
use paimon_merge::changelog::LookupNeed;

use crate::support::{STRING, view};

/// Keys of the file, with gaps: several pages of them.
const ROWS: i32 = 50_000;

fn field(id: i32, name: &str, kind: TypeKind) -> DataField {
    match id {
        0 => DataField::new(id, name, DataType::not_null(kind)),
        _ => DataField::new(id, name, DataType::nullable(kind)),
    }
}

fn old_fields() -> Vec<DataField> {
    vec![
        field(0, "id", TypeKind::Int),
        field(1, "price", TypeKind::Int),
        field(2, "dropped", TypeKind::Int),
    ]
}

/// `price` is renamed and widened, `dropped` is gone, `note` is new.
fn new_fields() -> Vec<DataField> {
    vec![
        field(3, "note", STRING),
        field(0, "id", TypeKind::Int),
        field(1, "cost", TypeKind::BigInt),
    ]
}

#[derive(Debug)]
struct Schemas;

#[async_trait]
impl SchemaSource for Schemas {
    async fn fields(&self, schema_id: i64) -> Result<Arc<[DataField]>, FormatError> {
        match schema_id {
            0 => Ok(old_fields().into()),
            _ => Err(StorageError::not_found(format!("schema-{schema_id}")).into()),
        }
    }
}

/// Files of this schema in `storage`.
fn files(env: &Env, storage: &Arc<dyn Storage>, schema: &Arc<KvSchema>) -> TableKvFiles {
    let settings = PathSettings::from_options(Vec::new(), &Options::new()).unwrap();
    let paths = TablePaths::new(settings).bucket(&BinaryRow::empty(), 0).unwrap();
    TableKvFiles::builder(Arc::clone(storage), env.clone(), Arc::clone(schema), paths)
        .schemas(Arc::new(Schemas))
        .build()
}

fn write_old_file(env: &Env, storage: &Arc<dyn Storage>) -> DataFileMeta {
    let schema = Arc::new(KvSchema::new(0, old_fields(), vec![0], None).unwrap());
    let ints = |of: fn(i32) -> i32| Arc::new((0..ROWS).map(|row| Some(of(row))).collect::<Int32Array>()) as ArrayRef;
    let sequences: Int64Array = (0..i64::from(ROWS)).map(Some).collect();
    let kinds: Int8Array = (0..ROWS).map(|_| Some(0)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(sequences),
        Arc::new(kinds),
        ints(|row| row * 2),
        ints(|row| row + 7),
        ints(|_| 1),
    ];
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    let batch = KvBatch::new(&schema, columns, &KeyCodec::new(&schema).unwrap(), RowLevels::All(5)).unwrap();
    let mut sink = files(env, storage, &schema).data_sink(5, FileSource::Compact);
    let written = block_on(async {
        sink.write(&batch).await?;
        sink.finish().await
    });
    let [file] = <[DataFileMeta; 1]>::try_from(written.unwrap()).unwrap();
    file
}

#[test]
fn old_values_have_the_current_columns() {
    let temp = tempfile::tempdir().unwrap();
    let env = Env::fixed(temp.path());
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new(Arc::clone(&env.clock)));
    let file = Arc::new(write_old_file(&env, &storage));
    let schema = Arc::new(KvSchema::new(1, new_fields(), vec![1], None).unwrap());
    let asked: Vec<i32> = vec![-1, 0, 1, 30_000, 30_001, 99_998, 99_999];
    let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(asked))];
    let keys = SortedKeys {
        schema: Arc::clone(&schema),
        keys: KeyCodec::new(&schema).unwrap().keys_of_columns(&columns).unwrap(),
        columns,
    };
    let view = view(&schema, &[file], &[]);
    // Read itself, then through a lookup file.
    for build_after in [u32::MAX, 0] {
        let settings = LookupSettings {
            build_after,
            ..LookupSettings::default()
        };
        let cache = LookupFileCache::new(env.clone(), &settings);
        let data: Arc<dyn KvFiles> = Arc::new(files(&env, &storage, &schema));
        let levels = LookupLevels::builder(env.clone(), data, Arc::clone(&schema), cache.clone())
            .settings(settings)
            .schemas(Arc::new(Schemas))
            .build()
            .unwrap();
        let hits = block_on(levels.lookup(&keys, &view, 1, LookupNeed::PositionAndValue, u64::MAX)).unwrap();
        let rows = hits.rows.unwrap();
        assert_eq!(rows.columns.schema_ref().fields(), schema.arrow.fields());
        let costs = rows.values()[2].as_primitive::<Int64Type>();
        assert!((0..rows.len()).all(|row| rows.values()[0].is_null(row)));
        let found: Vec<_> = hits
            .found
            .iter()
            .map(|hit| {
                let hit = (*hit)?;
                Some((hit.position?.1, costs.value(hit.row? as usize)))
            })
            .collect();
        let expected = [
            None,
            Some((0, 7)),
            None,
            Some((15_000, 15_007)),
            None,
            Some((49_999, 50_006)),
            None,
        ];
        assert_eq!(found, expected);
        assert_eq!(cache.len(), usize::from(build_after == 0));
    }
}
