//! Laws that every engine and function keeps, and the closed list of those that the reference's own rules break: see
//! `docs/merge-engines.md`.

use std::sync::Arc;

use paimon_format::kv::{KvBatch, KvSchema};
use paimon_format::options::Options;
use paimon_format::types::RowKind::{self, Delete, Insert, UpdateAfter};
use paimon_format::types::{DataField, DataType, Datum, TypeKind};
use paimon_merge::engine::{AggregationFactory, FirstRowFactory, PartialUpdateFactory};
use paimon_merge::testing::{Numbers, Samples, any_value, check_created_on, check_engine};
use rstest::rstest;

use crate::table::{Row, STRING, Table, options, records, schema};

const INT: TypeKind = TypeKind::Int;

fn nested_array() -> TypeKind {
    let field = |id, name| DataField::new(id, name, DataType::nullable(INT));
    let row = TypeKind::Row(vec![field(10, "id"), field(11, "v")]);
    TypeKind::Array(Box::new(DataType::nullable(row)))
}

fn array() -> TypeKind {
    TypeKind::Array(Box::new(DataType::nullable(INT)))
}

fn map() -> TypeKind {
    TypeKind::Map(Box::new(DataType::not_null(INT)), Box::new(DataType::nullable(STRING)))
}

/// One column with a function. Retracts are ignored where taking them back depends on the grouping.
#[rstest]
#[case("sum", INT, &[])]
#[case("sum", TypeKind::Decimal(20, 2), &[])]
#[case("product", TypeKind::BigInt, &["ignore-retract=true"])]
#[case("min", TypeKind::Double, &[])]
#[case("min", STRING, &["ignore-retract=true"])]
#[case("max", TypeKind::Timestamp(6), &[])]
#[case("max", TypeKind::VarBinary(20), &["ignore-retract=true"])]
#[case("last_value", INT, &[])]
#[case("last_non_null_value", INT, &["ignore-retract=true"])]
#[case("first_value", INT, &[])]
#[case("first_non_null_value", STRING, &[])]
#[case("first_non_null_value", INT, &["ignore-retract=true"])]
#[case("bool_and", TypeKind::Boolean, &[])]
#[case("bool_or", TypeKind::Boolean, &["ignore-retract=true"])]
#[case("listagg", STRING, &[])]
#[case("listagg", STRING, &["distinct=true", "list-agg-delimiter=x"])]
#[case("collect", array(), &["ignore-retract=true"])]
#[case("collect", array(), &["distinct=true", "ignore-retract=true"])]
#[case("merge_map", map(), &["ignore-retract=true"])]
#[case("nested_update", nested_array(), &["ignore-retract=true"])]
#[case("nested_update", nested_array(), &["nested-key=id", "ignore-retract=true"])]
#[case("nested_update", nested_array(), &["nested-key=id", "nested-sequence-field=v", "ignore-retract=true"])]
#[case("nested_partial_update", nested_array(), &["nested-key=id"])]
fn functions_are_lawful(#[case] function: &str, #[case] kind: TypeKind, #[case] given: &[&str]) {
    let mut options = options("aggregation", &[("fields.v.aggregate-function", function)]);
    for option in given {
        let (key, value) = option.split_once('=').unwrap();
        options.set(format!("fields.v.{key}"), value);
    }
    let schema = schema(&[("v", kind)], &options);
    check_engine(&AggregationFactory, &schema, &options).unwrap();
}

/// `MAP<INT, ROW<v INT, ts STRING>>`
fn map_with_times() -> TypeKind {
    let fields = vec![
        DataField::new(10, "v", DataType::nullable(INT)),
        DataField::new(11, "ts", DataType::nullable(STRING)),
    ];
    TypeKind::Map(
        Box::new(DataType::not_null(INT)),
        Box::new(DataType::nullable(TypeKind::Row(fields))),
    )
}

/// Keys, times and values from few, so that they meet; no null values, which take keys away (see below).
#[test]
fn maps_with_times_are_lawful() {
    let kind = map_with_times();
    let value = |numbers: &mut Numbers| {
        let keys = (0..4).filter(|_| numbers.below(2) == 0).collect::<Vec<i32>>();
        let mut row = || {
            let time = Datum::String(numbers.below(4).to_string());
            Datum::Row(vec![Datum::Int32(numbers.below(100) as i32), time])
        };
        Datum::Map(keys.into_iter().map(|key| (Datum::Int32(key), row())).collect())
    };
    check_function("merge_map_with_keytime", kind, &value);
}

