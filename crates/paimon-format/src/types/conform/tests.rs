use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Decimal128Array, DictionaryArray, Int32Array, Int64Array, LargeStringArray, StringArray, TimestampNanosecondArray,
};
use arrow_schema::{Schema, TimeUnit};

use super::*;
use crate::types::{DataField, DataType, TypeKind, arrow_schema};

fn table(columns: &[(&str, DataType)]) -> SchemaRef {
    let fields: Vec<_> = columns
        .iter()
        .zip(0..)
        .map(|((name, data_type), id)| DataField::new(id, *name, data_type.clone()))
        .collect();
    Arc::new(arrow_schema(&fields).unwrap())
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn message(batch: &RecordBatch, schema: &SchemaRef) -> String {
    let error = conform(batch, schema).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Invalid);
    error.to_string()
}

#[test]
fn columns_are_found_by_name_and_cast() {
    let schema = table(&[
        ("id", DataType::not_null(TypeKind::BigInt)),
        ("name", DataType::nullable(TypeKind::VarChar(20))),
        ("city", DataType::nullable(TypeKind::VarChar(20))),
    ]);
    let city: DictionaryArray<Int32Type> = vec![Some("Ulm"), None].into_iter().collect();
    let given = batch(vec![
        ("city", Arc::new(city)),
        ("name", Arc::new(LargeStringArray::from(vec![None, Some("Bo")]))),
        ("id", Arc::new(Int32Array::from(vec![1, 2]))),
    ]);
    let result = conform(&given, &schema).unwrap();
    assert_eq!(result.schema_ref(), &schema);
    assert_eq!(result.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert_eq!(
        result.column(1).as_string::<i32>(),
        &StringArray::from(vec![None, Some("Bo")])
    );
    assert_eq!(
        result.column(2).as_string::<i32>(),
        &StringArray::from(vec![Some("Ulm"), None])
    );
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let schema = table(&[("n", DataType::nullable(TypeKind::Int))]);
    let given = batch(vec![("n", Arc::new(Int64Array::from(vec![1, 3_000_000_000])))]);
    let text = message(&given, &schema);
    assert!(text.starts_with("column n does not fit Int32: "), "{text}");
    assert!(text.contains("3000000000"), "{text}");

    let schema = table(&[("d", DataType::nullable(TypeKind::Decimal(10, 1)))]);
    let decimals = Decimal128Array::from(vec![120, 125])
        .with_precision_and_scale(10, 2)
        .unwrap();
    let given = batch(vec![("d", Arc::new(decimals.clone()))]);
    assert_eq!(
        message(&given, &schema),
        "column d: 1.25 is no exact value of Decimal128(10, 1)"
    );
    let given = batch(vec![("d", Arc::new(decimals.slice(0, 1)))]);
    conform(&given, &schema).unwrap();

    let schema = table(&[("t", DataType::nullable(TypeKind::Timestamp(3)))]);
    let given = batch(vec![("t", Arc::new(TimestampNanosecondArray::from(vec![-1])))]);
    assert_eq!(
        message(&given, &schema),
        "column t: 1969-12-31T23:59:59.999999999 is no exact value of Timestamp(ms)"
    );
}

#[test]
fn types_that_mean_something_else_are_refused() {
    let schema = table(&[("t", DataType::nullable(TypeKind::LocalZonedTimestamp(9)))]);
    let given = batch(vec![("t", Arc::new(TimestampNanosecondArray::from(vec![0])))]);
    assert_eq!(
        message(&given, &schema),
        "column t has the Arrow type Timestamp(ns), but the table needs Timestamp(ns, \"UTC\")"
    );
    let berlin = TimestampNanosecondArray::from(vec![5]).with_timezone("+02:00");
    let result = conform(&batch(vec![("t", Arc::new(berlin))]), &schema).unwrap();
    assert_eq!(
        result.column(0).data_type(),
        &ArrowType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))
    );
}

#[test]
fn missing_unknown_and_doubled_columns_are_named() {
    let schema = table(&[("a", DataType::nullable(TypeKind::Int))]);
    let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let given = batch(vec![("a", Arc::clone(&one)), ("b", Arc::clone(&one))]);
    assert_eq!(message(&given, &schema), "the table has no column b");
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert_eq!(message(&none, &schema), "the batch has no column a");
    let twice = Schema::new(vec![
        Field::new("a", ArrowType::Int32, true),
        Field::new("a", ArrowType::Int32, true),
    ]);
    let given = RecordBatch::try_new(Arc::new(twice), vec![Arc::clone(&one), one]).unwrap();
    assert_eq!(message(&given, &schema), "the batch has two columns a");
}

#[test]
fn nulls_are_refused_where_the_table_has_none() {
    let schema = table(&[("id", DataType::not_null(TypeKind::Int))]);
    let given = batch(vec![("id", Arc::new(Int32Array::from(vec![Some(1), None])))]);
    assert_eq!(message(&given, &schema), "column id is NOT NULL, but row 1 is null");
}

#[test]
fn a_null_below_a_null_row_does_not_count() {
    let inner = DataField::new(1, "x", DataType::not_null(TypeKind::BigInt));
    let schema = table(&[("r", DataType::nullable(TypeKind::Row(vec![inner])))]);
    let fields = Fields::from(vec![Field::new("x", ArrowType::Int32, true)]);
    let row = |row_valid: bool| {
        let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        let nulls = NullBuffer::from(vec![true, row_valid]);
        batch(vec![(
            "r",
            Arc::new(StructArray::new(fields.clone(), vec![x], Some(nulls))),
        )])
    };
    let result = conform(&row(false), &schema).unwrap();
    assert_eq!(result.column(0).null_count(), 1);
    assert_eq!(
        message(&row(true), &schema),
        "column r.x is NOT NULL, but row 1 is null"
    );
}

#[test]
fn lists_and_maps_are_cast_within() {
    let long = DataType::not_null(TypeKind::BigInt);
    let schema = table(&[
        ("l", DataType::nullable(TypeKind::Array(Box::new(long.clone())))),
        (
            "m",
            DataType::nullable(TypeKind::Map(
                Box::new(DataType::not_null(TypeKind::VarChar(9))),
                Box::new(long),
            )),
        ),
    ]);
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), Some(2)]), None]);
    let mut map = arrow_array::builder::MapBuilder::new(
        None,
        arrow_array::builder::StringBuilder::new(),
        arrow_array::builder::Int32Builder::new(),
    );
    map.keys().append_value("k");
    map.values().append_value(7);
    map.append(true).unwrap();
    map.append(false).unwrap();
    let given = batch(vec![("l", Arc::new(list)), ("m", Arc::new(map.finish()))]);
    let result = conform(&given, &schema).unwrap();
    assert_eq!(result.schema_ref(), &schema);
    assert_eq!(
        result
            .column(0)
            .as_list::<i32>()
            .value(0)
            .as_primitive::<Int64Type>()
            .values(),
        &[1, 2]
    );
    assert_eq!(
        result.column(1).as_map().values().as_primitive::<Int64Type>().values(),
        &[7]
    );

    let bad = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1), None])]);
    let schema = table(&[(
        "l",
        DataType::nullable(TypeKind::Array(Box::new(DataType::not_null(TypeKind::Int)))),
    )]);
    assert_eq!(
        message(&batch(vec![("l", Arc::new(bad))]), &schema),
        "column l.element is NOT NULL, but row 1 is null"
    );
}
