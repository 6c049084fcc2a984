//! What aggregation makes of the versions of one key, function by function.

use paimon_format::types::RowKind::{Delete, Insert};
use paimon_format::types::{DataField, DataType, Datum, RowKind, TypeKind};

use crate::table::{STRING, Table, refused};

const INT: TypeKind = TypeKind::Int;

fn table(kind: TypeKind, function: &str, options: &[(&str, &str)]) -> Table {
    let mut all = vec![("fields.v.aggregate-function", function)];
    all.extend(options);
    Table::new("aggregation", &[("v", kind)], &all)
}

fn text(text: &str) -> Datum {
    Datum::String(text.to_owned())
}

fn int(value: i32) -> Datum {
    Datum::Int32(value)
}

fn ints(values: &[i32]) -> Datum {
    Datum::Array(values.iter().copied().map(int).collect())
}

/// What one column becomes.
fn value(table: &Table, values: &[(RowKind, Datum)]) -> Datum {
    let merged = table.merge(&Table::values(values)).unwrap();
    let [(Insert, values)] = merged.as_slice() else {
        panic!("{merged:?}");
    };
    values[1].clone()
}

fn added(table: &Table, values: impl IntoIterator<Item = Datum>) -> Datum {
    let values: Vec<_> = values.into_iter().map(|value| (Insert, value)).collect();
    value(table, &values)
}

#[test]
fn sums() {
    let sum = table(INT, "sum", &[]);
    sum.check("+I 1 5; +I 1 N; -D 1 2", "+I 1 3");
    sum.check("-D 1 5", "+I 1 -5");
    sum.check("-U 1 5; +U 1 8", "+I 1 3");
    let lone = sum.run(&sum.rows("-D 1 5"), 1);
    assert_eq!(sum.merge_passing(&[lone]).unwrap().kind(0), Delete);
    table(TypeKind::Double, "sum", &[]).check("+I 1 0.5; +I 1 0.25", "+I 1 0.75");
    table(TypeKind::BigInt, "sum", &[]).check("+I 1 9223372036854775806; +I 1 1", "+I 1 9223372036854775807");
    table(TypeKind::Decimal(5, 2), "sum", &[]).check("+I 1 999.98; +I 1 0.01", "+I 1 999.99");
}

#[test]
fn overflow_is_an_error_that_names_the_column() {
    let message = |kind, function, rows| table(kind, function, &[]).fails(rows);
    assert_eq!(
        message(TypeKind::TinyInt, "sum", "+I 1 100; +I 1 100"),
        "column v: sum overflows TINYINT"
    );
    let overflows = [
        message(TypeKind::BigInt, "sum", "+I 1 9223372036854775807; +I 1 1"),
        message(INT, "product", "+I 1 100000; +I 1 100000"),
        message(TypeKind::SmallInt, "sum", "+I 1 -32768; -D 1 1"),
        message(TypeKind::Decimal(5, 2), "sum", "+I 1 999.99; +I 1 0.01"),
        message(TypeKind::Decimal(20, 2), "sum", "+I 1 999999999999999999.99; +I 1 0.01"),
    ];
    assert!(
        overflows.iter().all(|message| message.contains("overflows")),
        "{overflows:?}"
    );
    assert_eq!(
        message(INT, "product", "+I 1 1; -D 1 0"),
        "column v: product: division by zero"
    );
}

#[test]
fn products() {
    let product = table(INT, "product", &[]);
    product.check("+I 1 6; +I 1 7; -D 1 4", "+I 1 10");
    product.check("-D 1 4", "+I 1 N");
    table(TypeKind::Decimal(5, 2), "product", &[]).check("+I 1 1.05; +I 1 1.50", "+I 1 1.58");
}

