use proptest::prelude::*;

use super::*;

/// Fields as the Java engine wrote them.
const FIELDS: &str = r#"[ {
    "id" : 0, "name" : "dt", "type" : "STRING NOT NULL"
  }, {
    "id" : 1, "name" : "id", "type" : "BIGINT NOT NULL"
  }, {
    "id" : 2, "name" : "v", "type" : "DECIMAL(10, 2)", "description" : "a comment", "defaultValue" : "1.5"
  }, {
    "id" : 3, "name" : "ts", "type" : "TIMESTAMP(6) WITH LOCAL TIME ZONE"
  }, {
    "id" : 4, "name" : "arr",
    "type" : { "type" : "ARRAY", "element" : { "type" : "ROW", "fields" : [
      { "id" : 5, "name" : "x", "type" : "INT" }, { "id" : 6, "name" : "y", "type" : "STRING" } ] } }
  }, {
    "id" : 7, "name" : "m", "type" : { "type" : "MAP NOT NULL", "key" : "STRING NOT NULL", "value" : "INT" }
  }, {
    "id" : 8, "name" : "e", "type" : { "type" : "VECTOR", "element" : "FLOAT", "length" : 3 }
  } ]"#;

fn error(json: &str) -> String {
    serde_json::from_str::<DataField>(json).unwrap_err().to_string()
}

#[test]
fn fields_written_by_java_come_back_the_same() {
    let fields: Vec<DataField> = serde_json::from_str(FIELDS).unwrap();
    let text: Vec<String> = fields.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "`dt` STRING NOT NULL",
            "`id` BIGINT NOT NULL",
            "`v` DECIMAL(10, 2) COMMENT 'a comment' DEFAULT 1.5",
            "`ts` TIMESTAMP(6) WITH LOCAL TIME ZONE",
            "`arr` ARRAY<ROW<`x` INT, `y` STRING>>",
            "`m` MAP<STRING NOT NULL, INT> NOT NULL",
            "`e` VECTOR<FLOAT, 3>",
        ]
    );
    let compact = |json: &str| {
        json.split('"')
            .enumerate()
            .map(|(i, part)| match i % 2 {
                0 => part.split_whitespace().collect(),
                _ => format!("\"{part}\""),
            })
            .collect::<String>()
    };
    assert_eq!(serde_json::to_string(&fields).unwrap(), compact(FIELDS));
}

