//! Writing: rolling, statistics, aborting.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use paimon_format::kv::{FileFormat, KeyCodec, KvBatch, KvFileSettings, KvFiles, KvSchema, RowLevels, TableKvFiles};
use paimon_format::meta::{DataFileMeta, FileSource};
use paimon_format::storage::{MemoryStorage, Storage};
use paimon_format::types::{DataField, DataType, Datum, TypeKind};

use super::table::{block_on, files_in, memory, read, read_all, records};

struct Table {
    schema: Arc<KvSchema>,
    storage: Arc<MemoryStorage>,
    files: TableKvFiles,
}

/// `id` INT key, `name` STRING, `score` DOUBLE.
fn table(options: &[(&str, &str)]) -> Table {
    let fields = vec![
        DataField::new(0, "name", DataType::nullable(TypeKind::VarChar(i32::MAX as u32))),
        DataField::new(1, "id", DataType::not_null(TypeKind::Int)),
        DataField::new(2, "score", DataType::nullable(TypeKind::Double)),
    ];
    let schema = Arc::new(KvSchema::new(3, fields, vec![1], None).unwrap());
    let storage = memory();
    let settings = KvFileSettings::from_options(&options.iter().copied().collect()).unwrap();
    let files = files_in(&storage, &schema, settings);
    Table { schema, storage, files }
}

fn batch(schema: &Arc<KvSchema>, ids: &[i32], score: impl Fn(i32) -> Option<f64>) -> KvBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(ids.iter().map(|&id| 1000 - i64::from(id)))),
        Arc::new(Int8Array::from_iter_values(ids.iter().map(|id| (id % 4) as i8))),
        Arc::new(StringArray::from_iter(
            ids.iter()
                .map(|id| (id % 5 != 0).then(|| format!("a rather long name {id}"))),
        )),
        Arc::new(Int32Array::from(ids.to_vec())),
        Arc::new(Float64Array::from_iter(ids.iter().map(|&id| score(id)))),
    ];
    let columns = RecordBatch::try_new(Arc::clone(&schema.arrow), columns).unwrap();
    KvBatch::new(schema, columns, &KeyCodec::new(schema).unwrap(), RowLevels::All(0)).unwrap()
}

fn write(table: &Table, ids: std::ops::Range<i32>, source: FileSource) -> Vec<DataFileMeta> {
    let mut sink = table.files.data_sink(0, source);
    let ids: Vec<i32> = ids.collect();
    for ids in ids.chunks(700) {
        block_on(sink.write(&batch(&table.schema, ids, |id| Some(f64::from(id))))).unwrap();
    }
    block_on(sink.finish()).unwrap()
}

fn listed(table: &Table) -> Vec<String> {
    let files: Vec<_> = block_on(table.storage.list("bucket-0").try_collect()).unwrap();
    let mut names: Vec<String> = files.into_iter().map(|file| file.path).collect();
    names.sort();
    names
}

/// A file in a few lines.
fn print(table: &Table, file: &DataFileMeta) -> String {
    let types = |names: Option<&Vec<String>>| {
        let fields = table
            .schema
            .fields
            .iter()
            .filter(|field| names.is_none_or(|names| names.contains(&field.name)));
        fields
            .map(|field| DataType::nullable(field.data_type.kind.clone()))
            .collect::<Vec<_>>()
    };
    let row = |row: &paimon_format::row::BinaryRow, types: &[DataType]| {
        let values = row.to_datums(types).unwrap();
        let values = values.iter().zip(types).map(|(value, of)| match value {
            Datum::Null => "null".to_owned(),
            value => value.to_text(of),
        });
        values.collect::<Vec<_>>().join(", ")
    };
    let key = [DataType::not_null(TypeKind::Int)];
    let value_types = types(file.value_stats_cols.as_ref());
    format!(
        "{} level {} rows {} deletes {:?} schema {} source {:?} created {:?}\n  keys {} to {}, sequence {} to {}\n  \
         key stats [{}] [{}] {:?}\n  value stats {:?} [{}] [{}] {:?}",
        file.file_name,
        file.level,
        file.row_count,
        file.delete_row_count,
        file.schema_id,
        file.file_source,
        file.creation_time_ms,
        row(&file.min_key, &key),
        row(&file.max_key, &key),
        file.min_sequence_number,
        file.max_sequence_number,
        row(&file.key_stats.min_values, &key),
        row(&file.key_stats.max_values, &key),
        file.key_stats.null_counts,
        file.value_stats_cols,
        row(&file.value_stats.min_values, &value_types),
        row(&file.value_stats.max_values, &value_types),
        file.value_stats.null_counts,
    )
}

#[test]
fn metadata_by_statistics_mode() {
    let cases: [&[(&str, &str)]; 7] = [
        &[],
        &[("metadata.stats-mode", "none")],
        &[("metadata.stats-mode", "counts")],
        &[("metadata.stats-mode", "full")],
        &[
            ("metadata.stats-mode", "none"),
            ("metadata.stats-dense-store", "false"),
            ("fields.name.stats-mode", "truncate(3)"),
        ],
        &[("metadata.stats-keep-first-n-columns", "1")],
        &[
            ("metadata.stats-mode.per.level", "0:counts"),
            ("data-file.thin-mode", "true"),
        ],
    ];
    let text = cases.iter().map(|options| {
        let table = table(options);
        format!(
            "{options:?}\n{}",
            print(&table, &write(&table, 1..9, FileSource::Append)[0])
        )
    });
    insta::assert_snapshot!("metadata_by_statistics_mode", text.collect::<Vec<_>>().join("\n\n"));
}

