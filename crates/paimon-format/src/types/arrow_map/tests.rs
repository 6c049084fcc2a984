use super::*;

fn field_id(field: &Field) -> &str {
    field.metadata().get(FIELD_ID_KEY).unwrap()
}

fn int() -> DataType {
    DataType::nullable(TypeKind::Int)
}

#[test]
fn nested_fields_carry_the_ids_that_java_gives() {
    let array = DataField::new(4, "arr", DataType::nullable(TypeKind::Array(Box::new(int()))));
    let field = arrow_field(&array).unwrap();
    assert_eq!(field_id(&field), "4");
    let ArrowType::List(element) = field.data_type() else {
        panic!("{field:?}")
    };
    assert_eq!(element.name(), "element");
    assert_eq!(field_id(element), "536875008");

    let map = TypeKind::Map(Box::new(DataType::not_null(TypeKind::VarChar(10))), Box::new(int()));
    let field = arrow_field(&DataField::new(7, "m", DataType::nullable(map))).unwrap();
    let ArrowType::Map(entries, false) = field.data_type() else {
        panic!("{field:?}")
    };
    let ArrowType::Struct(entries) = entries.data_type() else {
        panic!("{entries:?}")
    };
    assert_eq!(field_id(&entries[0]), "536863742");
    assert!(!entries[0].is_nullable());
    assert_eq!(field_id(&entries[1]), "536878080");
    assert!(entries[1].is_nullable());
}

#[test]
fn depth_restarts_below_a_row_field() {
    let inner = DataField::new(6, "y", DataType::nullable(TypeKind::Array(Box::new(int()))));
    let row = DataType::nullable(TypeKind::Row(vec![inner]));
    let outer = DataField::new(5, "x", DataType::nullable(TypeKind::Array(Box::new(row))));
    let field = arrow_field(&outer).unwrap();
    let ArrowType::List(element) = field.data_type() else {
        panic!("{field:?}")
    };
    let ArrowType::Struct(fields) = element.data_type() else {
        panic!("{element:?}")
    };
    assert_eq!(field_id(&fields[0]), "6");
    let ArrowType::List(element) = fields[0].data_type() else {
        panic!("{fields:?}")
    };
    assert_eq!(field_id(element), (536_870_911 + 1024 * 6 + 1).to_string());
}

#[test]
fn types_without_arrow_form_are_refused_by_name() {
    let vector = TypeKind::Vector(Box::new(DataType::nullable(TypeKind::Float)), 3);
    for (kind, text) in [(TypeKind::Blob, "BLOB"), (vector, "VECTOR<FLOAT, 3>")] {
        let error = arrow_field(&DataField::new(0, "photo", DataType::nullable(kind))).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("not supported: column photo has type {text}")
        );
    }
    let bad = DataType::nullable(TypeKind::Decimal(39, 2));
    let error = arrow_field(&DataField::new(0, "d", bad)).unwrap_err();
    assert_eq!(error.to_string(), "not supported: column d has type DECIMAL(39, 2)");
}

#[test]
fn a_type_made_to_exhaust_the_stack_is_refused() {
    let deep = (0..10_000).fold(int(), |inner, _| DataType::nullable(TypeKind::Array(Box::new(inner))));
    let error = arrow_field(&DataField::new(0, "deep", deep)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not supported: column deep nests types more than 128 deep"
    );
}

#[test]
fn an_arrow_schema_becomes_fields_with_ids_depth_first() {
    let nested = Fields::from(vec![
        Field::new("x", ArrowType::UInt8, false),
        Field::new("y", ArrowType::LargeUtf8, true),
    ]);
    let schema = Schema::new(vec![
        Field::new("id", ArrowType::Int64, false),
        Field::new("s", ArrowType::Struct(nested), true),
        Field::new(
            "t",
            ArrowType::Timestamp(TimeUnit::Microsecond, Some("Europe/Berlin".into())),
            true,
        ),
    ]);
    let fields = data_fields(&schema).unwrap();
    let text: Vec<String> = fields.iter().map(|field| format!("{} {field}", field.id)).collect();
    assert_eq!(
        text,
        [
            "0 `id` BIGINT NOT NULL",
            "1 `s` ROW<`x` SMALLINT NOT NULL, `y` STRING>",
            "4 `t` TIMESTAMP(6) WITH LOCAL TIME ZONE"
        ]
    );

    let odd = Schema::new(vec![Field::new("d", ArrowType::Duration(TimeUnit::Second), true)]);
    let error = data_fields(&odd).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not supported: column d has the Arrow type Duration(s), which no Paimon type holds"
    );
}

#[test]
fn every_type_comes_back_from_its_arrow_form() {
    let kinds = [
        TypeKind::Boolean,
        TypeKind::TinyInt,
        TypeKind::SmallInt,
        TypeKind::Int,
        TypeKind::BigInt,
        TypeKind::Float,
        TypeKind::Double,
        TypeKind::VarChar(i32::MAX as u32),
        TypeKind::VarBinary(i32::MAX as u32),
        TypeKind::Decimal(38, 38),
        TypeKind::Date,
        TypeKind::Time(3),
        TypeKind::Timestamp(3),
        TypeKind::Timestamp(6),
        TypeKind::LocalZonedTimestamp(9),
        TypeKind::Array(Box::new(int())),
        TypeKind::Map(Box::new(DataType::not_null(TypeKind::Int)), Box::new(int())),
    ];
    let fields = kinds.into_iter().zip(0..);
    let fields: Vec<_> = fields
        .map(|(kind, id)| DataField::new(id, format!("c{id}"), DataType::nullable(kind)))
        .collect();
    assert_eq!(data_fields(&arrow_schema(&fields).unwrap()).unwrap(), fields);
}
