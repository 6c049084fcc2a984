use paimon::TableSchema;
use paimon::format::types::{DataType, Datum, RowKind};
use serde_json::Value;

use super::*;
use crate::error::RecordError;
use crate::rows::{RecordRows, RowTyper};

const STREAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cdc");

fn schema(columns: &[(String, String)], primary_key: &[String]) -> TableSchema {
    let mut builder = TableSchema::builder().primary_key(primary_key);
    for (name, data_type) in columns {
        builder = builder.column(name, data_type.parse::<DataType>().unwrap());
    }
    builder.build(0).unwrap()
}

fn rows_of(decoder: &mut dyn ChangeDecoder, typer: &RowTyper, record: &str) -> Result<RecordRows, RecordError> {
    let mut found = RecordRows::default();
    decoder.decode(record, &mut |change| typer.add(&change, &mut found))?;
    Ok(found)
}

fn json_of(kind: RowKind, row: &[Datum], types: &[DataType]) -> Value {
    let values = row.iter().zip(types).map(|(value, data_type)| value.to_json(data_type));
    std::iter::once(Value::from(kind.short_string()))
        .chain(values)
        .collect()
}

/// The changes of whole streams, as their documentation says.
#[test]
fn streams_say_what_they_say() {
    let mut streams = 0;
    for (folder, format) in [
        ("debezium", ChangeFormat::Debezium),
        ("canal", ChangeFormat::Canal),
        ("maxwell", ChangeFormat::Maxwell),
    ] {
        let expected = std::fs::read(format!("{STREAMS}/{folder}/expected.json")).unwrap();
        let expected: serde_json::Map<String, Value> = serde_json::from_slice(&expected).unwrap();
        for (file, expected) in expected {
            let columns: Vec<(String, String)> = serde_json::from_value(expected["columns"].clone()).unwrap();
            let key: Vec<String> = serde_json::from_value(expected["primaryKey"].clone()).unwrap();
            let schema = schema(&columns, &key);
            let types: Vec<DataType> = schema.fields.iter().map(|field| field.data_type.clone()).collect();
            let typer = RowTyper::new(&schema);
            let mut decoder = format.decoder(None);
            let mut changes = Vec::new();
            let stream = std::fs::read_to_string(format!("{STREAMS}/{folder}/{file}")).unwrap();
            for record in stream.lines() {
                let found =
                    rows_of(&mut *decoder, &typer, record).unwrap_or_else(|error| panic!("{file}: {error}\n{record}"));
                changes.extend(found.rows.iter().map(|(kind, row)| json_of(*kind, row, &types)));
            }
            assert_eq!(Value::from(stream.lines().count()), expected["messages"], "{file}");
            if let Some(expected) = expected.get("changes") {
                assert_eq!(Value::from(changes), *expected, "{folder}/{file}");
            }
            streams += 1;
        }
    }
    assert_eq!(streams, 8);
}

fn one_key() -> TableSchema {
    let columns = [("id", "INT"), ("v", "STRING"), ("n", "INT")];
    schema(
        &columns.map(|(name, data_type)| (name.to_owned(), data_type.to_owned())),
        &["id".to_owned()],
    )
}

fn error_of(format: ChangeFormat, record: &str) -> String {
    let typer = RowTyper::new(&one_key());
    rows_of(&mut *format.decoder(Some("op".to_owned())), &typer, record)
        .unwrap_err()
        .to_string()
}

