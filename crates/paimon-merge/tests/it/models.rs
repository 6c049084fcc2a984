//! Kernels against the row-by-row model (`paimon_testkit::model`), which is written from the rules and not from the kernels.

use paimon_format::types::RowKind::{self, Delete, Insert, UpdateAfter, UpdateBefore};
use paimon_format::types::{DataField, DataType, Datum, MAX_LENGTH, TypeKind};
use paimon_merge::MergeError;
use paimon_merge::kernel::{MergeFunction, Merged, Versions};
use paimon_merge::testing::{Numbers, Samples, check_kernel_on};
use paimon_testkit::model::{Bitmap, Model};
use rstest::rstest;

use crate::table::{STRING, Table, options};

const INT: TypeKind = TypeKind::Int;
const ADDS: &[RowKind] = &[Insert, UpdateAfter];
const ALL: &[RowKind] = &[Insert, Insert, UpdateAfter, UpdateAfter, UpdateBefore, Delete];

/// The model as a merge function.
struct ByModel(Model);

impl MergeFunction for ByModel {
    fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
        let rows = versions.iter().map(|version| Ok((version.kind(), version.values()?)));
        let rows = rows.collect::<Result<Vec<_>, MergeError>>()?;
        let merged = self.0.merge(&rows).map_err(MergeError::Invalid)?;
        Ok(merged.map_or(Merged::Nothing, |(kind, values)| Merged::Row(kind, values)))
    }
}

/// Values from so few that equal keys, times, elements and tokens meet often.
fn few(numbers: &mut Numbers, data_type: &DataType) -> Datum {
    if data_type.nullable && numbers.below(5) == 0 {
        return Datum::Null;
    }
    let number = numbers.below(5) as i32 - 1;
    match &data_type.kind {
        TypeKind::Boolean => Datum::Boolean(number > 0),
        TypeKind::TinyInt => Datum::Int8(number as i8),
        TypeKind::SmallInt => Datum::Int16(number as i16),
        TypeKind::Int => Datum::Int32(number),
        TypeKind::BigInt => Datum::Int64(number.into()),
        TypeKind::Float => Datum::Float32([-0.0, 0.0, f32::NAN, 1.5, -2.0][(number + 1) as usize]),
        TypeKind::Double => Datum::Float64([-0.0, 0.0, f64::INFINITY, 1.5, f64::NAN][(number + 1) as usize]),
        TypeKind::Decimal(..) => Datum::Decimal(i128::from(number) * 100),
        TypeKind::VarChar(_) => Datum::String(["", " ", "a", "b,a", "c,,b"][(number + 1) as usize].to_owned()),
        TypeKind::Date => Datum::Date(number),
        TypeKind::VarBinary(_) => Datum::Bytes(vec![(number + 1) as u8; (number + 1) as usize]),
        TypeKind::Array(element) => Datum::Array((0..numbers.below(4)).map(|_| few(numbers, element)).collect()),
        TypeKind::Map(key, value) => {
            let mut entries: Vec<(Datum, Datum)> = Vec::new();
            for _ in 0..numbers.below(4) {
                let key = few(numbers, key);
                if entries.iter().all(|(other, _)| *other != key) {
                    entries.push((key, few(numbers, value)));
                }
            }
            Datum::Map(entries)
        }
        TypeKind::Row(fields) => Datum::Row(fields.iter().map(|field| few(numbers, &field.data_type)).collect()),
        other => panic!("{other}"),
    }
}

/// Kernel, row adapter and model agree, however blocks and batches are cut.
fn check(engine: &str, columns: &[(&str, TypeKind)], given: &[(&str, &str)], kinds: &[RowKind]) {
    check_values(engine, columns, given, kinds, &few);
}

/// As [`check`], with these values.
fn check_values(
    engine: &str,
    columns: &[(&str, TypeKind)],
    given: &[(&str, &str)],
    kinds: &[RowKind],
    values: &dyn Fn(&mut Numbers, &DataType) -> Datum,
) {
    let options = options(engine, given);
    let table = Table::new(engine, columns, given);
    let model = || Model::new(&table.schema.fields, &[0], &options).unwrap();
    // About seven keys, so that most have several versions.
    let value = |numbers: &mut Numbers, field: &DataField| match field.id {
        0 => Datum::Int32(numbers.below(7) as i32),
        _ => values(numbers, &field.data_type),
    };
    let samples = Samples { kinds, value: &value };
    check_kernel_on(table.engine.as_ref(), &table.schema, &samples, || {
        Box::new(ByModel(model()))
    })
    .unwrap();
}

fn row(fields: &[(&str, TypeKind)]) -> DataType {
    let fields = (10..).zip(fields);
    let fields = fields.map(|(id, (name, kind))| DataField::new(id, *name, DataType::nullable(kind.clone())));
    DataType::nullable(TypeKind::Row(fields.collect()))
}

