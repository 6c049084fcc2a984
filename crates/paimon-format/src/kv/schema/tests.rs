use super::*;
use crate::types::DataType;
use crate::types::TypeKind;

fn fields() -> Vec<DataField> {
    let kinds = [
        ("dt", TypeKind::VarChar(10)),
        ("v", TypeKind::Int),
        ("id", TypeKind::BigInt),
        ("w", TypeKind::Double),
        ("seq", TypeKind::Timestamp(6)),
        ("tags", TypeKind::Array(Box::new(DataType::nullable(TypeKind::Int)))),
    ];
    let fields = kinds.into_iter().zip(0..);
    fields
        .map(|((name, kind), id)| DataField::new(id, name, DataType::nullable(kind)))
        .collect()
}

fn sequence(columns: Vec<usize>) -> Option<SequenceOrder> {
    Some(SequenceOrder {
        columns,
        descending: true,
    })
}

#[test]
fn a_projection_keeps_key_and_sequence_columns_in_table_order() {
    let schema = KvSchema::new(3, fields(), vec![2, 0], sequence(vec![4])).unwrap();
    let part = schema.project(&[3]).unwrap();
    let names: Vec<_> = part.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["dt", "id", "w", "seq"]);
    assert_eq!(part.key, [1, 0]);
    assert_eq!(part.sequence, sequence(vec![3]));
    assert_eq!(part.schema_id, 3);
    let arrow: Vec<_> = part.arrow.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(arrow, ["_SEQUENCE_NUMBER", "_VALUE_KIND", "dt", "id", "w", "seq"]);
    assert_eq!(schema.project(&[0, 1, 2, 3, 4, 5]).unwrap(), schema);
    assert!(schema.project(&[6]).is_err());
}

#[test]
fn partition_columns_belong_to_the_primary_key() {
    let schema = KvSchema::new(3, fields(), vec![2], None).unwrap();
    assert!(schema.clone().with_partition(vec![6]).is_err());
    let schema = schema.with_partition(vec![0, 4]).unwrap();
    let primary: Vec<bool> = (0..6).map(|position| schema.is_primary_key(position)).collect();
    assert_eq!(primary, [true, false, true, false, true, false]);
    let part = schema.project(&[4]).unwrap();
    assert_eq!((part.key, part.partition), (vec![0], vec![1]));
}

#[test]
fn wrong_schemas_are_refused_by_name() {
    let message = |fields, key, sequence| KvSchema::new(0, fields, key, sequence).unwrap_err().to_string();
    assert_eq!(
        message(fields(), vec![], None),
        "the primary key has no column besides the partition columns"
    );
    assert_eq!(
        message(fields(), vec![9], None),
        "the primary key: no column at position 9, there are 6 columns"
    );
    assert_eq!(
        message(fields(), vec![0, 0], None),
        "the primary key names column dt twice"
    );
    assert_eq!(
        message(fields(), vec![5], None),
        "not supported: the primary key: column tags has type ARRAY<INT>, which has no order"
    );
    assert_eq!(
        message(fields(), vec![0], sequence(vec![5])),
        "not supported: the sequence fields: column tags has type ARRAY<INT>, which has no order"
    );
    let mut doubled = fields();
    doubled[1].name = "dt".into();
    assert_eq!(message(doubled, vec![0], None), "two columns are named dt");
    let mut reserved = fields();
    reserved[1].name = "_KEY_x".into();
    assert_eq!(message(reserved, vec![0], None), "the column name _KEY_x is reserved");
}