#[test]
fn records_that_cannot_be_used_say_why() {
    use ChangeFormat::{Canal, Debezium, Json, Maxwell};
    let records = [
        (Debezium, "{\"op\":"),
        (Debezium, "[1]"),
        (Debezium, "{\"before\":null,\"after\":{\"id\":1}}"),
        (Debezium, "{\"op\":\"x\",\"after\":{\"id\":1}}"),
        (Debezium, "{\"op\":\"t\",\"after\":{\"id\":1}}"),
        (Debezium, "{\"op\":7,\"after\":{\"id\":1}}"),
        (Debezium, "{\"op\":\"c\",\"after\":null}"),
        (Debezium, "{\"op\":\"c\",\"after\":[1]}"),
        (Debezium, "{\"op\":\"d\",\"before\":null,\"after\":null}"),
        (Debezium, "{\"op\":\"c\",\"after\":{\"v\":\"no key\"}}"),
        (Debezium, "{\"op\":\"c\",\"after\":{\"id\":99999999999}}"),
        (Debezium, "{\"op\":\"c\",\"after\":{\"id\":1,\"n\":\"many\"}}"),
        (Debezium, "{\"op\":\"c\",\"after\":{\"id\":1,\"n\":{}}}"),
        (
            Debezium,
            "{\"op\":\"u\",\"before\":null,\"after\":{\"id\":1,\"v\":\"__debezium_unavailable_value\"}}",
        ),
        (Canal, "{\"type\":\"INSERT\"}"),
        (Canal, "{\"type\":\"INSERT\",\"data\":{}}"),
        (Canal, "{\"type\":\"MERGE\",\"data\":[]}"),
        (Canal, "{\"type\":\"INSERT\",\"data\":[7]}"),
        (Canal, "{\"type\":\"UPDATE\",\"data\":[{\"id\":\"1\"}],\"old\":[]}"),
        (
            Canal,
            "{\"type\":\"INSERT\",\"data\":[{\"id\":\"1\",\"v\":\"3\"}],\"mysqlType\":{\"v\":\"enum('a','b')\"}}",
        ),
        (Maxwell, "{\"type\":\"insert\"}"),
        (Maxwell, "{\"type\":\"upsert\",\"data\":{}}"),
        (Maxwell, "{\"data\":{}}"),
        (Json, "{\"id\":1}"),
        (Json, "{\"id\":1,\"op\":\"+X\"}"),
        (Json, "7"),
    ];
    let errors =
        records.map(|(format, record)| format!("{}: {record}\n    {}\n", format.name(), error_of(format, record)));
    insta::assert_snapshot!(errors.concat());
}

#[test]
fn records_without_rows_are_passed() {
    use ChangeFormat::{Canal, Debezium, Json, Maxwell};
    let typer = RowTyper::new(&one_key());
    for (format, record) in [
        (Debezium, "null"),
        (Debezium, "{\"schema\":{\"type\":\"struct\"},\"payload\":null}"),
        (Debezium, "{\"ts_ms\":1}"),
        (Debezium, "{\"op\":\"m\",\"message\":{}}"),
        (Debezium, "{\"status\":\"END\",\"id\":\"x\"}"),
        (Debezium, "{\"ddl\":\"DROP TABLE x\",\"tableChanges\":[]}"),
        (Canal, "null"),
        (Canal, "{\"isDdl\":true,\"type\":\"QUERY\",\"data\":null}"),
        (Maxwell, "{\"type\":\"bootstrap-start\",\"data\":{}}"),
        (Maxwell, "{\"type\":\"database-create\"}"),
        (Json, "null"),
    ] {
        assert!(
            rows_of(&mut *format.decoder(None), &typer, record)
                .unwrap()
                .rows
                .is_empty(),
            "{record}"
        );
    }
}

/// The columns that a record declares.
fn columns(format: ChangeFormat, record: &str) -> String {
    let mut found = RecordRows::default();
    let typer = RowTyper::new(&one_key());
    let decoded = format
        .decoder(None)
        .decode(record, &mut |change| typer.add(&change, &mut found))
        .unwrap();
    let columns = match decoded {
        Decoded::Columns(columns) => columns,
        _ => found.columns,
    };
    let columns = columns.iter().map(|(name, data_type)| format!("{name} {data_type}"));
    columns.collect::<Vec<_>>().join("; ")
}

