//! New schemas: ids, keys, and what is refused.

use std::sync::Arc;

use paimon_format::ErrorKind;
use paimon_format::types::{DataField, DataType, TypeKind};
use paimon_manifest::ManifestError;
use paimon_manifest::schema::{SchemaBuilder, SchemaChange, SchemaStore, TableSchema};

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
        .option("bucket", "4")
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

fn add(name: &str, data_type: DataType) -> SchemaChange {
    SchemaChange::AddColumn {
        name: name.to_string(),
        data_type,
        comment: None,
    }
}

fn widen(name: &str, data_type: &str) -> SchemaChange {
    SchemaChange::UpdateColumnType {
        name: name.to_string(),
        data_type: data_type.parse().unwrap(),
    }
}

#[test]
fn added_columns_take_the_next_ids_and_come_last() {
    let schema = partitioned().build(0).unwrap();
    let highest = schema.highest_field_id;
    let changes = [
        add("a", DataType::nullable(TypeKind::Array(Box::new(row(["x", "y"]))))),
        add("b", int()),
    ];
    let next = schema.with_changes(&changes, 7).unwrap();
    assert_eq!((next.id, next.time_millis, next.highest_field_id), (1, 7, highest + 4));
    let new: Vec<(&str, i32)> = next.fields[schema.fields.len()..]
        .iter()
        .map(|f| (f.name.as_str(), f.id))
        .collect();
    assert_eq!(new, [("a", highest + 1), ("b", highest + 4)]);
    assert_eq!(next.fields[..schema.fields.len()], schema.fields);

    let mut schema = schema;
    schema.options.set("add-column-before-partition", "true");
    let next = schema.with_changes(&[add("b", int())], 7).unwrap();
    let partition = next.position(&schema.partition_keys[0]).unwrap();
    assert_eq!(next.fields[partition - 1].name, "b");
}

#[test]
fn changes_that_cannot_be_are_refused_by_column() {
    let schema = partitioned().build(0).unwrap();
    let key = schema.primary_keys[0].clone();
    let partition = schema.partition_keys[0].clone();
    let last = schema.fields.last().unwrap().name.clone();
    for (change, expected) in [
        (add(&key, int()), format!("there is a column {key} already")),
        (
            add("n", DataType::not_null(TypeKind::Int)),
            "column n cannot be added as NOT NULL: the rows that are there have no value for it".to_string(),
        ),
        (add("_LEVEL", int()), "the column name _LEVEL is reserved".to_string()),
        (add("", int()), "a column has an empty name".to_string()),
        (
            widen(&key, "STRING"),
            format!("the type of column {key} cannot change: it is part of a key"),
        ),
        (widen("none", "BIGINT"), "there is no column none".to_string()),
        (
            rename(&partition, "p"),
            format!("column {partition} cannot be renamed: directories of partitions bear its name"),
        ),
        (rename("none", "q"), "there is no column none".to_string()),
        (rename(&last, &key), format!("there is a column {key} already")),
        (
            rename(&last, "_LEVEL"),
            "the column name _LEVEL is reserved".to_string(),
        ),
        (
            drop(&key),
            format!("column {key} cannot be dropped: it is part of a key"),
        ),
        (drop("none"), "there is no column none".to_string()),
    ] {
        assert_eq!(schema.with_changes(&[change], 0).unwrap_err().to_string(), expected);
    }
    let schema = schema.with_changes(&[add("n", int())], 0).unwrap();
    let error = schema.with_changes(&[widen("n", "BYTES")], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let next = schema.with_changes(&[widen("n", "BIGINT NOT NULL")], 0).unwrap();
    assert_eq!(next.field("n").unwrap().data_type.to_string(), "BIGINT");
}

fn rename(name: &str, to: &str) -> SchemaChange {
    SchemaChange::RenameColumn {
        name: name.to_string(),
        to: to.to_string(),
    }
}

fn drop(name: &str) -> SchemaChange {
    SchemaChange::DropColumn { name: name.to_string() }
}

#[test]
fn a_new_name_is_the_same_column_everywhere() {
    let schema = TableSchema::builder()
        .column("k", int())
        .column("s", int())
        .column("v", int())
        .primary_key(["k"])
        .option("bucket", "2")
        .option("bucket-key", "k")
        .option("sequence.field", "v, s")
        .option("fields.s,v.sequence-group", "v")
        .option("fields.v.aggregate-function", "sum")
        .option("fields.default-aggregate-function", "v")
        .option("record-level.time-field", "v")
        .option("comment", "v")
        .build(0)
        .unwrap();
    let next = schema.with_changes(&[rename("v", "w"), rename("k", "id")], 0).unwrap();
    assert_eq!(next.primary_keys, ["id"]);
    let columns: Vec<(i32, &str)> = next.fields.iter().map(|f| (f.id, f.name.as_str())).collect();
    assert_eq!(columns, [(0, "id"), (1, "s"), (2, "w")]);
    let options: Vec<String> = next
        .options
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    assert_eq!(
        options,
        [
            "bucket=2",
            "bucket-key=id",
            "comment=v",
            "fields.default-aggregate-function=v",
            "fields.s,w.sequence-group=w",
            "fields.w.aggregate-function=sum",
            "record-level.time-field=w",
            "sequence.field=w, s",
        ]
    );
}

/// In buckets of their own each partition would keep the key.
#[test]
fn keys_that_may_move_between_partitions_take_dynamic_buckets() {
    let schema = |bucket: &str| {
        let columns = TableSchema::builder().column("k", int()).column("p", int());
        columns
            .primary_key(["k"])
            .partition_keys(["p"])
            .option("bucket", bucket)
            .build(0)
    };
    schema("-1").unwrap();
    for bucket in ["2", "-2"] {
        let error = schema(bucket).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(
            error
                .to_string()
                .starts_with("option 'bucket': the primary key (k) has not all partition columns (p)"),
            "{error}"
        );
    }
}

#[test]
fn a_column_of_a_dropped_name_is_a_new_one() {
    let schema = TableSchema::builder()
        .column("k", int())
        .column("v", int())
        .primary_key(["k"])
        .option("snapshot.time-retained", "1 h")
        .build(0)
        .unwrap();
    let changes = [
        drop("v"),
        add("v", int()),
        SchemaChange::RemoveOption {
            key: "snapshot.time-retained".to_string(),
        },
    ];
    let next = schema.with_changes(&changes, 0).unwrap();
    assert_eq!((next.field("v").unwrap().id, next.highest_field_id), (2, 2));
    assert_eq!(next.options.iter().count(), 0);
}