#[test]
fn extremes() {
    table(INT, "max", &[]).check("+I 1 3; +I 1 N; +I 1 7; +I 1 5", "+I 1 7");
    table(STRING, "min", &[]).check("+I 1 b; +I 1 ab; +I 1 abc", "+I 1 ab");
    let zero = added(
        &table(TypeKind::Double, "min", &[]),
        [Datum::Float64(0.0), Datum::Float64(-0.0)],
    );
    assert_eq!(zero, Datum::Float64(-0.0));
    let nan = added(
        &table(TypeKind::Double, "max", &[]),
        [Datum::Float64(f64::NAN), Datum::Float64(1.0)],
    );
    assert_eq!(nan, Datum::Float64(f64::NAN));
    assert_eq!(
        table(INT, "max", &[]).fails("+I 1 3; -D 1 3"),
        "column v: aggregate function max does not support retraction; fields.v.ignore-retract = true lets it ignore -U and \
         -D rows"
    );
    table(INT, "max", &[("fields.v.ignore-retract", "true")]).check("+I 1 3; -D 1 9", "+I 1 3");
}

#[test]
fn selections() {
    table(INT, "last_value", &[]).check("+I 1 10; +I 1 N", "+I 1 N");
    let non_null = table(INT, "last_non_null_value", &[]);
    non_null.check("+I 1 10; +I 1 N", "+I 1 10");
    non_null.check("+I 1 10; -D 1 3", "+I 1 N");
    non_null.check("+I 1 10; -D 1 N", "+I 1 10");
    table(INT, "first_value", &[]).check("+I 1 N; +I 1 3", "+I 1 N");
    table(INT, "first_non_null_value", &[]).check("+I 1 N; +I 1 3; +I 1 4", "+I 1 3");
    table(INT, "first_not_null_value", &[]).check("+I 1 N; +I 1 3; +I 1 4", "+I 1 3");
    assert!(
        table(INT, "first_value", &[])
            .fails("+I 1 1; -U 1 1")
            .contains("does not support retraction")
    );
    Table::new("aggregation", &[("v", INT)], &[]).check("+I 1 5; +I 1 N", "+I 1 5");
}

#[test]
fn a_column_without_nulls_keeps_the_old_value_between_update_before_and_after() {
    for function in ["last_value", "last_non_null_value"] {
        let table = Table::new(
            "aggregation",
            &[("v!", INT), ("s", INT)],
            &[
                ("fields.v.aggregate-function", function),
                ("fields.s.aggregate-function", "sum"),
            ],
        );
        table.check("+I 1 5 1; -U 1 5 1", "+I 1 5 0");
        table.check("+I 1 5 1; -U 1 5 1; +U 1 8 3", "+I 1 8 3");
        table.check("-U 1 5 1; -U 1 6 1", "+I 1 6 -2");
    }
}

#[test]
fn booleans() {
    let rows = "+I 1 true; +I 1 N; +I 1 false";
    table(TypeKind::Boolean, "bool_and", &[]).check(rows, "+I 1 false");
    table(TypeKind::Boolean, "bool_or", &[]).check(rows, "+I 1 true");
    table(TypeKind::Boolean, "bool_and", &[]).check("+I 1 N; +I 1 N", "+I 1 N");
}

#[test]
fn a_delete_can_remove_the_record() {
    let sum = table(INT, "sum", &[("aggregation.remove-record-on-delete", "true")]);
    sum.check("+I 1 10; -D 1 10", "-D 1 10");
    sum.check("+I 1 10; -U 1 10", "+I 1 0");
    // The removed value does not count; Java gives 15.
    sum.check("+I 1 10; -D 1 10; +I 1 5", "+I 1 5");
    assert!(sum.engine.promises().deletes_need_older);
}

#[test]
fn lists_of_text() {
    table(STRING, "listagg", &[]).check("+I 1 a; +I 1 _; +I 1 N; +I 1 b", "+I 1 a,b");
    table(STRING, "listagg", &[("fields.v.list-agg-delimiter", ";")]).check_text(&["a", "b"], "a;b");
    let distinct = table(STRING, "listagg", &[("fields.v.distinct", "true")]);
    distinct.check("+I 1 abc,def; +I 1 ab,xy,def,xy", "+I 1 abc,def,ab,xy");
    let steps = ["abc,def,asd", "ab,xy", "xy,,ab,q,q", "N", "~"];
    let after = [
        "abc,def,asd",
        "abc,def,asd,ab,xy",
        "abc,def,asd,ab,xy,q",
        "abc,def,asd,ab,xy,q",
        "abc,def,asd,ab,xy,q",
    ];
    for (step, expected) in after.iter().enumerate() {
        let rows: Vec<String> = steps[..=step].iter().map(|value| format!("+I 1 {value}")).collect();
        distinct.check(&rows.join(";"), &format!("+I 1 {expected}"));
    }
    distinct.check("+I 1 a,a; +I 1 a,b", "+I 1 a,a,b");
}