#[test]
fn statements_and_schemas_name_columns() {
    assert_eq!(
        columns(
            ChangeFormat::Debezium,
            r#"{"ddl":"…","tableChanges":[{"table":{"columns":[{"name":"id","typeName":"BIGINT UNSIGNED"},{"name":"d","typeName":"DECIMAL","length":8,"scale":3},{"name":"x","typeName":"POINTY"}]}}]}"#
        ),
        "id DECIMAL(20, 0); d DECIMAL(8, 3)"
    );
    assert_eq!(
        columns(
            ChangeFormat::Maxwell,
            r#"{"type":"table-alter","def":{"columns":[{"type":"bigint","name":"t","signed":false},{"type":"datetime","name":"at","column-length":6},{"type":"set","name":"s"}]}}"#
        ),
        "t DECIMAL(20, 0); at TIMESTAMP(6); s ARRAY<STRING>"
    );
    assert_eq!(
        columns(
            ChangeFormat::Canal,
            r#"{"type":"INSERT","data":[{"id":"1","x":"5","y":"a"}],"mysqlType":{"id":"bigint(20)","x":"mediumint(8) unsigned zerofill"}}"#
        ),
        "id BIGINT; x BIGINT; y STRING"
    );
    let schema = r#"{"fields":[{"field":"after","fields":[{"field":"id","type":"int64"},{"field":"p","type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2","connect.decimal.precision":"10"}},{"field":"a","type":"array","items":{"type":"string"}},{"field":"b","type":"bytes","name":"io.debezium.data.Bits","parameters":{"length":"12"}},{"field":"g","type":"struct","name":"io.debezium.data.geometry.Point"}]}]}"#;
    let record = format!(
        r#"{{"schema":{schema},"payload":{{"op":"c","after":{{"id":1,"p":"AQ==","a":[],"b":"AQI=","g":{{"x":1}}}}}}}}"#
    );
    assert_eq!(
        columns(ChangeFormat::Debezium, &record),
        "id BIGINT; p DECIMAL(10, 2); a ARRAY<STRING>; b BINARY(2); g STRING"
    );
}

/// A Debezium event of a new row, with its schema: name, type and semantic type of each column.
fn debezium_insert(columns: &[(&str, &str, &str)], row: &str) -> String {
    let columns = columns.iter().map(|(column, of, name)| match *name {
        "" => format!(r#"{{"field":"{column}","type":"{of}"}}"#),
        name => format!(r#"{{"field":"{column}","type":"{of}","name":"{name}"}}"#),
    });
    let columns = columns.collect::<Vec<_>>().join(",");
    let schema = format!(r#"{{"fields":[{{"field":"after","fields":[{columns}]}}]}}"#);
    format!(r#"{{"schema":{schema},"payload":{{"op":"c","after":{row}}}}}"#)
}

/// Times of day are times, not numbers; doubles keep their digits.
#[test]
fn debezium_declares_types_by_their_names() {
    for (of, name, expected) in [
        ("int32", "io.debezium.time.Time", "TIME(3)"),
        ("int64", "io.debezium.time.MicroTime", "TIME(3)"),
        ("int64", "io.debezium.time.NanoTime", "TIME(3)"),
        ("int32", "org.apache.kafka.connect.data.Time", "TIME(3)"),
        ("int32", "io.debezium.time.Date", "DATE"),
        ("int64", "io.debezium.time.Timestamp", "TIMESTAMP(3)"),
        ("int64", "io.debezium.time.MicroTimestamp", "TIMESTAMP(6)"),
        ("int64", "io.debezium.time.NanoTimestamp", "TIMESTAMP(9)"),
        ("string", "io.debezium.time.ZonedTimestamp", "TIMESTAMP(6)"),
        ("float32", "", "FLOAT"),
        ("float64", "", "DOUBLE"),
        ("int16", "", "SMALLINT"),
    ] {
        let record = debezium_insert(&[("id", "int32", ""), ("x", of, name)], r#"{"id":1,"x":null}"#);
        assert_eq!(
            columns(ChangeFormat::Debezium, &record),
            format!("x {expected}"),
            "{of} {name}"
        );
    }
}

#[test]
fn debezium_times_and_doubles_are_read_as_declared() {
    let declared = [
        ("id", "int32", ""),
        ("t", "int32", "io.debezium.time.Time"),
        ("m", "int64", "io.debezium.time.MicroTime"),
        ("d", "float64", ""),
    ];
    let row = r#"{"id":1,"t":45296789,"m":45296789123,"d":0.1234567890123}"#;
    let table = [("id", "INT"), ("t", "TIME(3)"), ("m", "TIME(3)"), ("d", "DOUBLE")];
    let table = table.map(|(name, data_type)| (name.to_owned(), data_type.to_owned()));
    let typer = RowTyper::new(&schema(&table, &["id".to_owned()]));
    let mut decoder = ChangeFormat::Debezium.decoder(None);
    let found = rows_of(&mut *decoder, &typer, &debezium_insert(&declared, row)).unwrap();
    let time = Datum::Time(45_296_789);
    let expected = vec![Datum::Int32(1), time.clone(), time, Datum::Float64(0.123_456_789_012_3)];
    assert_eq!(found.rows, [(RowKind::Insert, expected)]);
}
