use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use proptest::prelude::*;

use super::*;
use crate::types::datum_tests::{any_datum, atomic_kinds};
use crate::types::{DataField, DataType, Datum, TypeKind, array_from_datums, arrow_schema};

fn fields() -> Vec<DataField> {
    let types = [
        ("a", "INT"),
        ("b", "STRING"),
        ("c", "DOUBLE"),
        ("d", "DECIMAL(5, 2)"),
        ("t", "TIMESTAMP(9)"),
        ("day", "DATE"),
        ("bin", "BYTES"),
        ("ok", "BOOLEAN"),
        ("or", "BIGINT"),
        ("odd name", "INT"),
    ];
    let fields = types.into_iter().zip(0..);
    fields
        .map(|((name, data_type), id)| DataField::new(id, name, data_type.parse().unwrap()))
        .collect()
}

fn parse(text: &str) -> Predicate {
    Predicate::parse(text, &fields()).unwrap()
}

fn batch(columns: &[(&str, Vec<Datum>)]) -> RecordBatch {
    let all = fields();
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, _)| all.iter().find(|field| field.name == *name).unwrap().clone())
        .collect();
    let arrays: Vec<ArrayRef> = fields
        .iter()
        .zip(columns)
        .map(|(field, (_, values))| array_from_datums(field, values).unwrap())
        .collect();
    RecordBatch::try_new(Arc::new(arrow_schema(&fields).unwrap()), arrays).unwrap()
}

/// The rows of a batch that pass.
fn passing(text: &str, batch: &RecordBatch) -> Vec<usize> {
    let mask = parse(text).evaluate(batch).unwrap();
    (0..batch.num_rows()).filter(|&row| mask.value(row)).collect()
}

fn text(value: &str) -> Datum {
    Datum::String(value.into())
}

#[test]
fn nulls_are_neither_true_nor_false() {
    let batch = batch(&[
        ("a", vec![Datum::Int32(1), Datum::Int32(2), Datum::Null, Datum::Null]),
        ("b", vec![text("x"), Datum::Null, text("x"), Datum::Null]),
    ]);
    for (filter, rows) in [
        ("a = 1", vec![0]),
        ("a <> 1", vec![1]),
        ("NOT a = 1", vec![1]),
        ("a IS NULL", vec![2, 3]),
        ("a IS NOT NULL", vec![0, 1]),
        ("NOT (a IS NULL)", vec![0, 1]),
        ("a = 1 AND b = 'x'", vec![0]),
        ("a = 1 OR b = 'x'", vec![0, 2]),
        ("NOT (a = 1 AND b = 'x')", vec![1]),
        ("NOT (a = 2 OR b = 'y')", vec![0]),
        ("a IN (1, NULL)", vec![0]),
        ("a NOT IN (1, NULL)", vec![]),
        ("a NOT IN (1)", vec![1]),
        ("a = NULL", vec![]),
        ("a BETWEEN 1 AND NULL", vec![]),
        ("NOT (a BETWEEN 2 AND NULL)", vec![0]),
        ("TRUE", vec![0, 1, 2, 3]),
        ("FALSE OR a = 1", vec![0]),
        ("NOT TRUE", vec![]),
    ] {
        assert_eq!(passing(filter, &batch), rows, "{filter}");
    }
}

#[test]
fn values_compare_in_javas_order() {
    let floats = [f64::NEG_INFINITY, -0.0, 0.0, 1.5, f64::INFINITY, -f64::NAN];
    let batch = batch(&[("c", floats.map(Datum::Float64).to_vec())]);
    for (filter, rows) in [
        ("c > 1.5", vec![4, 5]),
        ("c = 0", vec![2]),
        ("c < 0", vec![0, 1]),
        ("c = 'NaN'", vec![5]),
        ("c >= 'NaN'", vec![5]),
        ("c < 'NaN'", vec![0, 1, 2, 3, 4]),
        ("c BETWEEN -0.0 AND 1.5", vec![1, 2, 3]),
        ("c NOT BETWEEN -0.0 AND 'Infinity'", vec![0, 5]),
        ("c IN (1.5, 'NaN', 7)", vec![3, 5]),
    ] {
        assert_eq!(passing(filter, &batch), rows, "{filter}");
    }
}

