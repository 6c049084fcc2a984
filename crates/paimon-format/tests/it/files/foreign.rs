//! Parquet files as other writers make them.

use std::sync::Arc;

use bytes::Bytes;
use paimon_format::FormatError;
use paimon_format::kv::{KvBatch, KvFileSettings, KvSchema, ReadSpec};
use paimon_format::storage::Storage;
use paimon_format::types::{DataField, DataType, TypeKind};
use parquet::data_type::{Int32Type, Int64Type, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use rstest::rstest;

use super::table::{block_on, file_meta, files_in, memory, read, read_all, records};

/// Rows 0, 1, ... of sequence number, kind, key `k`, and the column `c` that `column` writes, in row groups of 1000.
fn file(
    c: &str,
    rows: i64,
    properties: WriterProperties,
    column: impl Fn(&mut parquet::file::writer::SerializedColumnWriter<'_>, &[i64]),
) -> Bytes {
    let message = format!(
        "message other {{ required int64 _SEQUENCE_NUMBER; required int32 _VALUE_KIND (INTEGER(8,true)); required int64 k; {c} }}"
    );
    let message = Arc::new(parse_message_type(&message).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), message, Arc::new(properties)).unwrap();
    let all: Vec<i64> = (0..rows).collect();
    for rows in all.chunks(1000) {
        let mut group = writer.next_row_group().unwrap();
        let mut numbers = group.next_column().unwrap().unwrap();
        numbers.typed::<Int64Type>().write_batch(rows, None, None).unwrap();
        numbers.close().unwrap();
        let mut kinds = group.next_column().unwrap().unwrap();
        kinds
            .typed::<Int32Type>()
            .write_batch(&vec![0; rows.len()], None, None)
            .unwrap();
        kinds.close().unwrap();
        let mut keys = group.next_column().unwrap().unwrap();
        keys.typed::<Int64Type>().write_batch(rows, None, None).unwrap();
        keys.close().unwrap();
        let mut last = group.next_column().unwrap().unwrap();
        column(&mut last, rows);
        last.close().unwrap();
        group.close().unwrap();
    }
    writer.into_inner().unwrap().into()
}

fn read_file(file: &Bytes, c: TypeKind, window_bytes: usize) -> Result<Vec<KvBatch>, FormatError> {
    let fields = vec![
        DataField::new(0, "k", DataType::not_null(TypeKind::BigInt)),
        DataField::new(1, "c", DataType::nullable(c)),
    ];
    let schema = Arc::new(KvSchema::new(0, fields, vec![0], None).unwrap());
    let storage = memory();
    block_on(storage.put("bucket-0/f.parquet", file.clone())).unwrap();
    let files = files_in(&storage, &schema, KvFileSettings::default());
    let spec = ReadSpec {
        window_bytes,
        ..read_all(&schema)
    };
    read(&files, &file_meta("f.parquet", file.len() as u64, 0, 0), spec)
}

#[test]
fn a_file_without_an_offset_index_is_read_by_row_groups() {
    let properties = WriterProperties::builder()
        .set_offset_index_disabled(true)
        .set_statistics_enabled(parquet::file::properties::EnabledStatistics::None)
        .set_dictionary_enabled(false)
        .build();
    let file = file("required int64 c;", 12_000, properties, |column, rows| {
        column.typed::<Int64Type>().write_batch(rows, None, None).unwrap();
    });
    assert!(file.len() > 64 << 10);
    let batches = read_file(&file, TypeKind::BigInt, 1024).unwrap();
    let found = records(&batches);
    let wanted: Vec<_> = (0..12_000).map(|i| serde_json::json!([i, "+I", i, i])).collect();
    assert_eq!(found, wanted);
}

#[rstest]
#[case(true)]
#[case(false)]
fn timestamps_that_nanoseconds_do_not_hold_are_refused(#[case] dictionary: bool) {
    let properties = || WriterProperties::builder().set_dictionary_enabled(dictionary).build();
    // Julian days; 1970-01-01 is 2440588.
    let with_day = |day: u32| {
        file("optional int96 c;", 10, properties(), move |column, rows| {
            let mut value = Int96::new();
            value.set_data(1, 0, day);
            let levels = vec![1; rows.len()];
            column
                .typed::<Int96Type>()
                .write_batch(&vec![value; rows.len()], Some(&levels), None)
                .unwrap();
        })
    };
    let fine = records(&read_file(&with_day(2_440_589), TypeKind::Timestamp(9), 1 << 20).unwrap());
    assert_eq!(fine[0][3], "1970-01-02 00:00:00.000000001");
    let error = read_file(&with_day(2_440_588 + 200_000), TypeKind::Timestamp(9), 1 << 20)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("f.parquet") && error.contains("column c") && error.contains("1677 to 2262"),
        "{error}"
    );
}

#[test]
fn two_level_lists_are_lists() {
    let list = "optional group c (LIST) { repeated int32 array; }";
    let file = file(list, 3, WriterProperties::default(), |column, _| {
        // [7, 8], null, []
        let values = column.typed::<Int32Type>();
        values
            .write_batch(&[7, 8], Some(&[2, 2, 0, 1]), Some(&[0, 1, 0, 0]))
            .unwrap();
    });
    let element = TypeKind::Array(Box::new(DataType::nullable(TypeKind::Int)));
    let found = records(&read_file(&file, element, 1 << 20).unwrap());
    let lists: Vec<_> = found.iter().map(|row| row[3].clone()).collect();
    assert_eq!(serde_json::json!(lists), serde_json::json!([[7, 8], null, []]));
}

#[test]
fn a_column_of_another_type_is_named() {
    let file = file("required int64 c;", 3, WriterProperties::default(), |column, rows| {
        column.typed::<Int64Type>().write_batch(rows, None, None).unwrap();
    });
    let error = read_file(&file, TypeKind::Boolean, 1 << 20).unwrap_err();
    insta::assert_snapshot!(error, @"bucket-0/f.parquet: corrupt: column c: it holds Int64, where the schema says Boolean");
}