impl Table {
    fn check_text(&self, values: &[&str], expected: &str) {
        assert_eq!(added(self, values.iter().map(|value| text(value))), text(expected));
    }
}

#[test]
fn collections() {
    let array = || TypeKind::Array(Box::new(DataType::nullable(INT)));
    let collect = table(array(), "collect", &[]);
    assert_eq!(added(&collect, [ints(&[1, 2]), ints(&[2, 3])]), ints(&[1, 2, 2, 3]));
    assert_eq!(
        value(&collect, &[(Insert, ints(&[1, 2, 2, 3])), (Delete, ints(&[2, 9]))]),
        ints(&[1, 2, 3])
    );
    assert_eq!(
        value(&collect, &[(Insert, ints(&[2, 1, 2, 2])), (Delete, ints(&[2, 2]))]),
        ints(&[1, 2])
    );
    let distinct = table(array(), "collect", &[("fields.v.distinct", "true")]);
    assert_eq!(added(&distinct, [ints(&[1, 2]), ints(&[2, 3])]), ints(&[1, 2, 3]));
    assert_eq!(added(&distinct, [Datum::Null, ints(&[1, 1])]), ints(&[1]));
    assert_eq!(added(&distinct, [Datum::Null, Datum::Null]), Datum::Null);
    let bytes = TypeKind::Array(Box::new(DataType::nullable(TypeKind::VarBinary(4))));
    let one = || Datum::Array(vec![Datum::Bytes(vec![7])]);
    assert_eq!(
        added(
            &table(bytes, "collect", &[("fields.v.distinct", "true")]),
            [one(), one()]
        ),
        one()
    );
}

#[test]
fn maps() {
    let map = TypeKind::Map(Box::new(DataType::not_null(INT)), Box::new(DataType::nullable(STRING)));
    let entries =
        |entries: &[(i32, &str)]| Datum::Map(entries.iter().map(|(key, value)| (int(*key), text(value))).collect());
    let merge = table(map, "merge_map", &[]);
    let both = [entries(&[(1, "a"), (2, "b")]), entries(&[(2, "c")])];
    assert_eq!(added(&merge, both.clone()), entries(&[(1, "a"), (2, "c")]));
    let [first, second] = both;
    assert_eq!(
        value(
            &merge,
            &[(Insert, first), (Insert, second), (Delete, entries(&[(1, "z")]))]
        ),
        entries(&[(2, "c")])
    );
}

fn nested(fields: &[(&str, TypeKind)]) -> DataType {
    let fields = fields.iter().cloned().zip(10..);
    let fields = fields.map(|((name, kind), id)| DataField::new(id, name, DataType::nullable(kind)));
    DataType::nullable(TypeKind::Row(fields.collect()))
}

#[test]
fn maps_with_times() {
    let value = nested(&[("v", STRING), ("ts", STRING)]);
    let map = TypeKind::Map(Box::new(DataType::not_null(INT)), Box::new(value));
    let merge = table(map, "merge_map_with_keytime", &[]);
    let entry = |key: i32, value: Option<(&str, &str)>| {
        let row = value.map_or(Datum::Null, |(value, time)| Datum::Row(vec![text(value), text(time)]));
        (int(key), row)
    };
    let map = |entries: &[(Datum, Datum)]| Datum::Map(entries.to_vec());
    let first = map(&[entry(1, Some(("x", "05")))]);
    assert_eq!(
        added(
            &merge,
            [
                first.clone(),
                map(&[entry(1, Some(("y", "04"))), entry(2, Some(("z", "01")))])
            ]
        ),
        map(&[entry(1, Some(("x", "05"))), entry(2, Some(("z", "01")))])
    );
    assert_eq!(added(&merge, [first, map(&[entry(1, None)])]), map(&[]));
    assert_eq!(
        added(
            &merge,
            [map(&[entry(1, Some(("x", "9")))]), map(&[entry(1, Some(("y", "10")))])]
        ),
        map(&[entry(1, Some(("x", "9")))])
    );
}