#[test]
fn strings_are_matched() {
    let batch = batch(&[("b", ["", "ab", "abc", "xabc", "a%c", "äöc"].map(text).to_vec())]);
    for (filter, rows) in [
        ("b LIKE 'ab%'", vec![1, 2]),
        ("b LIKE '%c'", vec![2, 3, 4, 5]),
        ("b LIKE '%ab%'", vec![1, 2, 3]),
        ("b LIKE 'abc'", vec![2]),
        ("b LIKE 'a_c'", vec![2, 4]),
        ("b LIKE '___'", vec![2, 4, 5]),
        (r"b LIKE 'a\%c'", vec![4]),
        ("b LIKE '%'", vec![0, 1, 2, 3, 4, 5]),
        ("b LIKE ''", vec![0]),
        ("b LIKE '%a%c%'", vec![2, 3, 4]),
        ("b LIKE '_%b%'", vec![1, 2, 3]),
        ("b NOT LIKE 'a%'", vec![0, 3, 5]),
        ("b >= 'abc' AND b < 'b'", vec![2]),
    ] {
        assert_eq!(passing(filter, &batch), rows, "{filter}");
    }
}

#[test]
fn a_time_beyond_the_columns_unit_compares() {
    let time = Datum::Timestamp { millis: 0, nanos: 5 };
    let batch = batch(&[("t", vec![time, Datum::Null])]);
    assert_eq!(passing("t < TIMESTAMP '9999-12-31 00:00:00'", &batch), [0]);
    assert_eq!(passing("t = '1970-01-01 00:00:00.000000005'", &batch), [0]);
    let far = parse("t < '9999-12-31'");
    far.check(&fields()).unwrap();
}

#[test]
fn text_becomes_a_tree() {
    for (text, shown) in [
        (
            "a=1 AND (b >= 'it''s' OR c IS NULL)",
            "`a` = 1 AND (`b` >= 'it''s' OR `c` IS NULL)",
        ),
        ("a = 1 or a = 2 and a = 3", "`a` = 1 OR (`a` = 2 AND `a` = 3)"),
        ("not a != -5", "NOT (`a` <> -5)"),
        (
            r#""odd name" < 1 AND `odd name` > +0"#,
            "`odd name` < 1 AND `odd name` > 0",
        ),
        ("or = 1 or or = 2", "`or` = 1 OR `or` = 2"),
        (
            "day between date '2024-01-01' and '2024-02-29'",
            "`day` BETWEEN 2024-01-01 AND 2024-02-29",
        ),
        ("bin = x'00ff'", "`bin` = x'00ff'"),
        ("ok = true AND ok <> 'no'", "`ok` = true AND `ok` <> false"),
        ("c < 1e3", "`c` < 1000.0"),
        ("b like 'a%'", "`b` STARTS WITH 'a'"),
        ("b like 'a%b'", "`b` LIKE 'a%b'"),
        ("d = 1.50", "`d` = 150"),
        ("d = 1.500", "`d` = 150"),
        ("FALSE", "FALSE"),
    ] {
        assert_eq!(parse(text).to_string(), shown, "{text}");
    }
}

