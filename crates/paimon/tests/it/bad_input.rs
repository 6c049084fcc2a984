//! What is wrong with a table is said by name, and nothing is changed.

use std::path::Path;

use paimon::format::options::Options;
use paimon::format::types::{DataField, DataType, TypeKind};
use paimon::{Error, ErrorKind, Selection, Table, TableSchema, TimeTravel};

use crate::support::{Place, commit, kv_schema, only_file, rows, try_rows_of};

/// A table of two snapshots, two files.
async fn table(place: &Place) -> Table {
    let table = place.create(kv_schema().option("write-only", "true")).await;
    commit(&table, &[("+I", 1, "a")]).await;
    commit(&table, &[("+I", 2, "b")]).await;
    table
}

/// The error of a read; names that a temporary folder makes are taken out.
async fn read_error(place: &Place, table: &Table) -> String {
    let error = try_rows_of(&table.read_builder()).await.unwrap_err();
    masked(place, &error)
}

fn masked(place: &Place, error: &Error) -> String {
    let text = format!("{}: {error}", error.kind());
    text.replace(place.dir.path().to_str().unwrap(), "DIR")
}

/// With a `#` for every number: sizes and names of files change with every version of an encoder.
fn without_digits(text: &str) -> String {
    let mut masked = String::new();
    for char in text.chars() {
        if !char.is_ascii_digit() {
            masked.push(char);
        } else if !masked.ends_with('#') {
            masked.push('#');
        }
    }
    masked
}

#[tokio::test]
async fn broken_metadata_and_files() {
    let mut errors = Vec::new();
    for (dir, prefix) in [
        ("snapshot", "snapshot-2"),
        ("manifest", "manifest-list"),
        ("manifest", "manifest-0"),
        ("bucket-0", "data-"),
    ] {
        for damage in ["truncated", "garbage", "missing"] {
            let place = Place::new();
            let table = table(&place).await;
            let path = only_file(&table, dir, prefix);
            let bytes = std::fs::read(&path).unwrap();
            match damage {
                "truncated" => std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap(),
                "garbage" => std::fs::write(&path, vec![b'x'; bytes.len()]).unwrap(),
                _ => std::fs::remove_file(&path).unwrap(),
            }
            if damage == "missing" && dir == "snapshot" {
                // The snapshot before it is the latest then.
                assert_eq!(rows(&table).await, ["1 a"]);
                continue;
            }
            let error = without_digits(&read_error(&place, &table).await);
            errors.push(format!("{dir}/{prefix} {damage}\n    {error}"));
        }
    }
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn what_is_no_table_or_no_table_for_us() {
    let place = Place::new();
    let mut errors = Vec::new();
    let error = Table::open(&place.location("nothing"), Options::new(), &place.context)
        .await
        .unwrap_err();
    errors.push(masked(&place, &error));
    let error = Table::open("ftp://host/t", Options::new(), &place.context)
        .await
        .unwrap_err();
    errors.push(masked(&place, &error));

    let table = table(&place).await;
    let path = Path::new(table.location()).join("schema/schema-0");
    let text = std::fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"primaryKeys\" : [ \"k\" ]", "\"primaryKeys\" : [ ]"),
        ("\"STRING\"", "\"STRONG\""),
        ("\"version\" : 3", "\"version\" : 4"),
        ("{", "["),
    ] {
        assert!(text.contains(from), "{text}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = Table::open(table.location(), Options::new(), &place.context)
            .await
            .unwrap_err();
        errors.push(masked(&place, &error));
    }
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn options_that_are_illegal_or_not_supported() {
    let mut errors = Vec::new();
    for (key, value) in [
        ("bucket", "0"),
        ("bucket", "-1"),
        ("bucket", "-2"),
        ("bucket", "many"),
        ("bucket-key", "v"),
        ("merge-engine", "newest-of-all"),
        ("changelog-producer", "newest"),
        ("file.format", "lance"),
        ("file.compression", "middle-out"),
        ("sequence.field", "x"),
        ("rowkind.field", "op"),
        ("num-levels", "1"),
        ("write-buffer-size", "a lot"),
        ("write-only", "maybe"),
        ("record-level.expire-time", "1 d"),
        ("manifest.merge-min-count", "0"),
        ("manifest.compression", "middle-out"),
        ("commit.max-retries", "-1"),
    ] {
        let place = Place::new();
        match Table::create(&place.location("t"), kv_schema().option(key, value), &place.context).await {
            Ok(_) => errors.push(format!("{key} = {value}: accepted")),
            Err(error) => {
                errors.push(format!("{key} = {value}\n    {}", masked(&place, &error)));
                assert!(!Path::new(&place.location("t")).exists(), "{key}: something was made");
            }
        }
    }
    insta::assert_snapshot!(errors.join("\n"));
}

/// ARRAY of ROW with these fields.
fn rows_of_ints(names: &[&str]) -> DataType {
    let field = |name: &&str| DataField::new(0, *name, DataType::nullable(TypeKind::Int));
    let row = TypeKind::Row(names.iter().map(field).collect());
    DataType::nullable(TypeKind::Array(Box::new(DataType::nullable(row))))
}

#[tokio::test]
async fn schemas_that_cannot_be() {
    let place = Place::new();
    let column = |name: &str, text: &str| {
        TableSchema::builder()
            .column(name, text.parse().unwrap())
            .option("bucket", "1")
    };
    let schemas = [
        column("k", "INT"),
        column("k", "INT").primary_key(["x"]),
        column("k", "INT")
            .column("k", "INT".parse().unwrap())
            .primary_key(["k"]),
        column("_KEY_k", "INT").primary_key(["_KEY_k"]),
        column("k", "ARRAY<INT>").primary_key(["k"]),
        column("k", "INT").primary_key(["k"]).partition_keys(["k"]),
        column("k", "INT")
            .primary_key(["k"])
            .column("b", "BLOB".parse().unwrap()),
        column("k", "BYTES")
            .column("v", "INT".parse().unwrap())
            .primary_key(["k", "v"])
            .partition_keys(["k"]),
        column("k", "INT")
            .primary_key(["k"])
            .column("r", rows_of_ints(&["a", "b", "a"])),
        column("k", "INT").primary_key(["k"]).column("r", rows_of_ints(&[])),
    ];
    let mut errors = Vec::new();
    for schema in schemas {
        let error = Table::create(&place.location("t"), schema, &place.context)
            .await
            .unwrap_err();
        errors.push(masked(&place, &error));
    }
    place.create(kv_schema()).await;
    let error = Table::create(&place.location("t"), kv_schema(), &place.context)
        .await
        .unwrap_err();
    errors.push(masked(&place, &error));
    insta::assert_snapshot!(errors.join("\n"));
}

#[tokio::test]
async fn rows_that_do_not_fit() {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    };

    let place = Place::new();
    let schema = kv_schema()
        .column("t", "TIMESTAMP(9)".parse().unwrap())
        .column("c", "VARCHAR(2)".parse().unwrap());
    let table = place.create(schema).await;
    let keys = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    let batches: Vec<Vec<(&str, ArrayRef)>> = vec![
        vec![("v", Arc::new(StringArray::from(vec!["a"])))],
        vec![("k", Arc::new(Int32Array::from(vec![None])))],
        vec![("k", Arc::new(StringArray::from(vec!["1"])))],
        vec![("k", Arc::new(Int64Array::from(vec![1 << 40])))],
        vec![("k", Arc::new(Float64Array::from(vec![1.5])))],
        vec![("k", keys()), ("x", keys())],
        vec![("k", keys()), ("_VALUE_KIND", Arc::new(Int8Array::from(vec![7])))],
        vec![
            ("k", keys()),
            ("t", Arc::new(TimestampMicrosecondArray::from(vec![i64::MAX]))),
        ],
        vec![("k", keys()), ("c", Arc::new(StringArray::from(vec!["abc"])))],
    ];
    let mut write = table.write_builder().new_write().unwrap();
    let mut errors = Vec::new();
    for columns in batches {
        let error = write
            .write(&RecordBatch::try_from_iter(columns).unwrap())
            .await
            .unwrap_err();
        errors.push(masked(&place, &error));
    }
    let (batch, _) = crate::support::kv(&[("+I", 1, "a")]);
    let error = write
        .write_with_kinds(&batch, &Int8Array::from(vec![0, 0]))
        .await
        .unwrap_err();
    errors.push(masked(&place, &error));
    insta::assert_snapshot!(errors.join("\n"));
    // The writer goes on.
    write.write(&batch).await.unwrap();
}

