use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::row::tests::generate::{flat_type, row_of_types, value_from_seed};
use crate::row::tests::{bytes, column_of, hex, text};
use crate::types::{DataField, DataType, Datum, TypeKind};

const STRING: TypeKind = TypeKind::VarChar(i32::MAX as u32);

/// The bytes of one row.
fn encode(values: &[Datum], types: &[DataType]) -> Vec<u8> {
    let columns: Vec<ArrayRef> = values
        .iter()
        .zip(types)
        .map(|(value, data_type)| column_of(std::slice::from_ref(value), data_type))
        .collect();
    let mut bytes = Vec::new();
    let encoder = CompactedRowEncoder::new(&columns, types).unwrap();
    encoder.encode(0, &mut bytes).unwrap();
    bytes
}

fn fields(types: &[DataType]) -> Vec<DataField> {
    let types = types.iter().zip(0..);
    types
        .map(|(data_type, id)| DataField::new(id, format!("c{id}"), data_type.clone()))
        .collect()
}

fn decode(bytes: &[u8], types: &[DataType]) -> Result<Vec<Datum>, FormatError> {
    let decoder = CompactedRowDecoder::new(&fields(types))?;
    let columns = decoder.decode([bytes].into_iter())?;
    columns.iter().map(|column| Datum::from_array(column, 0)).collect()
}

#[rstest]
#[case(&[TypeKind::Int], &[Datum::Int32(7)], "0000 07000000")]
#[case(&[STRING], &[text("hello")], "0000 05 68656c6c6f")]
#[case(
    &[TypeKind::Int, TypeKind::Decimal(20, 2), TypeKind::Timestamp(6)],
    &[Datum::Null, Datum::Decimal(12345), Datum::Timestamp { millis: 1_704_067_200_123, nanos: 456_000 }],
    "0001 02 3039 7bf451c28c010000 c0ea1b"
)]
fn rows_of_the_java_engine(#[case] kinds: &[TypeKind], #[case] values: &[Datum], #[case] expected: &str) {
    let types: Vec<DataType> = kinds.iter().cloned().map(DataType::nullable).collect();
    assert_eq!(hex(&encode(values, &types)), hex(&bytes(expected)));
    assert_eq!(
        format!("{:?}", decode(&bytes(expected), &types).unwrap()),
        format!("{values:?}")
    );
}

#[test]
fn eight_fields_fill_a_byte_of_null_bits() {
    let types = vec![DataType::nullable(TypeKind::TinyInt); 9];
    let mut values = vec![Datum::Null; 9];
    values[7] = Datum::Int8(5);
    assert_eq!(hex(&encode(&values[..8], &types[..8])), "007f05");
    assert_eq!(hex(&encode(&values, &types)), "007f0105");
}

#[test]
fn types_without_a_form_are_refused_by_name() {
    let blob = [DataField::new(0, "picture", DataType::nullable(TypeKind::Blob))];
    let error = CompactedRowDecoder::new(&blob).unwrap_err();
    assert!(error.to_string().contains("picture"), "{error}");
    let error = CompactedKeyOrder::new([&DataType::nullable(TypeKind::Variant)]).unwrap_err();
    assert_eq!(error.to_string(), "not supported: a key column of type VARIANT");
}

#[rstest]
#[case("", "row 0, column (header): 2 bytes expected, 0 left")]
#[case("0000 05 6162", "row 0, column c0: 5 bytes expected, 2 left")]
#[case("0000 ffffffffffffffffff01", "row 0, column c0: a number of more than 9 bytes")]
#[case("0000 ffffffff0f", "row 0, column c0: 4294967295 bytes expected, 0 left")]
#[case(
    "0000 02 c328",
    "row 0, column c0: text is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0"
)]
fn broken_rows_are_errors(#[case] row: &str, #[case] message: &str) {
    let error = decode(&bytes(row), &[DataType::nullable(STRING)]).unwrap_err();
    assert_eq!(error.to_string(), format!("compacted row: corrupt: {message}"));
}

#[test]
fn a_null_in_a_column_without_nulls_is_corrupt() {
    let error = decode(&bytes("0001"), &[DataType::not_null(TypeKind::Int)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "compacted row: corrupt: row 0, column c0: null where the type has none"
    );
}

proptest! {
    #[test]
    fn rows_come_back((types, values) in row_of_types(), trailer in prop::collection::vec(any::<u8>(), 0..9)) {
        let mut row = encode(&values, &types);
        row.extend(trailer);
        prop_assert_eq!(format!("{:?}", decode(&row, &types).unwrap()), format!("{values:?}"));
    }

    #[test]
    fn many_rows_are_columns((types, _) in row_of_types(), seeds in prop::collection::vec(any::<u64>(), 0..20)) {
        let columns: Vec<ArrayRef> = types
            .iter()
            .map(|data_type| {
                let values: Vec<Datum> = seeds.iter().map(|seed| value_from_seed(data_type, *seed)).collect();
                column_of(&values, data_type)
            })
            .collect();
        let rows = CompactedRowEncoder::new(&columns, &types).unwrap().encode_all().unwrap();
        let decoder = CompactedRowDecoder::new(&fields(&types)).unwrap();
        let decoded = decoder.decode((0..rows.len()).map(|row| rows.value(row))).unwrap();
        for (expected, found) in columns.iter().zip(&decoded) {
            prop_assert_eq!(expected.len(), found.len());
            for row in 0..expected.len() {
                let (expected, found) = (Datum::from_array(expected, row), Datum::from_array(found, row));
                prop_assert_eq!(format!("{expected:?}"), format!("{found:?}"));
            }
        }
    }

    #[test]
    fn keys_have_the_order_of_their_values(types in prop::collection::vec(flat_type(), 1..4), a in any::<u64>(), b in any::<u64>()) {
        let key = |seed: u64| -> Vec<Datum> {
            types.iter().zip(0..).map(|(data_type, i)| value_from_seed(data_type, seed.rotate_left(i) % 64)).collect()
        };
        let (a, b) = (key(a), key(b));
        let expected = a.iter().zip(&b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
        let order = CompactedKeyOrder::new(&types).unwrap();
        let found = order.compare(&encode(&a, &types), &encode(&b, &types)).unwrap();
        prop_assert_eq!(found, expected.unwrap_or(Ordering::Equal));
    }

    /// Any bytes are rows or errors.
    #[test]
    fn nothing_panics((types, values) in row_of_types(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let mut row = encode(&values, &types);
        let at = at.index(row.len());
        row[at] ^= flip;
        let _ = decode(&row, &types);
        let _ = decode(&row[..at], &types);
        if let Ok(order) = CompactedKeyOrder::new(&types) {
            let _ = order.compare(&row, &encode(&values, &types));
        }
    }
}