#[test]
fn errors_point_at_the_place() {
    let message = |text: &str| Predicate::parse(text, &fields()).unwrap_err().to_string();
    for (text, expected) in [
        ("", "expected a column, at position 0"),
        (
            "a",
            "expected =, <>, <, <=, >, >=, IS, IN, BETWEEN, LIKE or NOT, at position 1",
        ),
        ("a NOT 5", "expected IN, BETWEEN or LIKE, at position 6"),
        ("a = 1 b = 2", "expected AND, OR or the end, at position 6"),
        ("(a = 1", "expected ')', at position 6"),
        ("a = 1 AND z = 2", "there is no column z, at position 10"),
        ("1 = a", "expected a column, at position 0"),
        ("a = 'x'", "no exact value of a, which is INT, at position 4"),
        ("a = 1.5", "no exact value of a, which is INT, at position 4"),
        (
            "d = 1.505",
            "no exact value of d, which is DECIMAL(5, 2), at position 4",
        ),
        ("b = 5", "no exact value of b, which is STRING, at position 4"),
        ("a = true", "no exact value of a, which is INT, at position 4"),
        ("bin = x'0'", "no exact value of bin, which is BYTES, at position 6"),
        ("a IN (1, 2", "expected ')', at position 10"),
        ("a IN ()", "expected a literal, at position 6"),
        ("a IS 5", "expected NULL, at position 5"),
        ("a LIKE 'x'", "LIKE needs a string, but a is INT, at position 7"),
        (
            r"b LIKE 'a\b'",
            r#"the pattern "a\\b": expected %, _ or \ after the \ at position 1, at position 7"#,
        ),
        ("b = 'ab", "a quote without end, at position 4"),
        ("a = 1 ; b", "';' has no meaning, at position 6"),
        ("a ! 1", "'!' has no meaning, at position 2"),
    ] {
        assert_eq!(message(text), format!("the filter {text:?}: {expected}"));
    }
    let deep = format!("{}a = 1{}", "(".repeat(1000), ")".repeat(1000));
    assert!(message(&deep).contains("brackets nested too deep, at position 65"));
}

#[test]
fn a_filter_made_by_hand_is_checked() {
    let message = |predicate: Predicate| predicate.check(&fields()).unwrap_err().to_string();
    assert_eq!(
        message(Predicate::column("z", Test::IsNull)),
        "the filter tests the column z, which is not there"
    );
    assert_eq!(
        message(Predicate::column("a", Test::Equal(Datum::Int64(1)))),
        "the filter `a` = 1: a literal of another type, the column is INT"
    );
    assert_eq!(
        message(Predicate::column("a", Test::StartsWith("x".into()))),
        "the filter `a` STARTS WITH 'x': needs a string, the column is INT"
    );
    Predicate::column("a", Test::In(vec![Datum::Int32(1), Datum::Null]))
        .check(&fields())
        .unwrap();
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert!(parse("a = 1").evaluate(&none).is_err());
}