fn nested() -> TypeKind {
    TypeKind::Array(Box::new(row(&[("id", INT), ("sub", INT), ("v", STRING), ("s", INT)])))
}

fn array(kind: TypeKind) -> TypeKind {
    TypeKind::Array(Box::new(DataType::nullable(kind)))
}

fn map(value: DataType) -> TypeKind {
    TypeKind::Map(Box::new(DataType::not_null(INT)), Box::new(value))
}

/// Every function, its types and options; those that take nothing back, with retracts ignored, too.
#[rstest]
#[case("sum", &[TypeKind::TinyInt, TypeKind::SmallInt, INT, TypeKind::BigInt, TypeKind::Decimal(10, 2), TypeKind::Decimal(30, 4), TypeKind::Double, TypeKind::Float], &[], ALL)]
#[case("product", &[TypeKind::BigInt, TypeKind::Double, TypeKind::Decimal(38, 2)], &[], ADDS)]
#[case("min", &[TypeKind::TinyInt, TypeKind::Double, TypeKind::Float, STRING, TypeKind::VarBinary(9), TypeKind::Date, TypeKind::Decimal(9, 1)], &[], ADDS)]
#[case("max", &[TypeKind::SmallInt, TypeKind::Double, TypeKind::Float, STRING, TypeKind::VarBinary(9), TypeKind::Date, TypeKind::Decimal(9, 1)], &[], ADDS)]
#[case("last_value", &[INT, STRING, array(INT)], &[], ALL)]
#[case("last_non_null_value", &[INT, STRING, map(DataType::nullable(STRING))], &[], ALL)]
#[case("first_value", &[INT, STRING], &[], ADDS)]
#[case("first_non_null_value", &[INT, STRING], &[], ADDS)]
#[case("first_not_null_value", &[INT], &[], ADDS)]
#[case("bool_and", &[TypeKind::Boolean], &[], ADDS)]
#[case("bool_or", &[TypeKind::Boolean], &[], ADDS)]
#[case("listagg", &[STRING], &[], ADDS)]
#[case("listagg", &[STRING], &["list-agg-delimiter=;"], ADDS)]
#[case("listagg", &[STRING], &["distinct=true"], ADDS)]
#[case("collect", &[array(INT), array(STRING), array(array(INT))], &[], ALL)]
#[case("collect", &[array(INT), array(STRING), array(array(INT)), array(TypeKind::Double)], &["distinct=true"], ALL)]
#[case("merge_map", &[map(DataType::nullable(STRING)), map(DataType::nullable(nested()))], &[], ALL)]
#[case("merge_map_with_keytime", &[map(row(&[("v", INT), ("ts", STRING)]))], &[], ADDS)]
#[case("merge_map_with_keytime", &[map(row(&[("ts", STRING), ("v", INT)]))], &["ts-field=ts"], ADDS)]
#[case("nested_update", &[nested()], &[], ALL)]
#[case("nested_update", &[nested()], &["count-limit=2"], ALL)]
#[case("nested_update", &[nested()], &["nested-key=id"], ALL)]
#[case("nested_update", &[nested()], &["nested-key=id,sub", "nested-key-null-strategy=ignore", "count-limit=3"], ALL)]
#[case("nested_update", &[nested()], &["nested-key=id", "nested-sequence-field=s,sub"], ALL)]
#[case("nested_partial_update", &[nested()], &["nested-key=id"], ADDS)]
#[case("nested_partial_update", &[nested()], &["nested-key=id,sub", "nested-key-null-strategy=ignore"], ADDS)]
fn functions(
    #[case] function: &str,
    #[case] kinds_of_column: &[TypeKind],
    #[case] given: &[&str],
    #[case] kinds: &[RowKind],
) {
    for kind in kinds_of_column {
        for ignore_retract in [false, true] {
            for group in [false, true] {
                let mut all = vec![("fields.v.aggregate-function".to_owned(), function.to_owned())];
                all.extend(given.iter().map(|option| {
                    let (key, value) = option.split_once('=').unwrap();
                    (format!("fields.v.{key}"), value.to_owned())
                }));
                if ignore_retract {
                    all.push(("fields.v.ignore-retract".to_owned(), "true".to_owned()));
                }
                if group {
                    all.push(("fields.g.sequence-group".to_owned(), "v".to_owned()));
                }
                let all: Vec<(&str, &str)> = all.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
                let engine = if group { "partial-update" } else { "aggregation" };
                let kinds = if ignore_retract { ALL } else { kinds };
                check(engine, &[("v", kind.clone()), ("g", INT)], &all, kinds);
            }
        }
    }
}

