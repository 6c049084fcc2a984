//! New schemas: ids, keys, and what is refused.

use std::sync::Arc;

use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_manifest::ManifestError;
use paimon_manifest::schema::{SchemaBuilder, SchemaStore, TableSchema};

use crate::support::{int, memory, partitioned};

fn row(names: [&str; 2]) -> DataType {
    let fields = names.map(|name| DataField::new(99, name, int()));
    DataType::nullable(TypeKind::Row(fields.to_vec()))
}

#[test]
fn ids_are_given_depth_first_and_the_file_looks_like_javas() {
    let schema = TableSchema::builder()
        .column("dt", DataType::nullable(TypeKind::VarChar(2_147_483_647)))
        .column("id", DataType::nullable(TypeKind::BigInt))
        .field(DataField {
            description: Some("a comment".to_string()),
            ..DataField::new(0, "v", DataType::nullable(TypeKind::Decimal(10, 2)))
        })
        .column("arr", DataType::nullable(TypeKind::Array(Box::new(row(["x", "y"])))))
        .column(
            "m",
            DataType::nullable(TypeKind::Map(
                Box::new(DataType::not_null(TypeKind::Int)),
                Box::new(row(["p", "q"])),
            )),
        )
        .option("bucket", "4")
        .option("primary-key", "dt, id")
        .option("partition", "dt")
        .comment("tbl")
        .build(1_795_987_240_665)
        .unwrap();
    insta::assert_snapshot!(schema.to_json().unwrap());
    let again = TableSchema::from_json("schema/schema-0", schema.to_json().unwrap().as_bytes()).unwrap();
    assert_eq!(again, schema);
}

#[test]
fn keys_follow_from_the_schema() {
    let schema = TableSchema::builder()
        .column("a", int())
        .column("b", int())
        .column("c", int())
        .column("s", int())
        .primary_key(["c", "a", "b"])
        .partition_keys(["b"])
        .option("bucket-key", "a")
        .option("sequence.field", "s , a")
        .option("sequence.field.sort-order", "descending")
        .build(0)
        .unwrap();
    assert_eq!(schema.trimmed_primary_key().unwrap(), [2, 0]);
    assert_eq!(schema.bucket_key().unwrap(), [0]);
    assert_eq!(schema.partition_positions(), [1]);
    assert!(!schema.cross_partition_update());
    let kv = schema.kv_schema().unwrap();
    assert_eq!(kv.key, [2, 0]);
    let sequence = kv.sequence.unwrap();
    assert_eq!((sequence.columns, sequence.descending), (vec![3, 0], true));
}

#[test]
fn a_schema_that_cannot_be_a_table_is_refused() {
    let refused = |builder: SchemaBuilder| match builder.build(0) {
        Ok(schema) => panic!("accepted: {schema:?}"),
        Err(error) => error.to_string(),
    };
    let nested = DataType::nullable(TypeKind::Array(Box::new(int())));
    let base = || TableSchema::builder().column("a", int()).column("b", int());
    let errors = [
        refused(TableSchema::builder()),
        refused(base()),
        refused(base().primary_key(["z"])),
        refused(base().primary_key(["a", "a"])),
        refused(base().column("a", int()).primary_key(["a"])),
        refused(base().primary_key(["a"]).partition_keys(["z"])),
        refused(base().primary_key(["a"]).partition_keys(["a"])),
        refused(base().primary_key(["a"]).option("primary-key", "b")),
        refused(base().column("n", nested.clone()).primary_key(["a", "n"])),
        refused(
            base()
                .column("n", nested.clone())
                .primary_key(["a"])
                .partition_keys(["n"]),
        ),
        refused(base().column("_KEY_x", int()).primary_key(["a"])),
        refused(base().column("_LEVEL", int()).primary_key(["a"])),
        refused(base().primary_key(["a"]).option("bucket-key", "b")),
        refused(base().primary_key(["a"]).option("bucket-key", "a, b")),
        refused(
            base()
                .primary_key(["a", "b"])
                .partition_keys(["b"])
                .option("bucket-key", "b"),
        ),
        refused(base().primary_key(["a"]).option("sequence.field", "z")),
        refused(
            base()
                .primary_key(["a"])
                .option("sequence.field", "b")
                .option("sequence.field.sort-order", "up"),
        ),
    ];
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn older_versions_imply_options() {
    let json = |version: &str| {
        format!(
            r#"{{{version}"id":0,"fields":[],"highestFieldId":-1,"partitionKeys":[],"primaryKeys":[],"options":{{}}}}"#
        )
    };
    let options = |version: &str| {
        let schema = TableSchema::from_json("schema/schema-0", json(version).as_bytes()).unwrap();
        let options: Vec<String> = schema
            .options
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        options.join(" ")
    };
    assert_eq!(options(""), "bucket=1 file.format=orc");
    assert_eq!(options(r#""version":1,"#), "bucket=1 file.format=orc");
    assert_eq!(options(r#""version":2,"#), "file.format=orc");
    assert_eq!(options(r#""version":3,"#), "");
    let newer = TableSchema::from_json("schema/schema-0", json(r#""version":4,"#).as_bytes()).unwrap_err();
    assert!(matches!(newer, ManifestError::Unsupported(_)), "{newer}");
}

#[tokio::test]
async fn a_version_is_written_once() {
    let schemas = SchemaStore::new(memory());
    assert!(schemas.latest().await.unwrap().is_none());
    let first = partitioned().build(1).unwrap();
    assert!(schemas.create(&first).await.unwrap());
    assert!(
        schemas.create(&first).await.unwrap(),
        "the same bytes: it may have been ours"
    );
    assert!(!schemas.create(&partitioned().build(2).unwrap()).await.unwrap());
    assert_eq!(*schemas.latest().await.unwrap().unwrap(), first);
    let once = schemas.get(0).await.unwrap();
    assert!(Arc::ptr_eq(&once, &schemas.get(0).await.unwrap()), "read only once");
    assert_eq!(schemas.get(1).await.unwrap_err().to_string(), "schema 1 does not exist");
}