#[test]
fn conjuncts_and_projections() {
    let filter = parse("NOT (a <> 1 OR b = 'x') AND (a = 2 OR c > 0) AND (c IS NULL OR a IS NULL)");
    let conjuncts: Vec<String> = filter.conjuncts().iter().map(ToString::to_string).collect();
    assert_eq!(
        conjuncts,
        [
            "NOT (`a` <> 1)",
            "NOT (`b` = 'x')",
            "`a` = 2 OR `c` > 0.0",
            "`c` IS NULL OR `a` IS NULL"
        ]
    );
    assert_eq!(filter.columns().into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
    let on = |names: &[&str]| {
        filter
            .project(&|name| names.contains(&name))
            .map(|part| part.to_string())
    };
    assert_eq!(on(&["a"]).as_deref(), Some("NOT (`a` <> 1)"));
    assert_eq!(
        on(&["a", "c"]).as_deref(),
        Some("NOT (`a` <> 1) AND (`a` = 2 OR `c` > 0.0) AND (`c` IS NULL OR `a` IS NULL)")
    );
    assert_eq!(on(&["c"]), None);
    assert_eq!(parse("FALSE").project(&|_| false), Some(Predicate::Or(vec![])));
}

#[test]
fn statistics_rule_out_rows() {
    let strings = ColumnStatistics {
        min: Some(text("bb")),
        max: Some(text("dd")),
        null_count: Some(0),
    };
    let numbers = ColumnStatistics {
        min: Some(Datum::Int32(5)),
        max: Some(Datum::Int32(5)),
        null_count: Some(1),
    };
    let nulls = ColumnStatistics {
        null_count: Some(10),
        ..ColumnStatistics::default()
    };
    let floats = ColumnStatistics {
        min: Some(Datum::Float64(1.0)),
        max: Some(Datum::Float64(2.0)),
        null_count: None,
    };
    let all = BTreeMap::from([("b", strings), ("a", numbers), ("or", nulls), ("c", floats)]);
    let may_match = |filter: &str| parse(filter).may_match(10, &|name| all.get(name));
    for (filter, expected) in [
        ("b = 'a'", false),
        ("b = 'c'", true),
        ("b LIKE 'b%'", true),
        ("b LIKE 'bbb%'", true),
        ("b LIKE 'ba%'", false),
        ("b LIKE 'dda%'", false),
        ("b LIKE 'e_'", false),
        ("b LIKE '%e'", true),
        ("b IS NULL", false),
        ("b NOT IN ('a')", true),
        ("a = 5", true),
        ("a <> 5", false),
        ("NOT a = 5", false),
        ("a <> 5 OR a IS NULL", true),
        ("a > 5", false),
        ("a >= 5", true),
        ("a < 5", false),
        ("a <= 5", true),
        ("a NOT IN (5, 6)", false),
        ("a IN (4, 6)", false),
        ("a BETWEEN 6 AND 9", false),
        ("a NOT BETWEEN 5 AND 9", false),
        ("a = NULL", false),
        ("or = 1", false),
        ("or <> 1", false),
        ("NOT or = 1", false),
        ("or IS NULL", true),
        ("or IS NOT NULL", false),
        ("c > 2", true),
        ("c < 1", false),
        ("d = 1 AND a = 5", true),
        ("d = 1 AND a = 6", false),
        ("d = 1 OR a = 6", true),
    ] {
        assert_eq!(may_match(filter), expected, "{filter}");
    }
    assert!(!parse("TRUE").may_match(0, &|_| None));
}

#[test]
fn an_empty_list_leaves_null_unknown() {
    let batch = batch(&[("a", vec![Datum::Int32(1), Datum::Null])]);
    let nulls = ColumnStatistics {
        null_count: Some(1),
        ..ColumnStatistics::default()
    };
    for (test, passes) in [(Test::In(vec![]), false), (Test::NotIn(vec![]), true)] {
        let filter = Predicate::column("a", test);
        let mask = filter.evaluate(&batch).unwrap();
        assert_eq!((mask.value(0), mask.value(1)), (passes, false));
        assert!(!filter.may_match(1, &|_| Some(&nulls)));
        assert!(!Predicate::Not(Box::new(filter)).may_match(1, &|_| Some(&nulls)));
    }
}

#[test]
fn partitions_are_tested_by_value() {
    let row = BTreeMap::from([("a", Datum::Int32(1)), ("b", Datum::Null)]);
    let passes = |filter: &str| {
        parse(filter)
            .evaluate_row(&|name| row.get(name))
            .map_err(|error| error.to_string())
    };
    assert_eq!(passes("a = 1 AND NOT a = 2"), Ok(true));
    assert_eq!(passes("b = 'x' OR a = 1"), Ok(true));
    assert_eq!(passes("NOT (b = 'x')"), Ok(false));
    assert_eq!(
        passes("c = 1"),
        Err("the filter tests the column c, which is not there".into())
    );
}

fn any_test(kind: &TypeKind) -> BoxedStrategy<Test> {
    let data_type = DataType::nullable(kind.clone());
    let one = move || any_datum(&data_type);
    let many = prop::collection::vec(one(), 0..4);
    let mut tests = prop_oneof![
        prop::sample::select(vec![Test::IsNull, Test::IsNotNull]),
        one().prop_map(Test::Equal),
        one().prop_map(Test::NotEqual),
        one().prop_map(Test::Less),
        one().prop_map(Test::LessOrEqual),
        one().prop_map(Test::Greater),
        one().prop_map(Test::GreaterOrEqual),
        many.clone().prop_map(Test::In),
        many.prop_map(Test::NotIn),
        (one(), one()).prop_map(|(low, high)| Test::Between(low, high)),
    ]
    .boxed();
    if matches!(kind, TypeKind::Char(_) | TypeKind::VarChar(_)) {
        let part = "[a-cé]{0,2}";
        tests = prop_oneof![
            tests,
            part.prop_map(Test::StartsWith),
            part.prop_map(Test::EndsWith),
            part.prop_map(Test::Contains),
            "[a-c_%é]{0,4}".prop_map(|pattern| Test::like(&pattern).unwrap()),
        ]
        .boxed();
    }
    tests
}

/// Two columns with values, and a filter on them.
fn filtered() -> impl Strategy<Value = (Vec<DataField>, Vec<Vec<Datum>>, Predicate)> {
    let field =
        |id: i32| atomic_kinds().prop_map(move |kind| DataField::new(id, format!("f{id}"), DataType::nullable(kind)));
    (field(0), field(1), 1..8_usize).prop_flat_map(|(a, b, rows)| {
        let columns = [&a, &b].map(|field| prop::collection::vec(any_datum(&field.data_type), rows));
        let leaf = prop_oneof![
            any_test(&a.data_type.kind).prop_map(|test| Predicate::column("f0", test)),
            any_test(&b.data_type.kind).prop_map(|test| Predicate::column("f1", test)),
        ];
        let predicate = leaf.prop_recursive(3, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::And),
                prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::Or),
                inner.prop_map(|inner| Predicate::Not(Box::new(inner))),
            ]
        });
        (Just(vec![a, b]), columns.to_vec(), predicate)
    })
}

