//! Files that Java wrote, read through `TableKvFiles`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paimon_format::kv::{PartitionValue, TableKvFiles};
use paimon_format::meta::{PathSettings, TablePaths};
use paimon_format::options::Options;
use paimon_format::row::BinaryRow;
use paimon_format::storage::LocalStorage;
use paimon_format::types::Datum;
use rstest::rstest;
use serde_json::Value;

use super::table::{GoldenTable, env, file_meta, golden, read, read_all, records};

/// Every file of every snapshot has the records that Java reads from it, in the snapshot's schema: so older files are read in newer
/// schemas too.
#[rstest]
#[case("types_values_parquet")]
#[case("types_values_avro")]
#[case("types_values_orc")]
#[case("types_nested")]
#[case("file_thin_mode")]
#[case("dedup_basic")]
#[case("partitions_buckets")]
#[case("schema_add_column")]
#[case("schema_widen")]
fn files_of_java(#[case] scenario: &str) {
    let table = GoldenTable::open(scenario);
    let expected: Value =
        serde_json::from_slice(&std::fs::read(golden(scenario).join("expected.json")).unwrap()).unwrap();
    let on_disk = data_files(&table.root);
    let mut seen = 0;
    for snapshot in expected["steps"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["snapshots"].as_array())
        .flatten()
    {
        let schema_id = snapshot["schemaId"].as_i64().unwrap();
        for bucket in snapshot["buckets"].as_array().unwrap() {
            for file in bucket["files"].as_array().unwrap() {
                // Files are found by their size: several may have one, then one of them has the records.
                let size = file["fileSize"].as_u64().unwrap();
                let candidates: Vec<&PathBuf> = on_disk
                    .iter()
                    .filter(|(_, found)| *found == size)
                    .map(|(path, _)| path)
                    .collect();
                assert!(!candidates.is_empty(), "{scenario}: no file of {size} bytes");
                let found: Vec<Vec<Value>> = candidates
                    .iter()
                    .map(|path| read_file(&table, path, size, schema_id, file, bucket))
                    .collect();
                let wanted = file["records"].as_array().unwrap();
                assert!(
                    found.contains(wanted),
                    "{scenario}: expected {wanted:#?}\nfound {found:#?}"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 0);
}

fn read_file(table: &GoldenTable, path: &Path, size: u64, schema_id: i64, file: &Value, bucket: &Value) -> Vec<Value> {
    let schema = table.kv_schema(schema_id);
    let partition = table
        .partition_fields(schema_id)
        .into_iter()
        .zip(bucket["partition"].as_array().unwrap());
    let partition: Vec<PartitionValue> = partition
        .map(|(field, value)| PartitionValue {
            field_id: field.id,
            value: Datum::parse(value.as_str().unwrap(), &field.data_type).unwrap(),
        })
        .collect();
    let paths = TablePaths::new(PathSettings::from_options(Vec::new(), &Options::new()).unwrap());
    let directory = path.parent().unwrap();
    // The bucket's folder is taken as a table without partitions: where Java put it is the folder's parent.
    let bucket: i32 = directory
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .strip_prefix("bucket-")
        .unwrap()
        .parse()
        .unwrap();
    let storage = Arc::new(LocalStorage::new(directory.parent().unwrap(), env()));
    let paths = paths.bucket(&BinaryRow::empty(), bucket).unwrap();
    let files = TableKvFiles::builder(storage, env(), Arc::clone(&schema), paths);
    let files = files.partition(partition).schemas(table.schema_source()).build();
    let name = path.file_name().unwrap().to_str().unwrap();
    let meta = file_meta(
        name,
        size,
        file["schemaId"].as_i64().unwrap(),
        file["level"].as_i64().unwrap() as i32,
    );
    let batches = read(&files, &meta, read_all(&schema)).unwrap();
    let rows: usize = batches.iter().map(|batch| batch.len()).sum();
    assert_eq!(rows as u64, file["rowCount"].as_u64().unwrap());
    records(&batches)
}

/// The table's data files, with their sizes.
fn data_files(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(data_files(&path));
        } else if path
            .extension()
            .is_some_and(|extension| ["parquet", "avro", "orc"].iter().any(|known| extension == *known))
        {
            found.push((path, entry.metadata().unwrap().len()));
        }
    }
    found
}