/// Sets of few numbers, none the neighbour of another, so that all writers choose the same bytes.
#[rstest]
#[case("rbm32", Bitmap::Portable32, 30_000)]
#[case("rbm64", Bitmap::Tree64, 3)]
fn bitmaps(#[case] function: &str, #[case] format: Bitmap, #[case] step: u64) {
    let values = |numbers: &mut Numbers, data_type: &DataType| match data_type.kind {
        TypeKind::VarBinary(_) if numbers.below(5) == 0 => Datum::Null,
        TypeKind::VarBinary(_) => {
            let set = (0..numbers.below(5)).map(|_| numbers.below(9) * step).collect();
            Datum::Bytes(format.bytes(&set))
        }
        _ => few(numbers, data_type),
    };
    let columns = [("v", TypeKind::VarBinary(MAX_LENGTH)), ("g", INT)];
    let of = ("fields.v.aggregate-function", function);
    let (group, ignore) = (("fields.g.sequence-group", "v"), ("fields.v.ignore-retract", "true"));
    check_values("aggregation", &columns, &[of], ADDS, &values);
    check_values("aggregation", &columns, &[of, ignore], ALL, &values);
    check_values("partial-update", &columns, &[of, group], ADDS, &values);
    check_values("partial-update", &columns, &[of, group, ignore], ALL, &values);
}

#[rstest]
#[case(&[], ALL)]
#[case(&[("ignore-delete", "true")], ALL)]
#[case(&[("sequence.field", "b")], ALL)]
#[case(&[("sequence.field", "b,a"), ("sequence.field.sort-order", "descending")], ALL)]
fn deduplicate(#[case] given: &[(&str, &str)], #[case] kinds: &[RowKind]) {
    check("deduplicate", &[("a", INT), ("b", INT), ("s", STRING)], given, kinds);
}

#[rstest]
#[case(&[], ADDS)]
#[case(&[("ignore-delete", "true")], ALL)]
fn first_row(#[case] given: &[(&str, &str)], #[case] kinds: &[RowKind]) {
    check("first-row", &[("a", INT), ("s", STRING)], given, kinds);
}

#[rstest]
#[case(&[])]
#[case(&[("sequence.field", "b")])]
#[case(&[("fields.default-aggregate-function", "sum"), ("sequence.field", "b")])]
#[case(&[("aggregation.remove-record-on-delete", "true")])]
#[case(&[("aggregation.remove-record-on-delete", "true"), ("fields.default-aggregate-function", "sum"), ("fields.s.aggregate-function", "last_value")])]
fn aggregation(#[case] given: &[(&str, &str)]) {
    let mut given = given.to_vec();
    if given.iter().any(|(key, _)| *key == "fields.default-aggregate-function") {
        given.push(("fields.s.aggregate-function", "last_value"));
    }
    check("aggregation", &[("a", INT), ("b", INT), ("s", STRING)], &given, ALL);
}

const GROUPS: [(&str, &str); 2] = [("fields.g.sequence-group", "a"), ("fields.h1,h2.sequence-group", "b,s")];
const SUM: (&str, &str) = ("fields.a.aggregate-function", "sum");
const LIST: (&str, &str) = ("fields.s.aggregate-function", "listagg");
const LIST_IGNORES: (&str, &str) = ("fields.s.ignore-retract", "true");
const REMOVE_ON_G: (&str, &str) = ("partial-update.remove-record-on-sequence-group", "g");
const REMOVE_ON_BOTH: (&str, &str) = ("partial-update.remove-record-on-sequence-group", "h2,g");

#[rstest]
#[case(&[], ADDS)]
#[case(&[("sequence.field", "x")], ADDS)]
#[case(&[("sequence.field", "x"), ("sequence.field.sort-order", "descending"), ("ignore-delete", "true")], ALL)]
#[case(&[("ignore-delete", "true")], ALL)]
#[case(&[("partial-update.remove-record-on-delete", "true")], ALL)]
#[case(&GROUPS, ALL)]
#[case(&[GROUPS[0], GROUPS[1], ("ignore-delete", "true")], ALL)]
#[case(&[GROUPS[0], GROUPS[1], REMOVE_ON_G], ALL)]
#[case(&[GROUPS[0], GROUPS[1], REMOVE_ON_BOTH], ALL)]
#[case(&[GROUPS[0], GROUPS[1], SUM, LIST], ADDS)]
#[case(&[GROUPS[0], GROUPS[1], SUM, LIST, LIST_IGNORES], ALL)]
#[case(&[GROUPS[0], GROUPS[1], SUM, LIST, LIST_IGNORES, REMOVE_ON_BOTH], ALL)]
#[case(&[GROUPS[0], GROUPS[1], SUM, LIST, ("ignore-delete", "true"), ("sequence.field", "x")], ALL)]
#[case(&[GROUPS[0], GROUPS[1], ("fields.default-aggregate-function", "last_non_null_value"), REMOVE_ON_G], ALL)]
fn partial_update(#[case] given: &[(&str, &str)], #[case] kinds: &[RowKind]) {
    let columns = [
        ("a", INT),
        ("g", INT),
        ("b", INT),
        ("h1", INT),
        ("h2", INT),
        ("s", STRING),
        ("x", INT),
    ];
    check("partial-update", &columns, given, kinds);
}
