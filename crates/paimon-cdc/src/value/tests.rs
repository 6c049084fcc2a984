use paimon::format::types::DataType;

use super::*;
use crate::json::parse as parse_json;

/// The value as the command line prints it, or the error.
fn decoded(json: &str, wanted: &str, encoding: &Encoding) -> String {
    let wanted: DataType = wanted.parse().unwrap();
    match decode(&parse_json(json).unwrap(), &wanted, encoding) {
        Ok(value) => value.to_json(&wanted).to_string(),
        Err(error) => format!("error: {error}"),
    }
}

fn names(names: &[&str]) -> std::sync::Arc<[String]> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn values_become_the_columns_type() {
    use Dialect::{Canal, Debezium, Maxwell, Paimon};
    use Encoding::Plain;
    use TimeUnit::{Micro, Milli, Nano};
    let cases = [
        ("null", "INT", Plain(Paimon)),
        ("null", "INT NOT NULL", Plain(Paimon)),
        ("true", "BOOLEAN", Plain(Paimon)),
        ("\"0\"", "BOOLEAN", Plain(Canal)),
        ("2", "BOOLEAN", Plain(Paimon)),
        ("127", "TINYINT", Plain(Paimon)),
        ("128", "TINYINT", Plain(Paimon)),
        ("1.5", "INT", Plain(Paimon)),
        ("true", "SMALLINT", Plain(Paimon)),
        ("9223372036854775808", "BIGINT", Plain(Paimon)),
        ("1e400", "DOUBLE", Plain(Paimon)),
        ("\"NaN\"", "DOUBLE", Plain(Paimon)),
        ("0.1", "FLOAT", Plain(Paimon)),
        ("0.123456789012", "FLOAT", Plain(Paimon)),
        ("\"abc\"", "VARCHAR(2)", Plain(Paimon)),
        ("12.50", "STRING", Plain(Maxwell)),
        ("{ \"b\": 1, \"a\": [true] }", "STRING", Plain(Maxwell)),
        ("[\"a\", \"b\"]", "STRING", Plain(Maxwell)),
        ("[\"a,b\"]", "STRING", Plain(Maxwell)),
        ("[]", "STRING", Plain(Maxwell)),
        ("[\"a\", \"b\"]", "STRING", Plain(Debezium)),
        ("\"2\"", "STRING", Encoding::Enum(names(&["x", "y"]))),
        ("\"0\"", "STRING", Encoding::Enum(names(&["x", "y"]))),
        ("\"3\"", "STRING", Encoding::Enum(names(&["x", "y"]))),
        ("\"y\"", "STRING", Encoding::Enum(names(&["x", "y"]))),
        ("\"2\"", "INT", Encoding::Enum(names(&["x", "y"]))),
        ("\"3\"", "STRING", Encoding::Set(names(&["x", "y"]))),
        ("\"4\"", "STRING", Encoding::Set(names(&["x", "y"]))),
        ("\"2\"", "ARRAY<STRING>", Encoding::Set(names(&["x", "y"]))),
        ("\"AP8=\"", "BYTES", Plain(Debezium)),
        ("\"\u{0}ÿ\"", "BYTES", Plain(Canal)),
        ("\"四\"", "BYTES", Plain(Canal)),
        ("\"00ff\"", "BYTES", Plain(Paimon)),
        ("\"00f\"", "BYTES", Plain(Paimon)),
        ("\"*\"", "BYTES", Plain(Maxwell)),
        ("7", "BYTES", Plain(Maxwell)),
        ("\"AP8=\"", "VARBINARY(1)", Plain(Debezium)),
        ("\"AQI=\"", "BINARY(2)", Encoding::Bits),
        ("\"YWI=\"", "STRING", Encoding::Base64),
        ("\"/w==\"", "STRING", Encoding::Base64),
        ("\"B88=\"", "DECIMAL(10, 2)", Encoding::Decimal { scale: 2 }),
        ("\"/w==\"", "DECIMAL(10, 2)", Encoding::Decimal { scale: 2 }),
        ("\"B88=\"", "STRING", Encoding::Decimal { scale: 2 }),
        ("\"B88=\"", "DECIMAL(3, 2)", Encoding::Decimal { scale: 2 }),
        (
            "\"AQAAAAAAAAAAAAAAAAAAAAA=\"",
            "DECIMAL(38, 0)",
            Encoding::Decimal { scale: 0 },
        ),
        (
            "\"AAAAAAAAAAAAAAAAAAAAAAAB\"",
            "DECIMAL(38, 0)",
            Encoding::Decimal { scale: 0 },
        ),
        ("\"\"", "DECIMAL(38, 0)", Encoding::Decimal { scale: 0 }),
        ("19.99", "DECIMAL(10, 2)", Encoding::Decimal { scale: 2 }),
        (
            "{\"scale\":1,\"value\":\"Dw==\"}",
            "DECIMAL(10, 2)",
            Encoding::VariableDecimal,
        ),
        ("{\"scale\":1,\"value\":\"Dw==\"}", "STRING", Encoding::VariableDecimal),
        ("{\"value\":\"Dw==\"}", "DECIMAL(10, 2)", Encoding::VariableDecimal),
        (
            "12345678901234567890123456789012345678",
            "DECIMAL(38, 0)",
            Plain(Maxwell),
        ),
        ("1e40", "DECIMAL(38, 0)", Plain(Maxwell)),
        ("19782", "DATE", Encoding::EpochDays),
        ("19782", "DATE", Plain(Debezium)),
        ("\"2024-02-29\"", "DATE", Plain(Canal)),
        ("\"2024-02-29Z\"", "DATE", Plain(Debezium)),
        ("\"0000-00-00\"", "DATE", Plain(Canal)),
        ("99999999999", "DATE", Encoding::EpochDays),
        ("86399999000", "TIME(3)", Encoding::TimeOfDay(Micro)),
        ("86400000", "TIME(3)", Encoding::TimeOfDay(Milli)),
        ("-1", "TIME(3)", Encoding::TimeOfDay(Milli)),
        ("1000", "TIME(3)", Plain(Debezium)),
        ("\"-01:00:00\"", "TIME(0)", Plain(Canal)),
        ("\"838:59:59\"", "TIME(0)", Plain(Canal)),
        ("-1", "TIMESTAMP(6)", Encoding::Epoch(Micro)),
        ("1717236000123456789", "TIMESTAMP(9)", Encoding::Epoch(Nano)),
        ("1717236000123", "TIMESTAMP(0)", Plain(Debezium)),
        ("-1", "TIMESTAMP(0)", Plain(Debezium)),
        ("1717236000", "TIMESTAMP(0)", Plain(Paimon)),
        ("9223372036854775807", "TIMESTAMP(9)", Encoding::Epoch(Milli)),
        ("1.5", "TIMESTAMP(3)", Encoding::Epoch(Milli)),
        ("1717236000123", "STRING", Encoding::Epoch(Milli)),
        ("\"2024-06-02T03:46:40.12Z\"", "TIMESTAMP_LTZ(6)", Plain(Debezium)),
        ("\"2024-06-02T03:46:40.12+02:00\"", "TIMESTAMP_LTZ(6)", Plain(Debezium)),
        ("\"2024-06-02T03:46:40.12Z\"", "TIMESTAMP(1)", Plain(Debezium)),
        ("\"2024-06-02 25:00:00\"", "TIMESTAMP(1)", Plain(Debezium)),
        ("[1, null]", "ARRAY<INT>", Plain(Paimon)),
        ("[1, null]", "ARRAY<INT NOT NULL>", Plain(Paimon)),
        ("\"[1, 2]\"", "ARRAY<INT>", Plain(Canal)),
        ("[19782]", "ARRAY<DATE>", Encoding::Array(Box::new(Encoding::EpochDays))),
        ("{\"a\": 1}", "MAP<STRING, INT>", Plain(Paimon)),
        ("[[1, \"x\"]]", "MAP<INT, STRING>", Plain(Paimon)),
        ("[[1]]", "MAP<INT, STRING>", Plain(Paimon)),
        ("[[\"a\", 2]]", "MULTISET<STRING>", Plain(Paimon)),
        ("{\"y\": \"z\", \"x\": 1}", "ROW<x INT, y STRING>", Plain(Paimon)),
        ("{\"z\": 1}", "ROW<x INT, y STRING>", Plain(Paimon)),
        ("{\"x\": \"q\"}", "ROW<x INT, y STRING>", Plain(Paimon)),
        ("[1]", "ROW<x INT, y STRING>", Plain(Paimon)),
        ("{}", "VARIANT", Plain(Paimon)),
        ("[]", "INT", Plain(Paimon)),
    ];
    let lines = cases.map(|(json, wanted, encoding)| {
        // A control character is no JSON, and would make the snapshot a binary file.
        let json = json.replace('\u{0}', "\\u0000");
        let value = decoded(&json, wanted, &encoding);
        format!("{json} as {wanted} by {encoding:?}\n    {value}\n")
    });
    insta::assert_snapshot!(lines.concat());
}
