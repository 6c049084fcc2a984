//! Buckets of the Java engine, and what is refused.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};
use rstest::rstest;
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::row::{BinaryRow, binary_rows};
use crate::types::{DataField, Datum, array_from_datums};

fn types(kinds: &[TypeKind]) -> Vec<DataType> {
    kinds.iter().cloned().map(DataType::nullable).collect()
}

/// One row of what Java answered.
#[derive(Deserialize)]
struct Golden {
    types: Vec<DataType>,
    row: Vec<Value>,
    #[serde(rename = "binaryRow")]
    binary_row: String,
    hash: i32,
    function: String,
    buckets: Vec<(i32, i32)>,
}

#[test]
fn rows_hashes_and_buckets_of_java() {
    let mut seen = 0;
    for line in include_str!("../../../../testdata/golden/hash.jsonl").lines() {
        let golden: Golden = serde_json::from_str(line).unwrap();
        check(&golden, line);
        seen += 1;
    }
    assert_eq!(seen, 385);
}

fn check(golden: &Golden, line: &str) {
    let values: Vec<Datum> = golden
        .row
        .iter()
        .zip(&golden.types)
        .map(|(value, data_type)| datum(value, data_type))
        .collect();
    let row = BinaryRow::from_datums(&values, &golden.types).unwrap();
    let hex: String = row.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden.binary_row, "{line}");
    assert_eq!(row.hash_code(), golden.hash, "{line}");
    assert_eq!(row.to_datums(&golden.types).unwrap(), values, "{line}");

    let columns: Vec<ArrayRef> = values
        .iter()
        .zip(&golden.types)
        .map(|(value, data_type)| array_from_datums(&DataField::new(0, "c", data_type.clone()), [value]).unwrap())
        .collect();
    assert_eq!(binary_rows(&columns, &golden.types).unwrap(), [row], "{line}");
    let options = [("bucket-function.type", golden.function.as_str())]
        .into_iter()
        .collect();
    let function = BucketFunction::from_options(&options, golden.types.clone()).unwrap();
    for (buckets, bucket) in &golden.buckets {
        assert_eq!(function.buckets(&columns, *buckets).unwrap(), [*bucket], "{line}");
    }
}

/// A value as the golden file writes it: bytes in hex, numbers of floats as they are, zoned timestamps with `Z`.
fn datum(value: &Value, data_type: &DataType) -> Datum {
    match (value, &data_type.kind) {
        (Value::Null, _) => Datum::Null,
        (Value::String(hex), TypeKind::Binary(_) | TypeKind::VarBinary(_)) => Datum::Bytes(
            (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
                .collect(),
        ),
        (Value::Number(number), TypeKind::Float) => Datum::Float32(number.as_f64().unwrap() as f32),
        (Value::Number(number), TypeKind::Double) => Datum::Float64(number.as_f64().unwrap()),
        (Value::String(text), TypeKind::Char(_) | TypeKind::VarChar(_)) => Datum::String(text.clone()),
        (Value::String(text), _) => Datum::parse(text.trim_end_matches('Z'), data_type).unwrap(),
        (Value::Array(values), TypeKind::Array(element)) => {
            Datum::Array(values.iter().map(|value| datum(value, element)).collect())
        }
        (Value::Array(entries), TypeKind::Map(key, item)) => Datum::Map(
            entries
                .iter()
                .map(|entry| (datum(&entry[0], key), datum(&entry[1], item)))
                .collect(),
        ),
        (Value::Array(values), TypeKind::Row(fields)) => Datum::Row(
            values
                .iter()
                .zip(fields)
                .map(|(value, field)| datum(value, &field.data_type))
                .collect(),
        ),
        (other, _) => Datum::parse(&other.to_string(), data_type).unwrap(),
    }
}

#[test]
fn a_batch_at_once() {
    let numbers = Arc::new(Int32Array::from(vec![1, 2, 3, 7, 10, 100, -5])) as ArrayRef;
    let function = BucketFunction::new(BucketFunctionType::Default, types(&[TypeKind::Int])).unwrap();
    assert_eq!(
        function.buckets(&[Arc::clone(&numbers)], 4).unwrap(),
        [2, 0, 1, 3, 0, 1, 3]
    );
    let function = BucketFunction::new(BucketFunctionType::Mod, types(&[TypeKind::Int])).unwrap();
    assert_eq!(function.buckets(&[numbers], 4).unwrap(), [1, 2, 3, 3, 2, 0, 3]);
}

#[test]
fn null_counts_as_zero_in_mod() {
    let numbers = Arc::new(Int64Array::from(vec![None, Some(-1)])) as ArrayRef;
    let function = BucketFunction::new(BucketFunctionType::Mod, types(&[TypeKind::BigInt])).unwrap();
    assert_eq!(function.buckets(&[numbers], 3).unwrap(), [0, 2]);
}

#[rstest]
#[case(BucketFunctionType::Default, &[], "a bucket key without columns")]
#[case(
    BucketFunctionType::Mod,
    &[TypeKind::Date],
    "option 'bucket-function.type' = 'mod' needs one bucket key column of type INT or BIGINT, not DATE"
)]
#[case(
    BucketFunctionType::Mod,
    &[TypeKind::Int, TypeKind::Int],
    "option 'bucket-function.type' = 'mod' needs one bucket key column of type INT or BIGINT, not INT, INT"
)]
#[case(
    BucketFunctionType::Hive,
    &[TypeKind::Int, TypeKind::Timestamp(3)],
    "option 'bucket-function.type' = 'hive' does not take bucket key columns of type TIMESTAMP(3)"
)]
fn illegal_keys_are_refused(#[case] kind: BucketFunctionType, #[case] kinds: &[TypeKind], #[case] message: &str) {
    let error = BucketFunction::new(kind, types(kinds)).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn illegal_batches_are_refused() {
    let text = Arc::new(StringArray::from(vec!["1"])) as ArrayRef;
    for kind in [
        BucketFunctionType::Default,
        BucketFunctionType::Mod,
        BucketFunctionType::Hive,
    ] {
        let function = BucketFunction::new(kind, types(&[TypeKind::Int])).unwrap();
        assert_eq!(
            function.buckets(&[Arc::clone(&text)], 4).unwrap_err().kind(),
            crate::ErrorKind::Invalid
        );
        let error = function.buckets(&[Arc::clone(&text)], 0).unwrap_err();
        assert_eq!(error.to_string(), "0 buckets: a fixed number of buckets is positive");
    }
}