#[test]
fn the_time_of_a_map_value_may_be_any_field() {
    let value = nested(&[("ts", STRING), ("v", STRING)]);
    let map = TypeKind::Map(Box::new(DataType::not_null(INT)), Box::new(value));
    let entry = |time: &str, value: &str| Datum::Map(vec![(int(1), Datum::Row(vec![text(time), text(value)]))]);
    let both = [entry("05", "a"), entry("04", "z")];
    // The last field is the time unless the option names another one.
    let last = table(map.clone(), "merge_map_with_keytime", &[]);
    assert_eq!(added(&last, both.clone()), entry("04", "z"));
    let named = table(map, "merge_map_with_keytime", &[("fields.v.ts-field", "ts")]);
    assert_eq!(added(&named, both), entry("05", "a"));
}

fn rows(rows: &[&[Datum]]) -> Datum {
    Datum::Array(rows.iter().map(|row| Datum::Row(row.to_vec())).collect())
}

#[test]
fn nested_updates() {
    let array = || TypeKind::Array(Box::new(nested(&[("id", INT), ("v", STRING)])));
    let row = |id: i32, value: &str| [int(id), text(value)];
    let key = ("fields.v.nested-key", "id");
    let keyed = table(array(), "nested_update", &[key]);
    let (a, b, c, d) = (row(1, "a"), row(2, "b"), row(2, "c"), row(3, "d"));
    let with_null = Datum::Array(vec![Datum::Row(c.to_vec()), Datum::Null]);
    assert_eq!(added(&keyed, [rows(&[&a, &b]), with_null]), rows(&[&a, &c]));
    assert_eq!(
        value(
            &keyed,
            &[(Insert, rows(&[&a, &b])), (Delete, rows(&[&row(2, "other")]))]
        ),
        rows(&[&a])
    );
    let limited = table(array(), "nested_update", &[key, ("fields.v.count-limit", "2")]);
    assert_eq!(added(&limited, [rows(&[&a, &b]), rows(&[&c, &d])]), rows(&[&a, &c]));
    let plain = table(array(), "nested_update", &[("fields.v.count-limit", "3")]);
    let (r3, r4) = (row(3, "3"), row(4, "4"));
    assert_eq!(
        added(&plain, [rows(&[&a, &b]), rows(&[&r3, &r4])]),
        rows(&[&a, &b, &r3])
    );
    let plain = table(array(), "nested_update", &[]);
    assert_eq!(
        value(&plain, &[(Insert, rows(&[&a, &a, &b])), (Delete, rows(&[&a]))]),
        rows(&[&b])
    );
    let null = [Datum::Null, text("a")];
    let strategy = |name| {
        table(
            array(),
            "nested_update",
            &[key, ("fields.v.nested-key-null-strategy", name)],
        )
    };
    assert_eq!(added(&strategy("ignore"), [rows(&[&null])]), rows(&[]));
    assert_eq!(added(&strategy("merge"), [rows(&[&null])]), rows(&[&null]));
    assert_eq!(
        strategy("error")
            .merge(&Table::values(&[(Insert, rows(&[&null]))]))
            .unwrap_err()
            .to_string(),
        "column v: a nested key contains null values"
    );
}

#[test]
fn nested_updates_by_sequence() {
    let array = TypeKind::Array(Box::new(nested(&[("id", INT), ("s", INT), ("v", STRING)])));
    let options = [("fields.v.nested-key", "id"), ("fields.v.nested-sequence-field", "s")];
    let table = table(array, "nested_update", &options);
    let row = |sequence: i32, value: &str| [int(1), int(sequence), text(value)];
    let (a, b, c) = (row(5, "a"), row(4, "b"), row(5, "c"));
    assert_eq!(added(&table, [rows(&[&a]), rows(&[&b])]), rows(&[&a]));
    assert_eq!(added(&table, [rows(&[&a]), rows(&[&c])]), rows(&[&c]));
}

