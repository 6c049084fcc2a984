//! A table's folder, its schemas, and values as the golden files spell them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::TryStreamExt;
use paimon_format::FormatError;
use paimon_format::env::Env;
use paimon_format::kv::{KvBatch, KvFileSettings, KvFiles, KvSchema, ReadSpec, SchemaSource, TableKvFiles};
use paimon_format::meta::{BucketPaths, DataFileMeta, PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::{MemoryStorage, Storage};
use paimon_format::types::{DataField, DataType, Datum, RowKind, TypeKind};
use serde_json::{Value, json};

/// A table that Java wrote.
pub(crate) struct GoldenTable {
    pub(crate) root: PathBuf,
    schemas: BTreeMap<i64, TableSchema>,
}

struct TableSchema {
    fields: Arc<[DataField]>,
    partition: Vec<String>,
    key: Vec<String>,
}

pub(crate) fn golden(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/golden")
        .join(scenario)
}

impl GoldenTable {
    pub(crate) fn open(scenario: &str) -> Self {
        let root = golden(scenario).join("warehouse/default.db/t");
        let mut schemas = BTreeMap::new();
        for entry in std::fs::read_dir(root.join("schema")).unwrap() {
            let path = entry.unwrap().path();
            let Some(id) = path
                .file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .strip_prefix("schema-")
                .map(|id| id.parse().unwrap())
            else {
                continue;
            };
            let json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let names = |key: &str| serde_json::from_value(json[key].clone()).unwrap();
            let schema = TableSchema {
                fields: serde_json::from_value::<Vec<DataField>>(json["fields"].clone())
                    .unwrap()
                    .into(),
                partition: names("partitionKeys"),
                key: names("primaryKeys"),
            };
            schemas.insert(id, schema);
        }
        Self { root, schemas }
    }

    pub(crate) fn kv_schema(&self, id: i64) -> Arc<KvSchema> {
        let schema = &self.schemas[&id];
        let key = schema.key.iter().filter(|name| !schema.partition.contains(name));
        let key = key.map(|name| schema.fields.iter().position(|field| &field.name == name).unwrap());
        Arc::new(KvSchema::new(id, schema.fields.to_vec(), key.collect(), None).unwrap())
    }

    pub(crate) fn fields(&self, id: i64) -> Arc<[DataField]> {
        Arc::clone(&self.schemas[&id].fields)
    }

    pub(crate) fn partition_fields(&self, id: i64) -> Vec<DataField> {
        let schema = &self.schemas[&id];
        let fields = schema
            .partition
            .iter()
            .map(|name| schema.fields.iter().find(|field| &field.name == name).unwrap());
        fields.cloned().collect()
    }

    pub(crate) fn schema_source(&self) -> Arc<dyn SchemaSource> {
        Arc::new(Schemas(
            self.schemas
                .iter()
                .map(|(id, schema)| (*id, Arc::clone(&schema.fields)))
                .collect(),
        ))
    }
}

#[derive(Debug)]
pub(crate) struct Schemas(pub(crate) BTreeMap<i64, Arc<[DataField]>>);

#[async_trait]
impl SchemaSource for Schemas {
    async fn fields(&self, schema_id: i64) -> Result<Arc<[DataField]>, FormatError> {
        let fields = self.0.get(&schema_id).map(Arc::clone);
        fields.ok_or_else(|| FormatError::invalid(format!("no schema {schema_id}")))
    }
}

/// Runs a future and what it spawns.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn env() -> Env {
    Env::fixed("/nonexistent")
}

/// Storage that keeps nothing after the test.
pub(crate) fn memory() -> Arc<MemoryStorage> {
    Arc::new(MemoryStorage::new(env().clock))
}

/// Bucket 0 of a table without partitions.
pub(crate) fn bucket() -> BucketPaths {
    let paths = TablePaths::new(PathSettings::from_options(Vec::new(), &Options::new()).unwrap());
    paths.bucket(&BinaryRow::empty(), 0).unwrap()
}

