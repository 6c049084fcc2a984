//! Rows: worked examples of the Java engine, models, and bytes that are none.

pub(super) mod generate;

use std::cmp::Ordering;

use arrow_array::ArrayRef;
use bytes::Bytes;
use proptest::prelude::*;
use rstest::rstest;

use self::generate::{flat_type, row_of_types};
use super::*;
use crate::types::{DataField, DataType, Datum, TypeKind, array_from_datums};

fn types(kinds: &[TypeKind]) -> Vec<DataType> {
    kinds.iter().cloned().map(DataType::nullable).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits.as_chunks::<2>().0.iter().map(|[a, b]| a << 4 | b).collect()
}

/// A column of these values, nullable whatever the type says.
pub(super) fn column_of(values: &[Datum], data_type: &DataType) -> ArrayRef {
    let field = DataField::new(0, "c", DataType::nullable(data_type.kind.clone()));
    array_from_datums(&field, values).unwrap()
}

pub(super) fn text(text: &str) -> Datum {
    Datum::String(text.to_owned())
}

const STRING: TypeKind = TypeKind::VarChar(i32::MAX as u32);

/// 2024-01-01 00:00:00.123
const MILLIS: i64 = 1_704_067_200_123;

#[rstest]
#[case(&[], &[], "00000000 0000000000000000", -1_670_924_195)]
#[case(&[TypeKind::Int], &[Datum::Int32(7)], "00000001 0000000000000000 0700000000000000", -348_168_691)]
#[case(&[TypeKind::Int], &[Datum::Null], "00000001 0001000000000000 0000000000000000", -1_748_325_344)]
#[case(&[TypeKind::BigInt], &[Datum::Int64(42)], "00000001 0000000000000000 2a00000000000000", 907_821_237)]
#[case(&[STRING], &[text("hello")], "00000001 0000000000000000 68656c6c6f000085", 243_722_546)]
#[case(
    &[STRING],
    &[text("hello world")],
    "00000001 0000000000000000 0b00000010000000 68656c6c6f20776f 726c640000000000",
    161_593_394
)]
#[case(
    &[STRING, TypeKind::Int],
    &[text("20240101"), Datum::Int32(10)],
    "00000002 0000000000000000 0800000018000000 0a00000000000000 3230323430313031",
    -1_331_272_943
)]
#[case(
    &[TypeKind::Decimal(10, 2)],
    &[Datum::Decimal(-12345)],
    "00000001 0000000000000000 c7cfffffffffffff",
    280_263_423
)]
#[case(
    &[TypeKind::Timestamp(3)],
    &[Datum::Timestamp { millis: MILLIS, nanos: 0 }],
    "00000001 0000000000000000 7bf451c28c010000",
    985_649_424
)]
#[case(
    &[TypeKind::Int, TypeKind::Decimal(20, 2), TypeKind::Timestamp(6)],
    &[Datum::Null, Datum::Decimal(12345), Datum::Timestamp { millis: MILLIS, nanos: 456_000 }],
    "00000003 0001000000000000 0000000000000000 0200000020000000 40f5060030000000 3039000000000000 0000000000000000
     7bf451c28c010000",
    1_860_810_493
)]
#[case(
    &[TypeKind::Decimal(20, 2)],
    &[Datum::Null],
    "00000001 0001000000000000 0000000010000000 0000000000000000 0000000000000000",
    -1_380_280_760
)]
#[case(
    &[TypeKind::Array(Box::new(DataType::nullable(TypeKind::BigInt)))],
    &[Datum::Array(vec![Datum::Int64(1), Datum::Null, Datum::Int64(3)])],
    "00000001 0000000000000000 2000000010000000 0300000002000000 0100000000000000 0000000000000000 0300000000000000",
    108_875_456
)]
#[case(
    &[TypeKind::Map(Box::new(DataType::not_null(TypeKind::Int)), Box::new(DataType::nullable(TypeKind::Int)))],
    &[Datum::Map(vec![(Datum::Int32(1), Datum::Int32(10))])],
    "00000001 0000000000000000 2400000010000000 1000000001000000 0000000001000000 0000000001000000 000000000a000000
     0000000000000000",
    -184_155_191
)]
#[case(
    &[TypeKind::Row(vec![DataField::new(0, "a", DataType::nullable(TypeKind::Int))])],
    &[Datum::Row(vec![Datum::Int32(5)])],
    "00000001 0000000000000000 1000000010000000 0000000000000000 0500000000000000",
    1_367_674_153
)]
fn rows_of_the_java_engine(
    #[case] kinds: &[TypeKind],
    #[case] values: &[Datum],
    #[case] serialized: &str,
    #[case] hash: i32,
) {
    let types = types(kinds);
    let row = BinaryRow::from_datums(values, &types).unwrap();
    assert_eq!(hex(&row.to_serialized()), hex(&bytes(serialized)));
    assert_eq!(row.hash_code(), hash);
    let read = BinaryRow::from_serialized(bytes(serialized)).unwrap();
    assert_eq!(read, row);
    assert_eq!(debug(&read.to_datums(&types).unwrap()), debug(values));
}