#[tokio::test]
async fn features_of_later_tables_are_refused_for_reads() {
    let place = Place::new();
    let table = table(&place).await;
    let path = Path::new(table.location()).join("schema/schema-0");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut errors = Vec::new();
    for option in [
        "\"merge-engine\" : \"newest-of-all\"",
        "\"deletion-vectors.enabled\" : \"true\", \"changelog-producer\" : \"full-compaction\"",
    ] {
        std::fs::write(
            &path,
            text.replacen("\"options\" : {", &format!("\"options\" : {{\n    {option},"), 1),
        )
        .unwrap();
        let table = Table::open(table.location(), Options::new(), &place.context)
            .await
            .unwrap();
        errors.push(read_error(&place, &table).await);
        // What it holds can be looked at all the same.
        assert_eq!(table.snapshots(10).await.unwrap().len(), 2);
    }
    insta::assert_snapshot!(errors.join("\n"));
}

/// Pages of our own files have no checksums: what is noticed all the same is an error with the file's name, and nothing panics.
#[tokio::test]
async fn damaged_pages_name_their_file() {
    let place = Place::new();
    let table = place.create(kv_schema().option("file.compression", "zstd")).await;
    let texts: Vec<String> = (0..500).map(|k| format!("{:x}", k * 7919)).collect();
    let rows: Vec<_> = texts
        .iter()
        .zip(0..)
        .map(|(text, k)| ("+I", k, text.as_str()))
        .collect();
    commit(&table, &rows).await;
    let path = only_file(&table, "bucket-0", "data-");
    let name = path.file_name().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut noticed = 0;
    for at in (0..bytes.len()).step_by(23) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&path, &damaged).unwrap();
        if let Err(error) = try_rows_of(&table.read_builder()).await {
            noticed += 1;
            assert!(error.to_string().contains(name), "byte {at}: {error}");
            assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}: {error}");
        }
    }
    assert!(noticed > 20, "{noticed}");
}

#[tokio::test]
async fn buckets_that_are_not_there() {
    let place = Place::new();
    let table = table(&place).await;
    let select = |bucket| Selection::all().bucket(bucket);
    let expected = "there is no bucket 1: the table has bucket 0 alone";
    let compact = table.compact_builder().select(select(1)).run().await.unwrap_err();
    assert_eq!(compact.to_string(), expected);
    let read = try_rows_of(&table.read_builder().select(select(1))).await.unwrap_err();
    assert_eq!(read.to_string(), expected);
    let negative = table.buckets(&TimeTravel::Latest, &select(-2)).await.unwrap_err();
    assert_eq!(
        negative.to_string(),
        "there is no bucket -2: the table has bucket 0 alone"
    );
    assert_eq!(
        try_rows_of(&table.read_builder().select(select(0)))
            .await
            .unwrap()
            .len(),
        2
    );
}