/// The files of [`bucket`], written with these settings.
pub(crate) fn files_in<S: Storage>(storage: &Arc<S>, schema: &Arc<KvSchema>, settings: KvFileSettings) -> TableKvFiles {
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    TableKvFiles::builder(storage, env(), Arc::clone(schema), bucket())
        .settings(Arc::new(settings))
        .build()
}

/// The metadata that reading needs.
pub(crate) fn file_meta(name: &str, size: u64, schema_id: i64, level: i32) -> DataFileMeta {
    DataFileMeta {
        schema_id,
        level,
        ..DataFileMeta::new(name, size as i64)
    }
}

pub(crate) fn read_all(schema: &Arc<KvSchema>) -> ReadSpec {
    ReadSpec::all(Arc::clone(schema))
}

pub(crate) fn read(files: &dyn KvFiles, file: &DataFileMeta, spec: ReadSpec) -> Result<Vec<KvBatch>, FormatError> {
    block_on(files.open(file, spec).try_collect())
}

/// Rows as the golden files spell them: sequence number, kind, values.
pub(crate) fn records(batches: &[KvBatch]) -> Vec<Value> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.len() {
            let mut record = vec![json!(batch.sequence_numbers()[row]), kind(batch.kind(row))];
            for (field, column) in batch.schema.fields.iter().zip(batch.values()) {
                record.push(spell(&Datum::from_array(column, row).unwrap(), &field.data_type));
            }
            rows.push(Value::Array(record));
        }
    }
    rows
}

fn kind(kind: RowKind) -> Value {
    json!(kind.short_string())
}

/// A value in the golden files' JSON; numbers as text, so that -0.0 and exponents compare.
pub(crate) fn spell(value: &Datum, data_type: &DataType) -> Value {
    match (value, &data_type.kind) {
        (Datum::Null, _) => Value::Null,
        (Datum::Boolean(value), _) => json!(value),
        (Datum::Int8(value), _) => json!(value),
        (Datum::Int16(value), _) => json!(value),
        (Datum::Int32(value), _) => json!(value),
        (Datum::Int64(value), _) => json!(value),
        // Its own shortest digits, not those of the same number in 64 bits.
        (Datum::Float32(value), _) => float(value.to_string().parse().unwrap()),
        (Datum::Float64(value), _) => float(*value),
        (Datum::String(value), _) => json!(value),
        (Datum::Bytes(value), _) => json!(value.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        (Datum::Array(values), TypeKind::Array(element)) => values.iter().map(|value| spell(value, element)).collect(),
        (Datum::Map(entries), TypeKind::Map(key, value)) => {
            let entries = entries.iter().map(|(k, v)| json!([spell(k, key), spell(v, value)]));
            let mut entries: Vec<Value> = entries.collect();
            entries.sort_by_key(|entry| entry.to_string());
            Value::Array(entries)
        }
        (Datum::Row(values), TypeKind::Row(fields)) => values
            .iter()
            .zip(fields)
            .map(|(value, field)| spell(value, &field.data_type))
            .collect(),
        (Datum::Time(millis), _) => {
            let text = value.to_text(&DataType::not_null(TypeKind::Time(0)));
            json!(format!("{}.{:03}", text.split('.').next().unwrap(), millis % 1000))
        }
        (Datum::Timestamp { .. }, TypeKind::LocalZonedTimestamp(_)) => {
            let text = value.to_text(data_type);
            json!(format!("{}Z", text.trim_end_matches('Z')))
        }
        (value, _) => json!(value.to_text(data_type)),
    }
}

fn float(value: f64) -> Value {
    if value.is_nan() {
        json!("NaN")
    } else if value.is_infinite() {
        json!(if value > 0.0 { "Infinity" } else { "-Infinity" })
    } else {
        json!(value)
    }
}