/// As for Java, which puts it above all numbers.
#[test]
fn nan_is_the_largest_value() {
    let table = table(&[]);
    let mut sink = table.files.data_sink(0, FileSource::Append);
    block_on(sink.write(&batch(&table.schema, &[1, 2], |id| {
        if id == 1 { Some(f64::NAN) } else { Some(2.0) }
    })))
    .unwrap();
    let file = block_on(sink.finish()).unwrap().remove(0);
    let double = [
        DataType::nullable(TypeKind::VarChar(9)),
        DataType::nullable(TypeKind::Int),
        DataType::nullable(TypeKind::Double),
    ];
    assert!(matches!(file.value_stats.max_values.to_datums(&double).unwrap()[2], Datum::Float64(max) if max.is_nan()));
    assert!(matches!(
        file.value_stats.min_values.to_datums(&double).unwrap()[2],
        Datum::Float64(2.0)
    ));
    assert_eq!(file.value_stats.null_counts[2], Some(0));
}

/// Files roll at the first multiple of 1000 records of the whole sink at which the size is reached, also when one batch spans many.
#[test]
fn files_roll_at_the_target_size() {
    for chunk in [700, 50_000] {
        let table = table(&[
            ("target-file-size", "20 kb"),
            ("file.compression", "none"),
            ("parquet.enable.dictionary", "false"),
        ]);
        let mut sink = table.files.data_sink(0, FileSource::Compact);
        let ids: Vec<i32> = (0..20_500).collect();
        for ids in ids.chunks(chunk) {
            block_on(sink.write(&batch(&table.schema, ids, |id| Some(f64::from(id))))).unwrap();
        }
        let files = block_on(sink.finish()).unwrap();
        assert!(files.len() > 5, "{} files", files.len());
        let (last, full) = files.split_last().unwrap();
        assert!(
            full.iter()
                .all(|file| file.row_count % 1000 == 0 && file.file_size >= 20 << 10)
        );
        assert_eq!(last.row_count % 1000, 500);
        let mut rows = Vec::new();
        for file in &files {
            rows.extend(records(&read(&table.files, file, read_all(&table.schema)).unwrap()));
        }
        assert_eq!(rows, records(&[batch(&table.schema, &ids, |id| Some(f64::from(id)))]));
        assert_eq!(listed(&table).len(), files.len());
    }
}

#[test]
fn flushed_files_roll_at_the_row_limit_and_compacted_ones_do_not() {
    let table = table(&[("target-file-row-num", "300")]);
    let rows = |files: Vec<DataFileMeta>| files.iter().map(|file| file.row_count).collect::<Vec<_>>();
    assert_eq!(rows(write(&table, 0..1000, FileSource::Append)), [300, 300, 300, 100]);
    assert_eq!(rows(write(&table, 0..1000, FileSource::Compact)), [1000]);
    let mut sink = table.files.changelog_sink(0);
    block_on(sink.write(&batch(&table.schema, &(0..1000).collect::<Vec<_>>(), |_| None))).unwrap();
    let changelog = block_on(sink.finish()).unwrap();
    assert!(
        changelog[0].file_name.starts_with("changelog-"),
        "{}",
        changelog[0].file_name
    );
    assert_eq!(rows(changelog), [1000]);
}

#[test]
fn nothing_is_left_after_an_abort_or_a_delete() {
    let table = table(&[("target-file-size", "20 kb"), ("file.compression", "none")]);
    let mut sink = table.files.data_sink(0, FileSource::Append);
    block_on(
        sink.write(&batch(&table.schema, &(0..15_500).collect::<Vec<_>>(), |id| {
            Some(f64::from(id))
        })),
    )
    .unwrap();
    assert!(!listed(&table).is_empty());
    block_on(sink.abort());
    assert_eq!(listed(&table), Vec::<String>::new());
    for file in write(&table, 0..10, FileSource::Append) {
        block_on(table.files.delete(&file)).unwrap();
    }
    assert_eq!(listed(&table), Vec::<String>::new());
    assert_eq!(
        block_on(table.files.data_sink(0, FileSource::Append).finish()).unwrap(),
        []
    );
}

#[test]
fn wrong_options_are_named() {
    for (key, value, wanted) in [
        ("file.format", "csv", "csv"),
        ("metadata.stats-mode", "some", "metadata.stats-mode"),
        ("target-file-size", "much", "target-file-size"),
        ("file.format.per.level", "top:avro", "top"),
        ("fields.name.stats-mode", "truncate(x)", "fields.name.stats-mode"),
    ] {
        let options = [(key, value)].into_iter().collect();
        let error = KvFileSettings::from_options(&options).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains(wanted), "{error}");
    }
    let physical = paimon_format::kv::physical_fields(&table(&[]).schema, false);
    for (key, value) in [
        ("file.compression", "lzo"),
        ("parquet.page.size", "x"),
        ("parquet.bloom.filter.fpp", "2"),
    ] {
        let options = [(key, value)].into_iter().collect();
        let error = KvFileSettings::from_options(&options)
            .unwrap()
            .check(&physical)
            .unwrap_err()
            .to_string();
        assert!(error.contains(value) || error.contains(key), "{error}");
    }
}

#[test]
fn settings_are_data() {
    let options = [
        ("file.format.per.level", "0:avro,5:orc"),
        ("changelog-file.format", "avro"),
        ("parquet.page.size", "4096"),
    ];
    let settings = KvFileSettings::from_options(&options.into_iter().collect()).unwrap();
    assert_eq!(settings.format(0), FileFormat::Avro);
    assert_eq!(settings.format(1), FileFormat::Parquet);
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<KvFileSettings>(&text).unwrap(), settings);
}
