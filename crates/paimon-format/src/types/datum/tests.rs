use proptest::prelude::*;
use proptest::strategy::Union;

use super::*;
use crate::types::{DataField, DataType, TypeKind};

/// The types that an Arrow array can hold, nested ones included.
pub(crate) fn arrow_types() -> impl Strategy<Value = DataType> {
    with_nullability(atomic_kinds()).prop_recursive(3, 12, 3, |inner| {
        let key = inner.clone().prop_map(|data_type| DataType::not_null(data_type.kind));
        let fields = prop::collection::vec(inner.clone(), 1..4).prop_map(|types| {
            let fields = types.into_iter().zip(100..);
            fields
                .map(|(data_type, id)| DataField::new(id, format!("f{id}"), data_type))
                .collect()
        });
        let kind = prop_oneof![
            inner.clone().prop_map(|element| TypeKind::Array(Box::new(element))),
            (key.clone(), inner).prop_map(|(key, value)| TypeKind::Map(Box::new(key), Box::new(value))),
            key.prop_map(|element| TypeKind::Multiset(Box::new(element))),
            fields.prop_map(TypeKind::Row),
            Just(TypeKind::Variant),
        ];
        with_nullability(kind.boxed())
    })
}

/// The types that a key may have.
pub(crate) fn atomic_kinds() -> BoxedStrategy<TypeKind> {
    prop::sample::select(vec![
        TypeKind::Boolean,
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::Int,
        TypeKind::BigInt,
        TypeKind::Float,
        TypeKind::Double,
        TypeKind::Char(5),
        TypeKind::VarChar(9),
        TypeKind::Binary(4),
        TypeKind::VarBinary(9),
        TypeKind::Decimal(9, 2),
        TypeKind::Decimal(38, 10),
        TypeKind::Date,
        TypeKind::Time(3),
        TypeKind::Timestamp(0),
        TypeKind::Timestamp(6),
        TypeKind::LocalZonedTimestamp(3),
        TypeKind::LocalZonedTimestamp(9),
    ])
    .boxed()
}

fn with_nullability(kind: BoxedStrategy<TypeKind>) -> BoxedStrategy<DataType> {
    (kind, any::<bool>())
        .prop_map(|(kind, nullable)| DataType { kind, nullable })
        .boxed()
}

/// Values of a type. Numbers are often small, so that values meet again.
pub(crate) fn any_datum(data_type: &DataType) -> BoxedStrategy<Datum> {
    let value = match &data_type.kind {
        TypeKind::Boolean => any::<bool>().prop_map(Datum::Boolean).boxed(),
        TypeKind::TinyInt => any::<i8>().prop_map(Datum::Int8).boxed(),
        TypeKind::SmallInt => any::<i16>().prop_map(Datum::Int16).boxed(),
        TypeKind::Int => prop_oneof![-9..9_i32, any::<i32>()].prop_map(Datum::Int32).boxed(),
        TypeKind::BigInt => prop_oneof![-9..9_i64, any::<i64>()].prop_map(Datum::Int64).boxed(),
        TypeKind::Float => prop_oneof![
            prop::sample::select(vec![
                0.0,
                -0.0,
                1.5,
                f32::NAN,
                -f32::NAN,
                f32::INFINITY,
                f32::NEG_INFINITY
            ]),
            any::<u32>().prop_map(f32::from_bits)
        ]
        .prop_map(Datum::Float32)
        .boxed(),
        TypeKind::Double => prop_oneof![
            prop::sample::select(vec![
                0.0,
                -0.0,
                1.5,
                f64::NAN,
                -f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY
            ]),
            any::<u64>().prop_map(f64::from_bits)
        ]
        .prop_map(Datum::Float64)
        .boxed(),
        TypeKind::Char(_) | TypeKind::VarChar(_) => "[a-c\0é😀\u{ffff}]{0,4}".prop_map(Datum::String).boxed(),
        TypeKind::Binary(_) | TypeKind::VarBinary(_) => {
            prop::collection::vec(any::<u8>(), 0..5).prop_map(Datum::Bytes).boxed()
        }
        TypeKind::Decimal(precision, _) => {
            let max = 10_i128.pow((*precision).into()) - 1;
            prop_oneof![-9..9_i128, -max..=max].prop_map(Datum::Decimal).boxed()
        }
        TypeKind::Date => (-800_000..2_932_897).prop_map(Datum::Date).boxed(),
        TypeKind::Time(_) => (0..86_400_000).prop_map(Datum::Time).boxed(),
        TypeKind::Timestamp(precision) | TypeKind::LocalZonedTimestamp(precision) => {
            let step = 10_i32.pow(u32::from(9 - (*precision).max(3)));
            // What a count of nanoseconds can hold.
            let millis = -9_000_000_000_000..9_000_000_000_000_i64;
            (millis, 0..1_000_000_i32)
                .prop_map(move |(millis, nanos)| Datum::Timestamp {
                    millis,
                    nanos: nanos / step * step,
                })
                .boxed()
        }
        TypeKind::Variant => {
            let bytes = || prop::collection::vec(any::<u8>(), 0..5);
            (bytes(), bytes())
                .prop_map(|(value, metadata)| Datum::Variant { value, metadata })
                .boxed()
        }
        TypeKind::Array(element) => prop::collection::vec(any_datum(element), 0..4)
            .prop_map(Datum::Array)
            .boxed(),
        TypeKind::Map(key, value) => prop::collection::vec((any_datum(key), any_datum(value)), 0..3)
            .prop_map(Datum::Map)
            .boxed(),
        TypeKind::Multiset(element) => {
            let count = (1..5).prop_map(Datum::Int32);
            prop::collection::vec((any_datum(element), count), 0..3)
                .prop_map(Datum::Map)
                .boxed()
        }
        TypeKind::Row(fields) => fields
            .iter()
            .map(|field| any_datum(&field.data_type))
            .collect::<Vec<_>>()
            .prop_map(Datum::Row)
            .boxed(),
        TypeKind::Blob | TypeKind::Vector(..) => Just(Datum::Null).boxed(),
    };
    match data_type.nullable {
        true => Union::new_weighted(vec![(1, Just(Datum::Null).boxed()), (5, value)]).boxed(),
        false => value,
    }
}

