use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int8Array, Int32Array, Int64Array, RecordBatch};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use paimon_format::dv::DeletionVector;
use paimon_format::env::Env;
use paimon_format::kv::{KeyCodec, KvBatch, KvSchema, RowLevels, SequenceOrder};
use paimon_format::meta::DataFileMeta;
use paimon_format::options::Options;
use paimon_format::predicate::{Predicate, Test};
use paimon_format::types::{DataField, DataType, Datum, TypeKind};
use paimon_merge::engine::Registry;

use super::*;
use crate::LsmError;
use crate::compact::pipeline::{MergeJob, MergePipeline};
use crate::levels::SortedRun;
use crate::testing::MemoryKvFiles;

/// `k` BIGINT (the key), `v` INT, `ts` INT, the sequence field.
fn schema() -> Arc<KvSchema> {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(TypeKind::BigInt)),
        DataField::new(1, "v", DataType::nullable(TypeKind::Int)),
        DataField::new(2, "ts", DataType::nullable(TypeKind::Int)),
    ];
    let sequence = SequenceOrder {
        columns: vec![2],
        descending: false,
    };
    Arc::new(KvSchema::new(0, fields, vec![0], Some(sequence)).unwrap())
}

struct Table {
    files: MemoryKvFiles,
    read: MergeRead,
    _temp: tempfile::TempDir,
}

impl Table {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let files = MemoryKvFiles::new(schema());
        let engine = Registry::default().for_options(&schema(), &Options::new()).unwrap();
        let read = MergeRead::new(Env::fixed(temp.path()), Arc::new(files.clone()), schema(), engine);
        Self {
            files,
            read,
            _temp: temp,
        }
    }

    /// A file of (key, kind, v, ts).
    fn file(&self, level: i32, rows: &[(i64, i8, i32, Option<i32>)]) -> Arc<DataFileMeta> {
        let schema = schema();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..).take(rows.len()))),
            Arc::new(Int8Array::from_iter_values(rows.iter().map(|row| row.1))),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0))),
            Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.2))),
            Arc::new(rows.iter().map(|row| row.3).collect::<Int32Array>()),
        ];
        let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
        let codec = KeyCodec::new(&schema).unwrap();
        let batch = KvBatch::new(&schema, columns, &codec, RowLevels::All(level)).unwrap();
        self.files.add(level, &[batch]).unwrap()
    }
}

async fn rows(stream: BoxStream<'static, Result<ReadBatch, LsmError>>) -> Vec<(i64, i32, i8)> {
    let batches: Vec<ReadBatch> = stream.try_collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        let keys = batch.columns.column_by_name("k").unwrap().as_primitive::<Int64Type>();
        let values = batch.columns.column_by_name("v").unwrap().as_primitive::<Int32Type>();
        rows.extend((0..keys.len()).map(|row| (keys.value(row), values.value(row), batch.kinds.value(row))));
    }
    rows
}

fn section(files: &[&Arc<DataFileMeta>]) -> Vec<SortedRun> {
    files
        .iter()
        .map(|file| SortedRun::from_single(Arc::clone(file)))
        .collect()
}

#[tokio::test]
async fn a_table_read_merges_and_drops_deletes() {
    let table = Table::new();
    let old = table.file(5, &[(1, 0, 10, Some(1)), (2, 0, 20, Some(1)), (3, 0, 30, Some(9))]);
    let new = table.file(0, &[(1, 3, 10, Some(2)), (2, 2, 21, Some(2)), (3, 2, 31, Some(2))]);
    let alone = table.file(5, &[(7, 3, 70, Some(1)), (8, 2, 80, Some(1))]);
    let sections = vec![section(&[&new, &old]), section(&[&alone])];
    // Key 3: the older file has the larger sequence field.
    let expected = [(2, 21, 2), (3, 30, 0), (8, 80, 2)];
    assert_eq!(rows(table.read.merged(sections.clone())).await, expected);
    // The sequence field orders the versions though nobody asked for it.
    let narrow = table.read.clone().with_projection(vec![1, 0]);
    assert_eq!(rows(narrow.merged(sections.clone())).await, expected);
    let batch = narrow.merged(sections).try_next().await.unwrap().unwrap();
    let names: Vec<_> = batch
        .columns
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["v", "k"]);
}

#[tokio::test]
async fn a_filter_never_brings_an_old_version_back() {
    let table = Table::new();
    let old = table.file(5, &[(1, 0, 100, Some(1)), (2, 0, 50, Some(1))]);
    let new = table.file(0, &[(1, 2, 10, Some(2)), (2, 2, 150, Some(2))]);
    let read = table
        .read
        .clone()
        .with_filter(Predicate::parse("v >= 100", &schema().fields).unwrap());
    assert_eq!(rows(read.merged(vec![section(&[&old, &new])])).await, [(2, 150, 2)]);
    // The filter's column need not come out.
    let keys = read.with_projection(vec![0]);
    let batch = keys
        .merged(vec![section(&[&old, &new])])
        .try_next()
        .await
        .unwrap()
        .unwrap();
    assert_eq!(batch.columns.num_columns(), 1);
    assert_eq!(batch.columns.column(0).as_primitive::<Int64Type>().values(), &[2]);
    assert_eq!(batch.kinds.values(), &[2]);
}

