use arrow_array::{
    BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array, Int64Array,
    StringArray, TimestampMicrosecondArray,
};
use proptest::prelude::*;

use super::*;
use crate::types::datum_tests::{any_datum, atomic_kinds};
use crate::types::{DataField, DataType, Datum, TypeKind, array_from_datums};

fn codec(types: Vec<DataType>) -> KeyCodec {
    let fields = types.into_iter().zip(0..);
    let fields: Vec<_> = fields
        .map(|(data_type, id)| DataField::new(id, format!("k{id}"), data_type))
        .collect();
    let key = (0..fields.len()).collect();
    KeyCodec::new(&KvSchema::new(0, fields, key, None).unwrap()).unwrap()
}

fn assert_ascending(keys: &Keys) {
    for i in 0..keys.len() {
        for j in 0..keys.len() {
            assert_eq!(keys.compare(i, keys, j), i.cmp(&j), "{i} {j}");
        }
    }
}

fn keys_of(kind: TypeKind, column: ArrayRef) -> Keys {
    codec(vec![DataType::nullable(kind)])
        .keys_of_columns(&[column])
        .unwrap()
}

#[test]
fn every_type_has_javas_order() {
    assert_ascending(&keys_of(
        TypeKind::Boolean,
        Arc::new(BooleanArray::from(vec![None, Some(false), Some(true)])),
    ));
    assert_ascending(&keys_of(
        TypeKind::TinyInt,
        Arc::new(Int8Array::from(vec![None, Some(-128), Some(0), Some(127)])),
    ));
    let floats = vec![
        None,
        Some(f64::NEG_INFINITY),
        Some(-1.0),
        Some(-0.0),
        Some(0.0),
        Some(f64::INFINITY),
        Some(-f64::NAN),
    ];
    assert_ascending(&keys_of(TypeKind::Double, Arc::new(Float64Array::from(floats))));
    assert_ascending(&keys_of(
        TypeKind::Float,
        Arc::new(Float32Array::from(vec![f32::MIN, -0.0, 0.0, f32::INFINITY, -f32::NAN])),
    ));
    let strings = vec![
        None,
        Some(""),
        Some("\0"),
        Some("a"),
        Some("a\0"),
        Some("ab"),
        Some("\u{7f}"),
        Some("é"),
        Some("\u{ffff}"),
        Some("😀"),
    ];
    assert_ascending(&keys_of(TypeKind::VarChar(9), Arc::new(StringArray::from(strings))));
    let bytes: Vec<Option<&[u8]>> = vec![
        None,
        Some(b""),
        Some(b"\x00"),
        Some(b"\x7f"),
        Some(b"\x80"),
        Some(b"\xff"),
        Some(b"\xff\x00"),
    ];
    assert_ascending(&keys_of(TypeKind::VarBinary(9), Arc::new(BinaryArray::from(bytes))));
    let decimals = Decimal128Array::from(vec![-(10_i128.pow(38) - 1), -1, 0, 1, 10_i128.pow(38) - 1]);
    let decimals = decimals.with_precision_and_scale(38, 2).unwrap();
    assert_ascending(&keys_of(TypeKind::Decimal(38, 2), Arc::new(decimals)));
    let times = TimestampMicrosecondArray::from(vec![i64::MIN, -1, 0, 1, i64::MAX]);
    assert_ascending(&keys_of(TypeKind::Timestamp(6), Arc::new(times)));
}

#[test]
fn every_nan_is_one_key() {
    let nans = [
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff8_0000_0000_0001),
        f64::from_bits(0xfff0_0000_0000_0001),
    ];
    let keys = keys_of(TypeKind::Double, Arc::new(Float64Array::from(nans.to_vec())));
    assert_eq!(keys.run_end(0), 4);
}