/// Text of values: equal for equal bits, unlike floats.
fn debug(values: &[Datum]) -> String {
    format!("{values:?}")
}

#[test]
fn tail_bytes_are_mixed_one_by_one() {
    // Values of MurmurHashUtils.hashBytes.
    assert_eq!(murmur::hash_bytes(b""), 142_593_372);
    assert_eq!(murmur::hash_bytes(&[0x01, 0x80, 0xff, 0x7f, 0xfe]), 1_516_096_864);
}

#[rstest]
#[case("", "binary row: corrupt: 0 bytes, expected an arity of 4")]
#[case("ffffffff 0000000000000000", "binary row: corrupt: arity -1")]
#[case(
    "00000002 0000000000000000",
    "binary row: corrupt: 8 bytes, but 2 fields take at least 24"
)]
#[case(
    "7fffffff 0000000000000000",
    "binary row: corrupt: 8 bytes, but 2147483647 fields take at least 17448304640"
)]
fn serialized_rows_that_are_none(#[case] serialized: &str, #[case] message: &str) {
    let error = BinaryRow::from_serialized(bytes(serialized)).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), crate::ErrorKind::Corrupt);
}

#[rstest]
#[case(STRING, "0000000000000088", "field 0: 8 bytes in a slot of 7")]
#[case(
    STRING,
    "ff00000000000082",
    "field 0: text is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"
)]
#[case(STRING, "ffffffff10000000", "field 0: bytes 16..4294967311 of 16")]
#[case(TypeKind::Decimal(38, 0), "1100000000000000", "field 0: bytes 0..17 of 16")]
#[case(
    TypeKind::Decimal(38, 0),
    "0000000000000000",
    "field 0: a decimal of 0 bytes, not 1..=16"
)]
#[case(TypeKind::Timestamp(9), "40420f0000000000", "field 0: 1000000 ns of a millisecond")]
#[case(TypeKind::Timestamp(9), "0000000010000000", "field 0: bytes 16..24 of 16")]
#[case(
    TypeKind::Array(Box::new(DataType::nullable(TypeKind::BigInt))),
    "0800000008000000",
    "8 bytes, but 8 fields take at least 72"
)]
#[case(
    TypeKind::Variant,
    "0400000008000000",
    "field 0: a variant whose value is longer than its 4 bytes"
)]
fn values_that_are_none(#[case] kind: TypeKind, #[case] slot: &str, #[case] message: &str) {
    let row = BinaryRow::from_serialized(bytes(&format!("00000001 0000000000000000 {slot}"))).unwrap();
    let error = row.get(0, &DataType::nullable(kind)).unwrap_err();
    assert_eq!(error.to_string(), format!("binary row: corrupt: {message}"));
}

#[test]
fn values_of_other_types_are_refused() {
    let error = BinaryRow::from_datums(&[text("a")], &types(&[TypeKind::Int])).unwrap_err();
    assert_eq!(error.to_string(), "String(\"a\") is no value of type INT");
    let error = BinaryRow::from_datums(&[Datum::Null], &types(&[TypeKind::Blob])).unwrap_err();
    assert_eq!(error.to_string(), "not supported: BLOB values in a binary row");
    let error = BinaryRow::from_datums(&[], &types(&[TypeKind::Int])).unwrap_err();
    assert_eq!(error.to_string(), "a row of 0 values for 1 fields");
    let compact = types(&[TypeKind::Decimal(18, 0)]);
    let error = BinaryRow::from_datums(&[Datum::Decimal(i128::MAX)], &compact).unwrap_err();
    assert!(error.to_string().ends_with("more digits than its type has"), "{error}");
}