/// Values are those of the Java engine in `testdata/sketches`; of HLL sketches the large ones, whose bytes do not depend on the order.
#[rstest]
#[case("rbm64")]
#[case("theta_sketch")]
#[case("hll_sketch")]
fn sketches_are_lawful(#[case] function: &str) {
    let lines = include_str!("../../../../testdata/sketches/unions.jsonl").lines();
    let lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut values: Vec<Vec<u8>> = Vec::new();
    for line in lines.filter(|line| line["function"] == function) {
        for name in ["left", "right"] {
            let hex = line[name].as_str().unwrap();
            let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
            values.push(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect());
        }
    }
    values.retain(|value| value.len() < 5000 && (function != "hll_sketch" || value[0] == 10));
    values.sort();
    values.dedup();
    assert!(values.len() >= 4);
    let value = |numbers: &mut Numbers| Datum::Bytes(values[numbers.below(values.len() as u64) as usize].clone());
    check_function(function, TypeKind::VarBinary(i32::MAX as u32), &value);
}

#[test]
fn bitmaps_are_lawful() {
    let value = |numbers: &mut Numbers| {
        let all: roaring::RoaringBitmap = (0..numbers.below(6))
            .map(|_| numbers.below(9) as u32 * 30_000)
            .collect();
        let mut bytes = Vec::new();
        all.serialize_into(&mut bytes).unwrap();
        Datum::Bytes(bytes)
    };
    check_function("rbm32", TypeKind::VarBinary(i32::MAX as u32), &value);
}

/// The law for one column of these values; nulls among them, and retracts, which are ignored.
fn check_function(function: &str, kind: TypeKind, value: &dyn Fn(&mut Numbers) -> Datum) {
    let given = [
        ("fields.v.aggregate-function", function),
        ("fields.v.ignore-retract", "true"),
    ];
    let table = Table::new("aggregation", &[("v", kind)], &given);
    let any = |numbers: &mut Numbers, field: &DataField| match (field.id, numbers.below(8)) {
        (0, key) => Datum::Int32(key as i32),
        (_, 0) => Datum::Null,
        _ => value(numbers),
    };
    let samples = Samples {
        kinds: &[Insert, UpdateAfter, Insert, Delete],
        value: &any,
    };
    check_created_on(table.engine.as_ref(), &table.schema, &samples).unwrap();
}

#[test]
fn first_row_is_lawful() {
    let options = Options::new();
    check_engine(&FirstRowFactory, &schema(&[("v", STRING)], &options), &options).unwrap();
}

fn partial_schema(options: &Options) -> Arc<KvSchema> {
    let columns = [
        ("a", INT),
        ("g1", INT),
        ("b", STRING),
        ("h1", INT),
        ("h2", INT),
        ("c", INT),
        ("x", STRING),
    ];
    schema(&columns, options)
}

const GROUPS: [(&str, &str); 2] = [
    ("fields.g1.sequence-group", "a"),
    ("fields.h1,h2.sequence-group", "b,c"),
];

#[rstest]
#[case(&[])]
#[case(&[("sequence.field", "x")])]
#[case(&[("sequence.field", "g1"), ("sequence.field.sort-order", "descending")])]
#[case(&GROUPS)]
#[case(&[GROUPS[0], GROUPS[1], ("ignore-delete", "true")])]
#[case(&[("ignore-delete", "true")])]
fn partial_update_is_lawful(#[case] given: &[(&str, &str)]) {
    let options = options("partial-update", given);
    check_engine(&PartialUpdateFactory, &partial_schema(&options), &options).unwrap();
}

#[test]
fn partial_update_with_functions_that_know_no_order_is_lawful() {
    let mut given = GROUPS.to_vec();
    given.extend([
        ("fields.a.aggregate-function", "sum"),
        ("fields.c.aggregate-function", "max"),
    ]);
    let options = options("partial-update", &given);
    check_engine(&PartialUpdateFactory, &partial_schema(&options), &options).unwrap();
}

