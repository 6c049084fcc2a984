use proptest::prelude::*;

use super::*;
use crate::types::array_from_datums;
use crate::types::datum_tests::{any_datum, atomic_kinds};

fn cast_text(from: &str, text: &str, to: &str) -> Result<String, String> {
    let (from, to): (DataType, DataType) = (from.parse().unwrap(), to.parse().unwrap());
    let value = Datum::parse(text, &from).unwrap();
    let to = DataField::new(3, "c", to);
    let cast = Cast::new(&from, &to).map_err(|error| error.to_string())?;
    let array = array_from_datums(&DataField::new(3, "c", from), [&value, &Datum::Null]).unwrap();
    let result = cast.apply(&array).map_err(|error| error.to_string())?;
    assert_eq!(result.data_type(), arrow_field(&to).unwrap().data_type());
    assert!(result.is_null(1));
    let result = Datum::from_array(&result, 0).unwrap();
    assert_eq!(cast.apply_to_datum(&value).unwrap(), result);
    Ok(result.to_text(&to.data_type))
}

/// `from`, value, `to`, result; as Java's `CastExecutors` gives them.
#[test]
fn casts_give_what_java_gives() {
    for (from, text, to, expected) in [
        ("INT", "383", "TINYINT", "127"),
        ("BIGINT", "4294967297", "INT", "1"),
        ("INT", "7", "BIGINT", "7"),
        ("BIGINT", "9007199254740993", "DOUBLE", "9.007199254740992E15"),
        ("INT", "16777217", "FLOAT", "1.6777216E7"),
        ("DOUBLE", "3.99", "INT", "3"),
        ("DOUBLE", "-3.99", "BIGINT", "-3"),
        ("DOUBLE", "NaN", "INT", "0"),
        ("DOUBLE", "1e20", "BIGINT", "9223372036854775807"),
        ("DOUBLE", "1e20", "INT", "2147483647"),
        ("DOUBLE", "1e20", "TINYINT", "-1"),
        ("DOUBLE", "300.5", "TINYINT", "44"),
        ("FLOAT", "0.1", "DOUBLE", "0.10000000149011612"),
        ("DOUBLE", "0.1", "FLOAT", "0.1"),
        ("INT", "123", "DECIMAL(5, 2)", "123.00"),
        ("INT", "1234", "DECIMAL(5, 2)", "null"),
        ("DOUBLE", "1.005", "DECIMAL(5, 2)", "1.01"),
        ("FLOAT", "0.1", "DECIMAL(10, 9)", "0.100000001"),
        ("DECIMAL(5, 2)", "123.45", "DECIMAL(10, 4)", "123.4500"),
        ("DECIMAL(5, 2)", "123.45", "DECIMAL(4, 1)", "123.5"),
        ("DECIMAL(5, 2)", "-123.45", "DECIMAL(4, 1)", "-123.5"),
        ("DECIMAL(5, 2)", "999.99", "DECIMAL(4, 1)", "null"),
        ("DECIMAL(5, 2)", "-123.99", "INT", "-123"),
        ("DECIMAL(5, 2)", "383.99", "TINYINT", "127"),
        ("DECIMAL(38, 0)", "18446744073709551617", "BIGINT", "1"),
        ("DECIMAL(5, 2)", "123.45", "DOUBLE", "123.45"),
        (
            "DECIMAL(30, 2)",
            "12345678901234567890.12",
            "DOUBLE",
            "1.2345678901234567E19",
        ),
        ("DECIMAL(5, 2)", "1.50", "STRING", "1.50"),
        ("BOOLEAN", "true", "INT", "1"),
        ("BOOLEAN", "true", "DECIMAL(3, 1)", "1.0"),
        ("BOOLEAN", "false", "STRING", "false"),
        ("BIGINT", "-5", "BOOLEAN", "true"),
        ("INT", "12345", "VARCHAR(3)", "123"),
        ("INT", "12", "CHAR(4)", "12  "),
        ("DOUBLE", "1e7", "STRING", "1.0E7"),
        ("STRING", "äöü", "VARCHAR(2)", "äö"),
        ("VARCHAR(5)", "abc", "STRING", "abc"),
        ("VARCHAR(5)", "abc", "CHAR(5)", "abc  "),
        ("STRING", "yes", "BOOLEAN", "true"),
        ("STRING", "12.9", "INT", "12"),
        ("STRING", " 1.5 ", "DOUBLE", "1.5"),
        ("STRING", "12345", "DECIMAL(4, 0)", "null"),
        ("STRING", "2024-2-29", "DATE", "2024-02-29"),
        ("STRING", "10:30", "TIME(3)", "10:30:00.0"),
        (
            "STRING",
            "2024-02-29 10:30:00.123456",
            "TIMESTAMP(3)",
            "2024-02-29 10:30:00.123",
        ),
        ("STRING", "1500", "TIMESTAMP(3)", "1970-01-01 00:00:01.500"),
        ("STRING", "abc", "BINARY(5)", "abc\0\0"),
        ("STRING", "abc", "VARBINARY(2)", "ab"),
        ("BYTES", "abc", "BINARY(2)", "ab"),
        ("BYTES", "abc", "STRING", "abc"),
        ("DATE", "2024-02-29", "STRING", "2024-02-29"),
        ("DATE", "2024-02-29", "TIMESTAMP(6)", "2024-02-29 00:00:00.000000"),
        ("TIME(3)", "10:30:00.12", "STRING", "10:30:00.12"),
        ("TIME(3)", "10:30:00.12", "TIMESTAMP(3)", "1970-01-01 10:30:00.120"),
        ("TIMESTAMP(6)", "2024-02-29 10:30:00.123456", "DATE", "2024-02-29"),
        ("TIMESTAMP(6)", "1969-12-31 23:59:59.5", "DATE", "1969-12-31"),
        ("TIMESTAMP(6)", "1969-12-31 10:30:00", "TIME(0)", "10:30:00"),
        ("TIMESTAMP(3)", "1969-12-31 23:59:58.500", "BIGINT", "-1"),
        ("BIGINT", "-1", "TIMESTAMP(3)", "1969-12-31 23:59:59.000"),
        (
            "TIMESTAMP(9)",
            "2024-02-29 10:30:00.123456789",
            "TIMESTAMP(6)",
            "2024-02-29 10:30:00.123456",
        ),
        (
            "TIMESTAMP(9)",
            "2024-02-29 10:30:00.123456789",
            "TIMESTAMP(1)",
            "2024-02-29 10:30:00.1",
        ),
        (
            "TIMESTAMP(3)",
            "1969-12-31 23:59:58.500",
            "TIMESTAMP(0)",
            "1969-12-31 23:59:59",
        ),
        (
            "TIMESTAMP(3)",
            "2024-02-29 10:30:00.123",
            "TIMESTAMP(9)",
            "2024-02-29 10:30:00.123000000",
        ),
        (
            "TIMESTAMP(6)",
            "2024-02-29 10:30:00.123",
            "STRING",
            "2024-02-29 10:30:00.123000",
        ),
        (
            "TIMESTAMP(3)",
            "2024-02-29 10:30:00.123",
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            "2024-02-29 10:30:00.123",
        ),
        ("ARRAY<INT>", "[1, null]", "STRING", "[1, null]"),
        ("ARRAY<INT>", "[1, null]", "ARRAY<STRING>", "[1, null]"),
        ("MAP<STRING, INT>", r#"{"a": 1}"#, "MAP<STRING, BIGINT>", "{a -> 1}"),
    ] {
        assert_eq!(
            cast_text(from, text, to),
            Ok(expected.to_owned()),
            "{text} from {from} to {to}"
        );
    }
}

#[test]
fn what_cannot_be_cast_is_refused() {
    assert_eq!(
        cast_text("STRING", "12x", "INT"),
        Err(r#"column c: "12x" of type STRING cannot be cast to INT"#.into())
    );
    assert_eq!(
        cast_text("DOUBLE", "NaN", "DECIMAL(5, 2)"),
        Err(r#"column c: "NaN" of type DOUBLE cannot be cast to DECIMAL(5, 2)"#.into())
    );
    assert_eq!(
        cast_text("BOOLEAN", "true", "DATE"),
        Err("not supported: column c: a cast from BOOLEAN to DATE".into())
    );
    for (from, to) in [
        ("DATE", "INT"),
        ("DATE", "VARCHAR(10)"),
        ("SMALLINT", "TIMESTAMP(3)"),
        ("ARRAY<INT>", "INT"),
        ("VARIANT", "STRING"),
    ] {
        let to = DataField::new(0, "c", to.parse().unwrap());
        assert!(Cast::new(&from.parse().unwrap(), &to).is_err(), "{from} {to}");
    }
    assert_eq!(
        cast_text("STRING", "x", "CHAR(2147483647)"),
        Err("not supported: column c: a cast from STRING to CHAR(2147483647)".into())
    );
    let far = cast_text("TIMESTAMP(3)", "9999-12-31 00:00:00", "TIMESTAMP(9)").unwrap_err();
    assert!(far.starts_with("column c: "), "{far}");
}

#[test]
fn fields_of_a_row_are_found_by_id() {
    let row = |fields: &[(i32, &str, &str)]| {
        let fields = fields
            .iter()
            .map(|(id, name, data_type)| DataField::new(*id, *name, data_type.parse().unwrap()));
        DataType::nullable(TypeKind::Row(fields.collect()))
    };
    let old = row(&[(1, "a", "INT"), (2, "b", "STRING"), (3, "gone", "DATE")]);
    let new = DataField::new(
        0,
        "r",
        row(&[(2, "renamed", "STRING"), (4, "added", "INT"), (1, "a", "BIGINT")]),
    );
    let value = Datum::Row(vec![Datum::Int32(7), Datum::String("x".into()), Datum::Date(1)]);
    let array = array_from_datums(&DataField::new(0, "r", old.clone()), [&value, &Datum::Null]).unwrap();
    let cast = Cast::new(&old, &new).unwrap();
    let result = cast.apply(&array).unwrap();
    assert_eq!(result.data_type(), arrow_field(&new).unwrap().data_type());
    let expected = Datum::Row(vec![Datum::String("x".into()), Datum::Null, Datum::Int64(7)]);
    assert_eq!(Datum::from_array(&result, 0).unwrap(), expected);
    assert!(result.is_null(1));
    assert_eq!(cast.apply_to_datum(&value).unwrap(), expected);
}

#[test]
fn fields_with_one_arrow_type_are_cast_too() {
    let row = |data_type: &str| format!("ROW<a {data_type}>").parse::<DataType>().unwrap();
    let value = Datum::Row(vec![Datum::String("abc".into())]);
    let cast = Cast::new(&row("VARCHAR(5)"), &DataField::new(0, "r", row("VARCHAR(2)"))).unwrap();
    assert_eq!(
        cast.apply_to_datum(&value).unwrap(),
        Datum::Row(vec![Datum::String("ab".into())])
    );
}

#[test]
fn an_array_of_another_type_is_a_fault() {
    let to = DataField::new(0, "c", "INT".parse().unwrap());
    let cast = Cast::new(&"INT".parse().unwrap(), &to).unwrap();
    let array: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![1]));
    assert_eq!(cast.apply(&array).unwrap_err().kind(), crate::ErrorKind::Internal);
}

/// Two types with a cast, and values of the first.
fn castable() -> impl Strategy<Value = (DataType, DataType, Vec<Datum>)> {
    (atomic_kinds(), atomic_kinds())
        .prop_filter("a cast between two types", |(from, to)| {
            if from == to {
                return false;
            }
            let to = DataField::new(0, "c", DataType::nullable(to.clone()));
            Cast::new(&DataType::nullable(from.clone()), &to).is_ok()
        })
        .prop_flat_map(|(from, to)| {
            let from = DataType::nullable(from);
            let values = prop::collection::vec(any_datum(&from), 1..8);
            (Just(from), Just(DataType::nullable(to)), values)
        })
}

proptest! {
    /// Arrow's kernels and the casts of single values agree, and what keeps the order does.
    #[test]
    fn columns_and_values_agree((from, to, values) in castable()) {
        let to = DataField::new(0, "c", to);
        let cast = Cast::new(&from, &to).unwrap();
        let array = array_from_datums(&DataField::new(0, "c", from.clone()), &values).unwrap();
        let one_by_one: Result<Vec<_>, _> = values.iter().map(|value| value::cast(value, &from, &to.data_type, "c")).collect();
        match (cast.apply(&array), one_by_one) {
            (Ok(column), Ok(expected)) => {
                let column: Vec<_> = (0..column.len()).map(|row| Datum::from_array(&column, row).unwrap()).collect();
                prop_assert_eq!(&column, &expected);
                if cast.keeps_order() {
                    for (a, cast_a) in values.iter().zip(&column) {
                        prop_assert_eq!(a.is_null(), cast_a.is_null());
                        for (b, cast_b) in values.iter().zip(&column) {
                            prop_assert!(a > b || cast_a <= cast_b, "{:?} {:?}", a, b);
                        }
                    }
                }
            }
            (Err(_), Err(_)) => {}
            // A timestamp may be beyond what the new unit holds: only the column knows.
            (Err(_), Ok(_)) => prop_assert!(matches!(to.data_type.kind, TypeKind::Timestamp(7..) | TypeKind::LocalZonedTimestamp(7..))),
            (Ok(column), Err(error)) => prop_assert!(false, "{:?} {}", column, error),
        }
    }
}