#[test]
fn columns_of_other_types_are_refused() {
    let ints = [column_of(&[Datum::Int32(1)], &DataType::nullable(TypeKind::Int))];
    let error = row_at(&ints, &types(&[TypeKind::BigInt]), 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "an Arrow column of type Int32 holds no values of type BIGINT"
    );
    let error = row_at(&ints, &types(&[TypeKind::Int]), 1).unwrap_err();
    assert_eq!(error.to_string(), "row 1 of a batch of 1 rows");
    let error = binary_rows(&ints, &[]).unwrap_err();
    assert_eq!(error.to_string(), "1 columns for 0 fields of a row");
}

#[test]
fn timestamps_of_any_unit() {
    use arrow_array::{TimestampMicrosecondArray, TimestampSecondArray};
    use std::sync::Arc;
    let types = types(&[TypeKind::Timestamp(6), TypeKind::Timestamp(0)]);
    let before_epoch = Arc::new(TimestampMicrosecondArray::from(vec![-1])) as _;
    let seconds = Arc::new(TimestampSecondArray::from(vec![-1])) as _;
    let values = row_at(&[before_epoch, seconds], &types, 0)
        .unwrap()
        .to_datums(&types)
        .unwrap();
    let expected = [
        Datum::Timestamp {
            millis: -1,
            nanos: 999_000,
        },
        Datum::Timestamp {
            millis: -1000,
            nanos: 0,
        },
    ];
    assert_eq!(debug(&values), debug(&expected));
}

#[test]
fn keys_in_java_order() {
    let ascending = [
        (
            TypeKind::Double,
            vec![
                Datum::Null,
                Datum::Float64(f64::NEG_INFINITY),
                Datum::Float64(-0.0),
                Datum::Float64(0.0),
                Datum::Float64(f64::INFINITY),
                Datum::Float64(-f64::NAN),
            ],
        ),
        (
            STRING,
            vec![
                text(""),
                text("a"),
                text("a\0"),
                text("b"),
                text("\u{ffff}"),
                text("😀"),
            ],
        ),
        (
            TypeKind::VarBinary(9),
            vec![
                Datum::Bytes(vec![]),
                Datum::Bytes(vec![0x7f, 9]),
                Datum::Bytes(vec![0x80]),
            ],
        ),
        (
            TypeKind::Decimal(38, 2),
            vec![Datum::Decimal(i128::MIN), Datum::Decimal(-1), Datum::Decimal(1)],
        ),
        (
            TypeKind::Timestamp(9),
            vec![
                Datum::Timestamp {
                    millis: -1,
                    nanos: 999_999,
                },
                Datum::Timestamp { millis: 0, nanos: 0 },
                Datum::Timestamp { millis: 0, nanos: 1 },
            ],
        ),
        (TypeKind::Boolean, vec![Datum::Boolean(false), Datum::Boolean(true)]),
    ];
    for (kind, values) in ascending {
        let types = types(&[TypeKind::Int, kind]);
        let comparator = KeyComparator::new(types.clone()).unwrap();
        let rows: Vec<BinaryRow> = values
            .into_iter()
            .map(|value| BinaryRow::from_datums(&[Datum::Int32(1), value], &types).unwrap())
            .collect();
        for (i, left) in rows.iter().enumerate() {
            for (j, right) in rows.iter().enumerate() {
                assert_eq!(comparator.compare(left, right).unwrap(), i.cmp(&j), "{types:?} {i} {j}");
            }
        }
    }
}

#[test]
fn all_nans_are_one_key() {
    let types = types(&[TypeKind::Float]);
    let [a, b] = [f32::NAN, -f32::NAN].map(|nan| BinaryRow::from_datums(&[Datum::Float32(nan)], &types).unwrap());
    assert_ne!(a, b, "bits are kept");
    let comparator = KeyComparator::new(types).unwrap();
    assert_eq!(comparator.compare(&a, &b).unwrap(), Ordering::Equal);
}

