use super::*;

#[test]
fn everything_that_java_accepts_is_read() {
    for (text, canonical) in [
        ("int not null", "INT NOT NULL"),
        ("INTEGER NULL", "INT"),
        ("numeric", "DECIMAL(10, 0)"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("Decimal( 38 ,38 )NOT NULL", "DECIMAL(38, 38) NOT NULL"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("CHAR", "CHAR(1)"),
        ("VARCHAR", "VARCHAR(1)"),
        ("VARCHAR(2147483647)", "STRING"),
        ("BINARY", "BINARY(1)"),
        ("VARBINARY(2147483647) NOT NULL", "BYTES NOT NULL"),
        ("TIME", "TIME(0)"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME(3)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("TIMESTAMP(9) WITHOUT TIME ZONE NOT NULL", "TIMESTAMP(9) NOT NULL"),
        ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP_LTZ(0)", "TIMESTAMP(0) WITH LOCAL TIME ZONE"),
        ("INT NOT NULL ARRAY", "ARRAY<INT NOT NULL>"),
        ("INT MULTISET NOT NULL", "MULTISET<INT> NOT NULL"),
        ("VECTOR<FLOAT, 7>", "VECTOR<FLOAT, 7>"),
        ("VARIANT", "VARIANT"),
        ("blob", "BLOB"),
        (
            "ROW<a INT, `b c` ARRAY<STRING> COMMENT 'it''s'>",
            "ROW<`a` INT, `b c` ARRAY<STRING> COMMENT 'it''s'>",
        ),
    ] {
        assert_eq!(text.parse::<DataType>().unwrap().to_string(), canonical, "{text}");
    }
}

#[test]
fn errors_point_at_the_place() {
    let message = |text: &str| text.parse::<DataType>().unwrap_err().to_string();
    assert_eq!(message(""), r#"the type "": expected a type, at position 0"#);
    assert_eq!(
        message("INT NOT"),
        r#"the type "INT NOT": expected NULL, at position 7"#
    );
    assert_eq!(message("INT,"), r#"the type "INT,": expected the end, at position 3"#);
    assert_eq!(
        message("DECIMAL(39)"),
        r#"the type "DECIMAL(39)": expected a number from 1 to 38, at position 8"#
    );
    assert_eq!(
        message("DECIMAL(5, 6)"),
        r#"the type "DECIMAL(5, 6)": expected a number from 0 to 5, at position 11"#
    );
    assert_eq!(
        message("VARCHAR(0)"),
        r#"the type "VARCHAR(0)": expected a number from 1 to 2147483647, at position 8"#
    );
    assert_eq!(
        message("TIMESTAMP(99999999999)"),
        r#"the type "TIMESTAMP(99999999999)": expected a number from 0 to 9, at position 10"#
    );
    assert_eq!(
        message("ROW<`a INT>"),
        r#"the type "ROW<`a INT>": a quote without end, at position 4"#
    );
    assert_eq!(
        message("MONEY"),
        r#"not supported: the type MONEY at position 0 of "MONEY""#
    );
    assert!(message(&"ARRAY<".repeat(10_000)).contains("types nested too deep, at position "));
}

#[test]
fn a_row_is_no_atomic_type() {
    assert!(parse_atomic("ROW<a INT>").is_err());
    assert_eq!(parse_atomic("INT ARRAY").unwrap().to_string(), "ARRAY<INT>");
}