#[test]
fn what_cannot_be_read_is_named() {
    assert_eq!(
        error(r#"{"id": 1, "name": "shape", "type": "GEOMETRY NOT NULL"}"#),
        r#"not supported: field shape: the type GEOMETRY at position 0 of "GEOMETRY NOT NULL""#
    );
    assert_eq!(
        error(
            r#"{"id": 1, "name": "a", "type": {"type": "ROW", "fields": [{"id": 2, "name": "b", "type": "INTERVAL DAY"}]}}"#
        ),
        r#"not supported: field a: field b: the type INTERVAL at position 0 of "INTERVAL DAY""#
    );
    assert_eq!(
        error(r#"{"id": 1, "name": "a", "type": {"type": "TREE"}}"#),
        r#"not supported: field a: the type "TREE""#
    );
    assert_eq!(
        error(r#"{"id": 1, "name": "a", "type": {"type": "MAP", "key": "INT"}}"#),
        "field a: the type MAP has no `value`"
    );
    assert_eq!(
        error(r#"{"id": 1, "name": "a", "type": 7}"#),
        "field a: a type is a text or an object, not 7"
    );
    assert_eq!(
        error(r#"{"name": "a", "type": "INT"}"#),
        "field a has no `id` that is a 32-bit number"
    );
    assert_eq!(
        error(r#"{"id": 4000000000, "name": "a", "type": "INT"}"#),
        "field a has no `id` that is a 32-bit number"
    );
    assert_eq!(error(r#"{"id": 1, "name": "a"}"#), "field a has no `type`");
    assert_eq!(
        error(r#"{"id": 1, "type": "INT"}"#),
        r#"a field without the text `name`: {"id":1,"type":"INT"}"#
    );
}

#[test]
fn a_type_made_to_exhaust_the_stack_is_refused() {
    let json = format!(
        "{}\"INT\"{}",
        r#"{"type":"ARRAY","element":"#.repeat(5000),
        "}".repeat(5000)
    );
    assert!(serde_json::from_str::<DataType>(&json).is_err());
}

pub(crate) fn any_type() -> impl Strategy<Value = DataType> {
    let atomic = prop_oneof![
        prop::sample::select(vec![
            TypeKind::Boolean,
            TypeKind::TinyInt,
            TypeKind::SmallInt,
            TypeKind::Int,
            TypeKind::BigInt,
            TypeKind::Float,
            TypeKind::Double,
            TypeKind::VarChar(MAX_LENGTH),
            TypeKind::VarBinary(MAX_LENGTH),
            TypeKind::Date,
            TypeKind::Variant,
            TypeKind::Blob,
        ]),
        (1..=MAX_LENGTH).prop_map(TypeKind::Char),
        (1..=MAX_LENGTH).prop_map(TypeKind::VarChar),
        (1..=MAX_LENGTH).prop_map(TypeKind::Binary),
        (1..=MAX_LENGTH).prop_map(TypeKind::VarBinary),
        (1..=38_u8)
            .prop_flat_map(|precision| (Just(precision), 0..=precision))
            .prop_map(|(p, s)| TypeKind::Decimal(p, s)),
        (0..=9_u8).prop_map(TypeKind::Time),
        (0..=9_u8).prop_map(TypeKind::Timestamp),
        (0..=9_u8).prop_map(TypeKind::LocalZonedTimestamp),
    ];
    let with_nullability = |kind| (kind, any::<bool>()).prop_map(|(kind, nullable)| DataType { kind, nullable });
    with_nullability(atomic.boxed()).prop_recursive(4, 20, 4, move |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let field = (0..1000, "[ -~é]{0,6}", inner, prop::option::of("[ -~]{1,4}")).prop_map(
            |(id, name, data_type, description)| DataField {
                description,
                ..DataField::new(id, name, data_type)
            },
        );
        let kind = prop_oneof![
            boxed.clone().prop_map(TypeKind::Array),
            boxed.clone().prop_map(TypeKind::Multiset),
            (boxed.clone(), boxed.clone()).prop_map(|(key, value)| TypeKind::Map(key, value)),
            (boxed, 1..=MAX_LENGTH).prop_map(|(element, length)| TypeKind::Vector(element, length)),
            prop::collection::vec(field, 1..4).prop_map(|mut fields| {
                // No two of one name.
                for (i, field) in fields.iter_mut().enumerate() {
                    field.name.push_str(&i.to_string());
                }
                TypeKind::Row(fields)
            }),
        ];
        with_nullability(kind.boxed())
    })
}

/// The type with the ids that its text implies.
fn numbered(data_type: &DataType, next: &mut i32) -> DataType {
    let mut number = |part: &DataType| Box::new(numbered(part, next));
    let kind = match &data_type.kind {
        TypeKind::Array(element) => TypeKind::Array(number(element)),
        TypeKind::Multiset(element) => TypeKind::Multiset(number(element)),
        TypeKind::Map(key, value) => TypeKind::Map(number(key), number(value)),
        TypeKind::Vector(element, length) => TypeKind::Vector(number(element), *length),
        TypeKind::Row(fields) => TypeKind::Row(
            fields
                .iter()
                .map(|field| {
                    let id = *next;
                    *next += 1;
                    DataField {
                        id,
                        data_type: numbered(&field.data_type, next),
                        ..field.clone()
                    }
                })
                .collect(),
        ),
        kind => kind.clone(),
    };
    DataType {
        kind,
        nullable: data_type.nullable,
    }
}

proptest! {
    #[test]
    fn any_type_survives_json_and_text(data_type in any_type()) {
        let json = serde_json::to_string(&data_type).unwrap();
        prop_assert_eq!(&serde_json::from_str::<DataType>(&json).unwrap(), &data_type);
        let text = data_type.to_string();
        prop_assert_eq!(text.parse::<DataType>().unwrap(), numbered(&data_type, &mut 0), "{}", text);
    }
}