/// A history of a few keys, its rows of all kinds.
fn history(table: &Table, seed: u64, kinds: &[RowKind]) -> Vec<Row> {
    let mut numbers = Numbers::new(seed);
    (0..40)
        .map(|_| {
            let mut values = vec![Datum::Int32(numbers.below(6) as i32)];
            let fields = table.schema.fields.iter().skip(1);
            values.extend(fields.map(|field| any_value(&mut numbers, &field.data_type)));
            (kinds[numbers.below(kinds.len() as u64) as usize], values)
        })
        .collect()
}

/// Where deletes remove, whatever is merged is merged with everything older. `drops`: the oldest deletes may go (a delete that only takes
/// a group back is forgotten with its sequence).
#[rstest]
#[case("partial-update", &[("partial-update.remove-record-on-delete", "true")], true)]
#[case(
    "partial-update",
    &[GROUPS[0], GROUPS[1], ("partial-update.remove-record-on-sequence-group", "g1")],
    false
)]
#[case(
    "aggregation",
    &[("fields.a.aggregate-function", "sum"), ("aggregation.remove-record-on-delete", "true")],
    true
)]
fn removals_are_lawful_when_older_runs_are_taken_along(
    #[case] engine: &str,
    #[case] given: &[(&str, &str)],
    #[case] drops: bool,
) {
    let columns = [
        ("a", INT),
        ("g1", INT),
        ("b", STRING),
        ("h1", INT),
        ("h2", INT),
        ("c", INT),
        ("x", STRING),
    ];
    let table = Table::new(engine, &columns, given);
    for seed in 0..60 {
        let rows = history(&table, seed, &[Insert, UpdateAfter, Delete]);
        // Every commit is a run: rows of one key are lone there, or merged.
        let commits: Vec<KvBatch> = (0..)
            .zip(rows.chunks(8))
            .map(|(commit, rows)| table.run(rows, commit * 8))
            .collect();
        let commits: Vec<KvBatch> = commits
            .iter()
            .map(|commit| table.merge_passing(std::slice::from_ref(commit)).unwrap())
            .collect();
        let live = |merged: &KvBatch| -> Vec<Row> {
            let rows = records(merged).into_iter();
            rows.filter(|(kind, _)| kind.is_add())
                .map(|(_, values)| (Insert, values))
                .collect()
        };
        let all = live(&table.merge_passing(&commits).unwrap());
        for cut in 1..commits.len() {
            // The oldest ones compacted, deletes kept or dropped.
            let compacted = table.merge_passing(&commits[..cut]).unwrap();
            let mut runs = vec![compacted.clone()];
            runs.extend_from_slice(&commits[cut..]);
            assert_eq!(
                live(&table.merge_passing(&runs).unwrap()),
                all,
                "seed {seed}, cut {cut}"
            );
            if drops {
                runs[0] = without_deletes(&compacted);
                assert_eq!(
                    live(&table.merge_passing(&runs).unwrap()),
                    all,
                    "seed {seed}, cut {cut}, dropped"
                );
            }
        }
    }
}

fn without_deletes(batch: &KvBatch) -> KvBatch {
    let kept: Vec<KvBatch> = (0..batch.len())
        .filter(|&row| batch.kind(row).is_add())
        .map(|row| batch.slice(row, 1))
        .collect();
    let columns: Vec<_> = kept.iter().map(|row| row.columns.clone()).collect();
    let columns = arrow_select::concat::concat_batches(&batch.schema.arrow, &columns).unwrap();
    let codec = paimon_format::kv::KeyCodec::new(&batch.schema).unwrap();
    KvBatch::new(&batch.schema, columns, &codec, paimon_format::kv::RowLevels::All(5)).unwrap()
}

/// Merges three versions at once, and the newer two first.
fn groupings(table: &Table, rows: &[Row; 3]) -> (Vec<Row>, Vec<Row>) {
    let runs: Vec<KvBatch> = (0..)
        .zip(rows)
        .map(|(i, row)| table.run(std::slice::from_ref(row), i))
        .collect();
    let at_once = table.merge_passing(&runs).unwrap();
    let newer = table.merge_passing(&runs[1..]).unwrap();
    let newer_first = table.merge_passing(&[runs[0].clone(), newer]).unwrap();
    (records(&at_once), records(&newer_first))
}