#[test]
fn nested_partial_updates() {
    let array = TypeKind::Array(Box::new(nested(&[("id", INT), ("a", STRING), ("b", STRING)])));
    let table = table(array, "nested_partial_update", &[("fields.v.nested-key", "id")]);
    let first = [int(1), text("a"), Datum::Null];
    let second = [int(1), Datum::Null, text("b")];
    let both = [int(1), text("a"), text("b")];
    assert_eq!(added(&table, [rows(&[&first]), rows(&[&second])]), rows(&[&both]));
    assert_eq!(added(&table, [rows(&[&first, &second])]), rows(&[&both]));
}

#[test]
fn bitmaps() {
    let table = table(TypeKind::VarBinary(i32::MAX as u32), "rbm32", &[]);
    // The portable format: cookie, one array container of key 0.
    let bitmap = |values: &[u16]| {
        let mut bytes = vec![
            0x3a,
            0x30,
            0,
            0,
            1,
            0,
            0,
            0,
            0,
            0,
            (values.len() - 1) as u8,
            0,
            16,
            0,
            0,
            0,
        ];
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Datum::Bytes(bytes)
    };
    assert_eq!(
        added(&table, [bitmap(&[1, 5]), bitmap(&[5, 9]), Datum::Null]),
        bitmap(&[1, 5, 9])
    );
    let wrong = Datum::Bytes(vec![1, 2]);
    let error = table
        .merge(&Table::values(&[(Insert, bitmap(&[1])), (Insert, wrong)]))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("column v: 2 bytes are no 32-bit Roaring bitmap"),
        "{error}"
    );
}

#[test]
fn the_sequence_field_takes_its_last_value() {
    let columns = [("v", INT), ("ts", INT)];
    let options = [("fields.default-aggregate-function", "sum"), ("sequence.field", "ts")];
    let table = Table::new("aggregation", &columns, &options);
    table.check("+I 1 10 5; +I 1 1 N", "+I 1 11 5");
    table.check("+I 1 10 5; -D 1 4 9", "+I 1 6 N");
    table.check("+I 1 6 N; +I 1 1 1", "+I 1 7 1");
}

#[test]
fn illegal_options_are_refused_by_name() {
    let array = TypeKind::Array(Box::new(nested(&[("id", INT), ("v", STRING)])));
    let of = |kind: &TypeKind, function: &str, more: &[(&str, &str)]| {
        let mut options = vec![("fields.v.aggregate-function", function)];
        options.extend(more);
        refused("aggregation", &[("v", kind.clone())], &options)
    };
    let messages = [
        of(&INT, "count", &[]),
        of(&INT, "theta_sketch", &[]),
        of(&STRING, "sum", &[]),
        of(&TypeKind::Boolean, "max", &[]),
        of(&INT, "bool_or", &[]),
        of(&TypeKind::VarChar(10), "listagg", &[]),
        of(&INT, "collect", &[]),
        of(&INT, "merge_map", &[]),
        of(&INT, "merge_map_with_keytime", &[]),
        of(&INT, "rbm32", &[]),
        of(
            &TypeKind::Array(Box::new(DataType::nullable(INT))),
            "nested_update",
            &[],
        ),
        of(&array, "nested_update", &[("fields.v.nested-key", "id,w")]),
        of(
            &array,
            "nested_update",
            &[("fields.v.nested-key-null-strategy", "merge")],
        ),
        of(&array, "nested_update", &[("fields.v.count-limit", "-1")]),
        of(&array, "nested_partial_update", &[]),
        of(&STRING, "listagg", &[("fields.v.distinct", "perhaps")]),
        of(&INT, "sum", &[("fields.w.ignore-retract", "true")]),
        of(&INT, "sum", &[("sequence.field", "v")]),
        of(
            &INT,
            "sum",
            &[
                ("fields.v.ignore-retract", "true"),
                ("aggregation.remove-record-on-delete", "true"),
            ],
        ),
        refused(
            "aggregation",
            &[("v", INT)],
            &[("fields.default-aggregate-function", "avg")],
        ),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}