#[test]
fn lone_integers_stay_native_when_they_cannot_be_null() {
    let int = codec(vec![DataType::not_null(TypeKind::SmallInt)]);
    let column: ArrayRef = Arc::new(arrow_array::Int16Array::from(vec![-3, 4]));
    assert!(matches!(int.keys_of_columns(&[column]).unwrap(), Keys::Int32(values) if values[..] == [-3, 4]));
    let long = codec(vec![DataType::not_null(TypeKind::BigInt)]);
    let column: ArrayRef = Arc::new(Int64Array::from(vec![-3, 4]));
    assert!(matches!(long.keys_of_columns(&[column]).unwrap(), Keys::Int64(values) if values[..] == [-3, 4]));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None, Some(4)]));
    let error = long.keys_of_columns(&[Arc::clone(&nulls)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "internal error: key columns: null in a column that is not nullable"
    );
    assert_ascending(&keys_of(TypeKind::BigInt, nulls));
    let wrong: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    assert!(long.keys_of_columns(&[wrong]).is_err());
    assert!(long.keys_of_columns(&[]).is_err());
}

#[test]
fn slices_and_picks_keep_their_keys() {
    let codec = codec(vec![
        DataType::not_null(TypeKind::Int),
        DataType::nullable(TypeKind::VarChar(5)),
    ]);
    let make = |numbers: Vec<i32>| {
        let texts: StringArray = numbers.iter().map(|n| (n % 3 != 0).then(|| n.to_string())).collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(Int32Array::from(numbers)), Arc::new(texts)];
        codec.keys_of_columns(&columns).unwrap()
    };
    let (a, b) = (make((0..10).collect()), make((100..110).collect()));
    let part = a.slice(3, 4);
    assert_eq!(part.len(), 4);
    assert!((0..4).all(|i| part.equal(i, &a, i + 3)));
    let part = part.slice(1, 2);
    let picked = codec
        .gather(&[&part, &b], [(1, 9), (0, 0), (0, 1), (0, 0)].into_iter())
        .unwrap();
    assert!(picked.equal(0, &b, 9) && picked.equal(1, &a, 4) && picked.equal(2, &a, 5) && picked.equal(3, &a, 4));
    assert!(codec.gather(&[&a], [(1, 0)].into_iter()).is_err());
    assert!(
        codec
            .gather(&[&Keys::Int64(vec![1].into())], [(0, 0)].into_iter())
            .is_err()
    );
}

proptest! {
    #[test]
    fn bounds_agree_with_a_scan(mut values in prop::collection::vec(-20_i64..20, 0..60), from in 0_usize..70, wanted in -25_i64..25, native: bool) {
        values.sort_unstable();
        let data_type = if native { DataType::not_null(TypeKind::BigInt) } else { DataType::nullable(TypeKind::BigInt) };
        let codec = codec(vec![data_type]);
        let keys = |values: Vec<i64>| {
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            codec.keys_of_columns(&[column]).unwrap()
        };
        let (all, one) = (keys(values.clone()), keys(vec![wanted]));
        let scan = |stop: &dyn Fn(i64) -> bool| (from.min(values.len())..values.len()).find(|&i| stop(values[i])).unwrap_or(values.len());
        prop_assert_eq!(all.lower_bound(from, &one, 0), scan(&|value| value >= wanted));
        prop_assert_eq!(all.upper_bound(from, &one, 0), scan(&|value| value > wanted));
        for i in 0..values.len() {
            prop_assert_eq!(all.run_end(i), (i..values.len()).find(|&j| values[j] != values[i]).unwrap_or(values.len()));
        }
    }
}

/// Several key types with rows of them.
fn key_rows() -> impl Strategy<Value = (Vec<DataType>, Vec<Vec<Datum>>)> {
    let data_type = (atomic_kinds(), any::<bool>()).prop_map(|(kind, nullable)| DataType { kind, nullable });
    prop::collection::vec(data_type, 1..4).prop_flat_map(|types| {
        let row: Vec<_> = types.iter().map(any_datum).collect();
        (Just(types), prop::collection::vec(row, 1..8))
    })
}

proptest! {
    #[test]
    fn keys_order_as_their_values_do((types, rows) in key_rows()) {
        let columns = types.iter().enumerate().map(|(i, data_type)| {
            let field = DataField::new(i as i32, format!("k{i}"), data_type.clone());
            array_from_datums(&field, rows.iter().map(|row| &row[i])).unwrap()
        });
        let keys = codec(types.clone()).keys_of_columns(&columns.collect::<Vec<_>>()).unwrap();
        for (i, a) in rows.iter().enumerate() {
            for (j, b) in rows.iter().enumerate() {
                prop_assert_eq!(keys.compare(i, &keys, j), a.cmp(b), "{:?} {:?}", a, b);
            }
        }
    }
}