/// The closed list: each depends on the grouping, in Java as here.
#[rstest]
#[case::last_non_null_value("last_non_null_value", INT, "+I 1 5; -D 1 3; +I 1 N")]
#[case::product("product", INT, "+I 1 6; -D 1 4; +I 1 5")]
fn retracts_that_depend_on_the_grouping(#[case] function: &str, #[case] kind: TypeKind, #[case] rows: &str) {
    let table = Table::new(
        "aggregation",
        &[("v", kind)],
        &[("fields.v.aggregate-function", function)],
    );
    let rows: [Row; 3] = table.rows(rows).try_into().unwrap();
    let (at_once, newer_first) = groupings(&table, &rows);
    assert_ne!(at_once, newer_first);
}

/// Versions that are all retracts become +I with null, which these functions take for a value.
#[rstest]
#[case("last_value", "+I 1 5; -D 1 3; -D 1 4")]
#[case("first_value", "-D 1 3; -D 1 4; +I 1 5")]
fn ignored_retracts_that_depend_on_the_grouping(#[case] function: &str, #[case] rows: &str) {
    let options = [
        ("fields.v.aggregate-function", function),
        ("fields.v.ignore-retract", "true"),
    ];
    let table = Table::new("aggregation", &[("v", INT)], &options);
    let rows = table.rows(rows);
    let runs: Vec<KvBatch> = (0..)
        .zip(&rows)
        .map(|(i, row)| table.run(std::slice::from_ref(row), i))
        .collect();
    let at_once = records(&table.merge_passing(&runs).unwrap());
    let retracts = if function == "last_value" { 1..3 } else { 0..2 };
    let mut grouped = runs.clone();
    let merged = table.merge_passing(&runs[retracts.clone()]).unwrap();
    grouped.splice(retracts, [merged]);
    let grouped = records(&table.merge_passing(&grouped).unwrap());
    assert_eq!((at_once, grouped), (table.rows("+I 1 5"), table.rows("+I 1 N")));
}

#[rstest]
#[case::collect("collect", array(), &[])]
#[case::merge_map("merge_map", map(), &[])]
#[case::nested_update("nested_update", nested_array(), &["nested-key=id"])]
fn retracts_of_collections_depend_on_the_grouping(
    #[case] function: &str,
    #[case] kind: TypeKind,
    #[case] given: &[&str],
) {
    let mut all = vec![("fields.v.aggregate-function".to_owned(), function.to_owned())];
    all.extend(given.iter().map(|option| {
        let (key, value) = option.split_once('=').unwrap();
        (format!("fields.v.{key}"), value.to_owned())
    }));
    let all: Vec<(&str, &str)> = all.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let table = Table::new("aggregation", &[("v", kind)], &all);
    let element = |value: i32| match function {
        "collect" => Datum::Array(vec![Datum::Int32(value)]),
        "merge_map" => Datum::Map(vec![(Datum::Int32(value), Datum::String("v".to_owned()))]),
        _ => Datum::Array(vec![Datum::Row(vec![Datum::Int32(value), Datum::Int32(0)])]),
    };
    let rows: [Row; 3] = Table::values(&[(Insert, element(1)), (Delete, element(1)), (Insert, element(2))])
        .try_into()
        .unwrap();
    let (at_once, newer_first) = groupings(&table, &rows);
    assert_ne!(at_once, newer_first);
}

/// A null value takes its key away; merged with what is newer first, it is forgotten.
#[test]
fn null_values_in_maps_with_times_depend_on_the_grouping() {
    let kind = map_with_times();
    let table = Table::new(
        "aggregation",
        &[("v", kind)],
        &[("fields.v.aggregate-function", "merge_map_with_keytime")],
    );
    let map = |value: Datum| Datum::Map(vec![(Datum::Int32(1), value)]);
    let at = |value: i32, time: &str| map(Datum::Row(vec![Datum::Int32(value), Datum::String(time.to_owned())]));
    let versions = [at(7, "5"), map(Datum::Null), at(8, "4")].map(|value| (Insert, value));
    let rows: [Row; 3] = Table::values(&versions).try_into().unwrap();
    let (at_once, newer_first) = groupings(&table, &rows);
    assert_eq!(at_once[0].1[1], at(8, "4"));
    assert_eq!(newer_first[0].1[1], at(7, "5"));
}