/// A type with some values of it.
pub(crate) fn typed_values(types: impl Strategy<Value = DataType>) -> impl Strategy<Value = (DataType, Vec<Datum>)> {
    types.prop_flat_map(|data_type| {
        let values = prop::collection::vec(any_datum(&data_type), 0..12);
        (Just(data_type), values)
    })
}

proptest! {
    #[test]
    fn values_survive_arrow((data_type, values) in typed_values(arrow_types())) {
        let array = array_from_datums(&DataField::new(7, "c", data_type), &values).unwrap();
        let back: Vec<_> = (0..array.len()).map(|row| Datum::from_array(&array, row).unwrap()).collect();
        prop_assert_eq!(back, values);
    }

    #[test]
    fn the_order_is_total((_, values) in typed_values(arrow_types())) {
        for a in &values {
            prop_assert_eq!(a.compare(a), Ordering::Equal);
            for b in &values {
                prop_assert_eq!(a.compare(b), b.compare(a).reverse());
                for c in &values {
                    prop_assert!(a.compare(b).is_gt() || b.compare(c).is_gt() || a.compare(c).is_le());
                }
            }
        }
    }

    #[test]
    fn flat_values_survive_text((data_type, values) in typed_values(atomic_kinds().prop_map(DataType::not_null))) {
        for value in values {
            // Bytes that are no text have no form that can be read.
            if matches!(&value, Datum::Bytes(bytes) if std::str::from_utf8(bytes).is_err()) { continue; }
            // A text holds whole years from 1 on only.
            if matches!(&value, Datum::Date(days) if *days < -719_162) { continue; }
            let cut = match (&data_type.kind, &value) {
                (TypeKind::Timestamp(0), Datum::Timestamp { millis, .. }) => Datum::Timestamp { millis: millis.div_euclid(1000) * 1000, nanos: 0 },
                _ => value.clone(),
            };
            prop_assert_eq!(Datum::parse(&value.to_text(&data_type), &data_type).unwrap(), cut);
        }
    }
}

#[test]
fn nan_is_one_value_and_the_last() {
    let nans = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)].map(Datum::Float64);
    assert!(nans.iter().all(|a| nans.iter().all(|b| a == b)));
    assert!(Datum::Float64(f64::INFINITY) < nans[1]);
    assert!(Datum::Float64(-0.0) < Datum::Float64(0.0));
    assert!(Datum::Null < Datum::Float64(f64::NEG_INFINITY));
    assert!(Datum::Float32(-f32::NAN) > Datum::Float32(f32::INFINITY));
}

fn parse(text: &str, data_type: &str) -> Result<Datum, String> {
    Datum::parse(text, &data_type.parse().unwrap()).map_err(|error| error.to_string())
}

#[test]
fn literals_are_read_as_java_reads_them() {
    for (text, data_type, value) in [
        ("YES", "BOOLEAN", Datum::Boolean(true)),
        ("-128", "TINYINT", Datum::Int8(-128)),
        ("0.1", "FLOAT", Datum::Float32(0.1)),
        ("1.005", "DECIMAL(5, 2)", Datum::Decimal(101)),
        ("äb", "CHAR(2)", Datum::String("äb".into())),
        ("ä", "VARBINARY(2)", Datum::Bytes("ä".into())),
        ("2024-02-29", "DATE", Datum::Date(19_782)),
        ("1500", "TIMESTAMP(3)", Datum::Timestamp { millis: 1500, nanos: 0 }),
        (
            "1500",
            "TIMESTAMP(6)",
            Datum::Timestamp {
                millis: 1,
                nanos: 500_000,
            },
        ),
        (
            "1970-01-01 00:00:00.5",
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            Datum::Timestamp { millis: 500, nanos: 0 },
        ),
        (
            "[1, null]",
            "ARRAY<INT>",
            Datum::Array(vec![Datum::Int32(1), Datum::Null]),
        ),
        (
            "[a,b,,]",
            "ARRAY<STRING>",
            Datum::Array(vec![Datum::String("a".into()), Datum::String("b".into())]),
        ),
        (
            r#"{"k": [true]}"#,
            "MAP<STRING, ARRAY<BOOLEAN>>",
            Datum::Map(vec![(
                Datum::String("k".into()),
                Datum::Array(vec![Datum::Boolean(true)]),
            )]),
        ),
        (
            r#"{"b": "2"}"#,
            "ROW<a INT, b BIGINT>",
            Datum::Row(vec![Datum::Null, Datum::Int64(2)]),
        ),
    ] {
        assert_eq!(parse(text, data_type), Ok(value), "{text} {data_type}");
    }
}