proptest! {
    #[test]
    fn batches_rows_statistics_and_parts_agree((fields, columns, predicate) in filtered()) {
        let arrays = fields.iter().zip(&columns).map(|(field, values)| array_from_datums(field, values).unwrap());
        let batch = RecordBatch::try_new(Arc::new(arrow_schema(&fields).unwrap()), arrays.collect()).unwrap();
        predicate.check(&fields).unwrap();
        let mask = predicate.evaluate(&batch).unwrap();
        let at = |name: &str| fields.iter().position(|field| field.name == name);

        // A row alone gives what it gives in the batch, and so do the parts of the filter.
        let conjuncts = predicate.conjuncts();
        let projected = predicate.project(&|name| name == "f0");
        for (row, passes) in mask.values().iter().enumerate() {
            let value = |name: &str| at(name).map(|column| &columns[column][row]);
            prop_assert_eq!(predicate.evaluate_row(&value).unwrap(), passes);
            prop_assert_eq!(conjuncts.iter().all(|part| part.evaluate_row(&value).unwrap()), passes);
            if let Some(part) = &projected {
                prop_assert!(part.columns().iter().all(|name| *name == "f0"));
                prop_assert!(!passes || part.evaluate_row(&value).unwrap());
            }
        }

        // What passes is never ruled out, with statistics as files have them: without NaN.
        let statistics: Vec<_> = columns.iter().map(|values| {
            let is_nan = |value: &Datum| matches!(value, Datum::Float32(v) if v.is_nan()) || matches!(value, Datum::Float64(v) if v.is_nan());
            let known = || values.iter().filter(|value| !value.is_null() && !is_nan(value)).cloned();
            ColumnStatistics {
                min: known().min(),
                max: known().max(),
                null_count: Some(values.iter().filter(|value| value.is_null()).count() as u64),
            }
        }).collect();
        let rows = batch.num_rows() as u64;
        let may_match = predicate.may_match(rows, &|name| at(name).map(|column| &statistics[column]));
        prop_assert!(may_match || mask.true_count() == 0);

        let json = serde_json::to_string(&predicate).unwrap();
        prop_assert_eq!(serde_json::from_str::<Predicate>(&json).unwrap(), predicate);
    }

    #[test]
    fn patterns_match_as_a_search_by_trial(pattern in "[ab%_]{0,6}", text in "[abc]{0,8}") {
        fn by_trial(pattern: &[char], text: &[char]) -> bool {
            match (pattern, text) {
                ([], text) => text.is_empty(),
                (['%', rest @ ..], text) => (0..=text.len()).any(|skip| by_trial(rest, &text[skip..])),
                (['_', rest @ ..], [_, more @ ..]) => by_trial(rest, more),
                ([c, rest @ ..], [first, more @ ..]) => c == first && by_trial(rest, more),
                (_, []) => false,
            }
        }
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        let expected = by_trial(&chars(&pattern), &chars(&text));
        prop_assert_eq!(LikePattern::new(&pattern).unwrap().matches(&text), expected);
        prop_assert_eq!(Test::like(&pattern).unwrap().on(&Datum::String(text)), Some(expected));
    }
}