#[test]
fn a_count_limit_depends_on_the_grouping() {
    let options = [
        ("fields.v.aggregate-function", "nested_update"),
        ("fields.v.nested-key", "id"),
        ("fields.v.count-limit", "2"),
    ];
    let table = Table::new("aggregation", &[("v", nested_array())], &options);
    let rows = |rows: &[(i32, i32)]| {
        let row = |&(id, value): &(i32, i32)| Datum::Row(vec![Datum::Int32(id), Datum::Int32(value)]);
        Datum::Array(rows.iter().map(row).collect())
    };
    let versions = [rows(&[(1, 0), (2, 0)]), rows(&[(3, 0), (4, 0)]), rows(&[(1, 1)])];
    let versions: [Row; 3] = Table::values(&versions.map(|value| (Insert, value)))
        .try_into()
        .unwrap();
    let (at_once, newer_first) = groupings(&table, &versions);
    assert_ne!(at_once, newer_first);
}

#[rstest]
#[case::functions_that_know_an_order("listagg", STRING, "+I 1 c 3; +I 1 a 1; +I 1 b 2")]
#[case::a_retract_that_is_the_oldest("sum", INT, "+I 1 10 0; -D 1 5 1; +I 1 7 2")]
fn functions_in_groups_that_depend_on_the_grouping(#[case] function: &str, #[case] kind: TypeKind, #[case] rows: &str) {
    let options = [
        ("fields.g.sequence-group", "a"),
        ("fields.a.aggregate-function", function),
    ];
    let table = Table::new("partial-update", &[("a", kind), ("g", INT)], &options);
    let rows: [Row; 3] = table.rows(rows).try_into().unwrap();
    let (at_once, newer_first) = groupings(&table, &rows);
    assert_ne!(at_once, newer_first);
}

/// The runs of a table need not be stretches of the order by sequence fields: the second row is older than the first.
#[rstest]
#[case("partial-update", &[], "+I 1 5 1; +I 1 7 3; +I 1 N 6")]
#[case("aggregation", &[("fields.v.aggregate-function", "first_value")], "+I 1 5 4; +I 1 7 3; +I 1 9 1")]
fn late_rows_depend_on_the_grouping(#[case] engine: &str, #[case] given: &[(&str, &str)], #[case] rows: &str) {
    let mut given = given.to_vec();
    given.push(("sequence.field", "ts"));
    let table = Table::new(engine, &[("v", INT), ("ts", INT)], &given);
    let rows: [Row; 3] = table.rows(rows).try_into().unwrap();
    let [first, late, last] = rows.map(|row| table.run(std::slice::from_ref(&row), 0));
    let at_once = table
        .merge_passing(&[first.clone(), late.clone(), last.clone()])
        .unwrap();
    let merged = table.merge_passing(&[first, last]).unwrap();
    let late_last = table.merge_passing(&[merged, late]).unwrap();
    assert_ne!(records(&at_once), records(&late_last));
}

#[rstest]
#[case::then_an_add("+I 1 10 2 N; -D 1 11 3 N; +I 1 12 N N")]
#[case::then_a_retract("+I 1 10 2 N; -D 1 11 3 N; -U 1 12 4 N")]
#[case::late_and_after_an_add("+I 1 10 5 N; +I 1 12 2 7; -D 1 11 3 N")]
fn a_removing_delete_needs_older_rows(#[case] rows: &str) {
    let options = [
        ("fields.g.sequence-group", "a"),
        ("partial-update.remove-record-on-sequence-group", "g"),
    ];
    let table = Table::new("partial-update", &[("a", INT), ("g", INT), ("x", INT)], &options);
    assert!(table.engine.promises().deletes_need_older);
    let rows: [Row; 3] = table.rows(rows).try_into().unwrap();
    let (at_once, newer_first) = groupings(&table, &rows);
    assert_ne!(at_once, newer_first);
}

#[test]
fn float_sums_differ_in_the_last_digit() {
    let table = Table::new(
        "aggregation",
        &[("v", TypeKind::Double)],
        &[("fields.v.aggregate-function", "sum")],
    );
    let rows: [Row; 3] = table.rows("+I 1 0.1; +I 1 0.2; +I 1 0.3").try_into().unwrap();
    let (at_once, newer_first) = groupings(&table, &rows);
    assert_ne!(at_once, newer_first);
}