#[test]
fn literals_that_do_not_fit_are_refused_with_text_and_type() {
    assert_eq!(parse("128", "TINYINT"), Err(r#""128" is no value of TINYINT"#.into()));
    for (text, data_type) in [
        ("maybe", "BOOLEAN"),
        ("1.5", "INT"),
        ("123456789.123", "FLOAT"),
        ("1000", "DECIMAL(3, 0)"),
        ("abc", "VARCHAR(2)"),
        ("abc", "VARBINARY(2)"),
        ("2023-02-29", "DATE"),
        ("15", "TIMESTAMP(4)"),
        ("{}", "ARRAY<INT>"),
        ("[x]", "ARRAY<INT>"),
        ("[1.5]", "ARRAY<INT>"),
    ] {
        assert!(parse(text, data_type).is_err(), "{text} {data_type}");
    }
    assert_eq!(
        parse("x", "VARIANT"),
        Err("not supported: a value of VARIANT as text".into())
    );
}

#[test]
fn nested_values_look_like_java() {
    let text = |json: &str, data_type: &str| {
        let data_type = data_type.parse().unwrap();
        Datum::parse(json, &data_type).unwrap().to_text(&data_type)
    };
    assert_eq!(text("[1.5, null]", "ARRAY<DECIMAL(5, 2)>"), "[1.50, null]");
    assert_eq!(
        text(r#"{"a": 1, "b": null}"#, "MAP<STRING, DOUBLE>"),
        "{a -> 1.0, b -> null}"
    );
    assert_eq!(
        text(r#"{"x": 1, "y": "2024-01-01 10:00:00"}"#, "ROW<x INT, y TIMESTAMP(3)>"),
        "{1, 2024-01-01 10:00:00.000}"
    );
    assert_eq!(
        Datum::Bytes(vec![0xff, 1]).to_text(&"BYTES".parse().unwrap()),
        "x'ff01'"
    );
}

#[test]
fn values_that_an_array_cannot_hold_name_the_column() {
    let message = |data_type: &str, value: Datum| {
        let field = DataField::new(0, "c", data_type.parse().unwrap());
        array_from_datums(
            &field,
            [&Datum::Null, &value][usize::from(!field.data_type.nullable)..]
                .iter()
                .copied(),
        )
        .unwrap_err()
        .to_string()
    };
    assert_eq!(message("INT", Datum::Int64(1)), "column c: Int64(1) does not fit Int32");
    assert_eq!(
        message("INT NOT NULL", Datum::Null),
        "column c is NOT NULL, but value 0 is null"
    );
    assert_eq!(
        message("DECIMAL(2, 1)", Datum::Decimal(100)),
        "column c: Decimal(100) does not fit Decimal128(2, 1)"
    );
    assert_eq!(
        message(
            "TIMESTAMP(9)",
            Datum::Timestamp {
                millis: 253_402_300_799_999,
                nanos: 0
            }
        ),
        "column c: Timestamp { millis: 253402300799999, nanos: 0 } does not fit Timestamp(ns)"
    );
    assert_eq!(
        message("ROW<x INT NOT NULL>", Datum::Row(vec![Datum::Null])),
        "column c.x is NOT NULL, but value 1 is null"
    );
    assert!(message("ROW<x INT>", Datum::Row(vec![])).starts_with("column c: Row([]) does not fit"));
}

#[test]
fn the_ends_of_the_nanosecond_range_fit() {
    let field = DataField::new(0, "c", "TIMESTAMP(9)".parse().unwrap());
    let ends = [
        Datum::Timestamp {
            millis: -9_223_372_036_855,
            nanos: 224_192,
        },
        Datum::Timestamp {
            millis: 9_223_372_036_854,
            nanos: 775_807,
        },
    ];
    let array = array_from_datums(&field, &ends).unwrap();
    assert_eq!(Datum::from_array(&array, 0).unwrap(), ends[0]);
    assert_eq!(Datum::from_array(&array, 1).unwrap(), ends[1]);
    let beyond = [Datum::Timestamp {
        millis: -9_223_372_036_855,
        nanos: 224_191,
    }];
    assert!(array_from_datums(&field, &beyond).is_err());
}

#[test]
fn arrays_of_other_types_are_refused() {
    let views = arrow_array::StringViewArray::from(vec!["x"]);
    assert_eq!(
        Datum::from_array(&views, 0).unwrap_err().to_string(),
        "internal error: Utf8View is the Arrow type of no Paimon type"
    );
    assert!(Datum::from_array(&views, 1).is_err());
}