#[tokio::test]
async fn files_whose_rows_meet_no_others_are_pruned_by_values() {
    let table = Table::new();
    let old = table.file(5, &[(1, 0, 100, Some(1)), (2, 0, 50, Some(1))]);
    let new = table.file(0, &[(1, 2, 10, Some(2)), (2, 2, 150, Some(2))]);
    let alone = table.file(5, &[(7, 0, 70, Some(1)), (8, 0, 180, Some(1))]);
    let filter = Predicate::parse("v >= 100", &schema().fields).unwrap();
    let job = |filter| MergeJob {
        sections: vec![section(&[&old, &new]), section(&[&alone])],
        filter,
        ..MergeJob::default()
    };
    let engine = Registry::default().for_options(&schema(), &Options::new()).unwrap();
    let env = Env::fixed(table._temp.path());
    let pipeline = MergePipeline::new(env, Arc::new(table.files.clone()), schema(), engine);
    let keys = async |filter| {
        let batches: Vec<KvBatch> = pipeline.merge(job(filter)).try_collect().await.unwrap();
        let keys = batches
            .iter()
            .flat_map(|batch| batch.values()[0].as_primitive::<Int64Type>().values().to_vec());
        keys.collect::<Vec<_>>()
    };
    assert_eq!(keys(None).await, [1, 2, 7, 8]);
    // Keys 1 and 2 have two versions: all are read. Of the others only what passes.
    assert_eq!(keys(Some(Arc::new(filter.clone()))).await, [1, 2, 8]);
    let read = table.read.clone().with_filter(filter);
    let sections = job(None).sections;
    assert_eq!(rows(read.merged(sections)).await, [(2, 150, 2), (8, 180, 0)]);
    assert_eq!(rows(read.raw(vec![alone])).await, [(8, 180, 0)]);
}

#[tokio::test]
async fn no_columns_still_count() {
    let table = Table::new();
    let file = table.file(5, &[(1, 0, 1, None), (2, 0, 2, None)]);
    let read = table.read.clone().with_projection(Vec::new());
    let batch = read.raw(vec![file]).try_next().await.unwrap().unwrap();
    assert_eq!((batch.columns.num_rows(), batch.columns.num_columns()), (2, 0));
}

#[tokio::test]
async fn raw_reads_and_changes_do_not_merge() {
    let table = Table::new();
    let first = table.file(0, &[(1, 0, 10, None), (2, 3, 20, None)]);
    let second = table.file(0, &[(1, 1, 10, None), (5, 2, 50, None)]);
    let files = vec![Arc::clone(&first), second];
    assert_eq!(
        rows(table.read.changes(files.clone())).await,
        [(1, 10, 0), (2, 20, 3), (1, 10, 1), (5, 50, 2)]
    );
    let deleted = HashMap::from([(first.file_name.clone(), Arc::new(DeletionVector::from([0])))]);
    let raw = table.read.clone().with_deleted(deleted);
    assert_eq!(rows(raw.raw(files)).await, [(5, 50, 2)]);
}

#[test]
fn keys_are_pruned_by_what_a_filter_says_of_them() {
    let schema = schema();
    let range = |text: &str| {
        let range = filter::key_range(&Predicate::parse(text, &schema.fields).unwrap(), &schema);
        let bound = |bound: Option<Vec<Datum>>| match bound.as_deref() {
            None => None,
            Some([Datum::Int64(value)]) => Some(*value),
            other => panic!("{other:?}"),
        };
        (bound(range.min), bound(range.max))
    };
    assert_eq!(range("k = 5 AND v > 3"), (Some(5), Some(5)));
    assert_eq!(
        range("k > 5 AND k >= 2 AND k < 100 AND k BETWEEN 1 AND 90"),
        (Some(5), Some(90))
    );
    assert_eq!(range("k = 5 OR v = 1"), (None, None));
    assert_eq!(range("v = 1"), (None, None));
}

#[tokio::test]
async fn unknown_columns_are_refused() {
    let table = Table::new();
    let mut stream = table.read.clone().with_projection(vec![9]).raw(Vec::new());
    let error = stream.try_next().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the projection: no column at position 9, there are 3 columns"
    );
    let filter = Predicate::column("w", Test::IsNull);
    let error = table
        .read
        .clone()
        .with_filter(filter)
        .raw(Vec::new())
        .try_next()
        .await
        .unwrap_err();
    assert!(error.to_string().contains('w'), "{error}");
}