#[test]
fn ranges_overlap_on_one_key() {
    let types = types(&[TypeKind::Int]);
    let key = |value| BinaryRow::from_datums(&[Datum::Int32(value)], &types).unwrap();
    let comparator = KeyComparator::new(types.clone()).unwrap();
    let overlap = |a: (i32, i32), b: (i32, i32)| {
        let ((a0, a1), (b0, b1)) = ((key(a.0), key(a.1)), (key(b.0), key(b.1)));
        comparator.overlap((&a0, &a1), (&b0, &b1)).unwrap()
    };
    assert!(overlap((1, 3), (3, 5)));
    assert!(overlap((1, 9), (3, 5)));
    assert!(!overlap((1, 2), (3, 5)));
    assert!(!overlap((6, 7), (3, 5)));
}

#[test]
fn nested_types_are_no_keys() {
    let element = Box::new(DataType::nullable(TypeKind::Int));
    let error = KeyComparator::new(types(&[TypeKind::Array(element)])).unwrap_err();
    assert_eq!(error.to_string(), "not supported: a key column of type ARRAY<INT>");
}

#[test]
fn as_json_a_row_is_hex() {
    let row = BinaryRow::from_datums(&[Datum::Int32(7)], &types(&[TypeKind::Int])).unwrap();
    let json = serde_json::to_string(&row).unwrap();
    assert_eq!(json, "\"0000000100000000000000000700000000000000\"");
    assert_eq!(serde_json::from_str::<BinaryRow>(&json).unwrap(), row);
    for illegal in ["\"0\"", "\"zz\"", "\"00000001\""] {
        assert!(serde_json::from_str::<BinaryRow>(illegal).is_err(), "{illegal}");
    }
}

proptest! {
    #[test]
    fn written_rows_read_back((types, values) in row_of_types()) {
        let row = BinaryRow::from_datums(&values, &types).unwrap();
        prop_assert_eq!(row.as_bytes().len() % 8, 0);
        let read = BinaryRow::from_serialized(row.to_serialized()).unwrap();
        prop_assert_eq!(debug(&read.to_datums(&types).unwrap()), debug(&values));
    }

    #[test]
    fn columns_give_the_same_bytes((types, values) in row_of_types()) {
        let columns: Vec<_> = values
            .iter()
            .zip(&types)
            .map(|(value, data_type)| column_of(&[Datum::Null, value.clone()], data_type))
            .collect();
        let expected = BinaryRow::from_datums(&values, &types).unwrap();
        prop_assert_eq!(row_at(&columns, &types, 1).unwrap(), expected.clone());
        let hashes = RowEncoder::new(&columns, &types).unwrap().hashes().unwrap();
        prop_assert_eq!(hashes[1], expected.hash_code());
    }

    #[test]
    fn any_bytes_give_values_or_errors((types, values) in row_of_types(), noise in noise(), arity in 0_usize..4) {
        let mut row = BinaryRow::from_datums(&values, &types).unwrap().to_serialized();
        for (position, byte) in noise {
            let position = position.index(row.len());
            row[position] = byte;
        }
        if let Ok(row) = BinaryRow::from_serialized(row.clone()) {
            let _ = row.to_datums(&types);
        }
        let cut = row.len() / 2;
        if let Ok(row) = BinaryRow::from_bytes(arity, Bytes::from(row).slice(cut..)) {
            let _ = types.iter().map(|data_type| row.get(0, data_type)).collect::<Vec<_>>();
        }
    }

    #[test]
    fn order_of_keys_is_total(data_type in flat_type(), seed in any::<[u64; 3]>()) {
        let comparator = KeyComparator::new(vec![data_type.clone()]).unwrap();
        let [a, b, c] = seed.map(|seed| {
            BinaryRow::from_datums(&[generate::value_from_seed(&data_type, seed)], std::slice::from_ref(&data_type)).unwrap()
        });
        let order = |x, y| comparator.compare(x, y).unwrap();
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
        }
    }
}

fn noise() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)
}
