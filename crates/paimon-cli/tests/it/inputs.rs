//! What `write` reads.

use crate::support::Shell;

#[tokio::test]
async fn csv_has_a_header_and_a_text_for_null() {
    let shell = Shell::new();
    shell.create().await;
    let csv = "city;op;id;amount\n\"a;b\";+I;1;2.50\n-;+I;2;-\nx;-D;1;\n";
    std::fs::write(shell.dir.path().join("in.csv"), csv).unwrap();
    let args = [
        "write",
        "@t",
        "@in.csv",
        "--kind-field",
        "op",
        "--delimiter",
        ";",
        "--null",
        "-",
    ];
    let ran = shell.run(&args).await;
    assert_eq!(
        ran.err,
        "error: DIR/in.csv, line 4: column amount: \"\" is no value of DECIMAL(10, 2)\n"
    );
    std::fs::write(shell.dir.path().join("in.csv"), csv.replace("x;-D;1;", "x;-D;1;-")).unwrap();
    shell.ok(&args).await;
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n2,,\n"
    );
}

#[tokio::test]
async fn parquet_goes_in_as_it_is() {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Decimal128Array, Int32Array, RecordBatch, StringArray};

    let shell = Shell::new();
    shell.create().await;
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int32Array::from(vec![1, 2]))),
        ("city", Arc::new(StringArray::from(vec!["Brno", "Graz"]))),
        (
            "amount",
            Arc::new(
                Decimal128Array::from(vec![150, 2500])
                    .with_precision_and_scale(5, 2)
                    .unwrap(),
            ),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(shell.dir.path().join("in.parquet")).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    shell.ok(&["write", "@t", "@in.parquet"]).await;
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n1,Brno,1.50\n2,Graz,25.00\n"
    );
}

#[tokio::test]
async fn json_rows_are_objects_or_arrays_and_commits_can_be_named() {
    let shell = Shell::new();
    shell.create().await;
    let lines = "[\"+I\", 1, \"a\", \"1.00\"]\n\n{\"id\": 2, \"city\": null, \"amount\": 3}\n[\"-D\", 1, null, null]\n";
    let args = ["write", "@t", "--commit-user", "loader", "--identifier", "7"];
    assert!(
        shell
            .run_with_input(&args, lines)
            .await
            .out
            .starts_with("wrote 3 rows in 1 file (")
    );
    let again = shell.run_with_input(&args, lines).await;
    assert_eq!(
        (again.code, again.out.as_str()),
        (0, "nothing to do: these commits are in the table already\n")
    );
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n2,,3.00\n"
    );
    assert_eq!(
        shell.run_with_input(&["write", "@t"], "").await.out,
        "nothing to do: no rows\n"
    );
}

#[tokio::test]
async fn bare_numbers_keep_their_digits() {
    let shell = Shell::new();
    let columns = ["id INT", "exact DECIMAL(38, 10)", "many ARRAY<DECIMAL(20, 2)>"];
    shell.create_table(&columns, &["bucket=1"]).await;
    let line = "{\"id\": -0, \"exact\": 1234567890123456789012345678.0123456789, \"many\": [900719925474099301.01]}\n";
    let ran = shell.run_with_input(&["write", "@t"], line).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,exact,many\n0,1234567890123456789012345678.0123456789,\"[\"\"900719925474099301.01\"\"]\"\n"
    );
}

#[tokio::test]
async fn every_type_goes_in_and_comes_out_as_it_was() {
    let shell = Shell::new();
    let columns = [
        ("id", "INT", "1"),
        ("b", "BOOLEAN", "true"),
        ("i8", "TINYINT", "-8"),
        ("i16", "SMALLINT", "-16"),
        ("i64", "BIGINT", "9223372036854775807"),
        ("f", "FLOAT", "0.1"),
        ("d", "DOUBLE", "\"NaN\""),
        ("c", "CHAR(3)", "\"ab\""),
        ("s", "STRING", "\"žluť\\n馬\""),
        ("bin", "BYTES", "\"00ff\""),
        ("dec", "DECIMAL(38, 10)", "\"1234567890123456789012345678.0123456789\""),
        ("dt", "DATE", "\"1969-12-31\""),
        ("tm", "TIME(3)", "\"23:59:59.999\""),
        ("t0", "TIMESTAMP(0)", "\"2024-02-29 10:30:00\""),
        ("t6", "TIMESTAMP(6)", "\"2024-02-29 10:30:00.000001\""),
        ("t9", "TIMESTAMP(9)", "\"2024-02-29 10:30:00.000000001\""),
        (
            "tz",
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            "\"2024-02-29 10:30:00.120Z\"",
        ),
        ("arr", "ARRAY<INT>", "[1,null,3]"),
        ("map", "MAP<STRING, INT>", "[[\"a\",1],[\"b\",null]]"),
        ("row", "ROW<x INT, y STRING>", "[1,\"z\"]"),
        ("none", "STRING", "null"),
    ];
    let named = columns.map(|(name, data_type, _)| format!("{name} {data_type}"));
    shell
        .create_table(&named.each_ref().map(String::as_str), &["bucket=1"])
        .await;
    let fields: Vec<String> = columns
        .iter()
        .map(|(name, _, value)| format!("\"{name}\":{value}"))
        .collect();
    let line = format!("{{{}}}\n", fields.join(","));
    let ran = shell.run_with_input(&["write", "@t"], &line).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let read: serde_json::Value = serde_json::from_str(&shell.ok(&["read", "@t", "--json"]).await).unwrap();
    assert_eq!(read, serde_json::from_str::<serde_json::Value>(&line).unwrap());
    shell.ok(&["compact", "@t", "--full"]).await;
    let read: serde_json::Value = serde_json::from_str(&shell.ok(&["read", "@t", "--json"]).await).unwrap();
    assert_eq!(read, serde_json::from_str::<serde_json::Value>(&line).unwrap());
}

/// A job that is started again after its commits, in a table that it compacts: what it wrote again is thrown away, and not looked for.
#[tokio::test]
async fn named_commits_may_all_be_repeated() {
    let shell = Shell::new();
    shell.create_table(&["id INT", "v STRING"], &["bucket=1"]).await;
    // A commit for every batch that is read: enough files to be compacted.
    let count = 7 * 8192;
    let lines: String = (0..count)
        .map(|id| format!("{{\"id\":{id},\"v\":\"{id}\"}}\n"))
        .collect();
    let write = [
        "write",
        "@t",
        "-",
        "--commit-user",
        "job",
        "--identifier",
        "1",
        "--commit-every",
        "1",
    ];
    for _ in 0..2 {
        let ran = shell.run_with_input(&write, &lines).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{}", ran.out);
    }
    let rows = shell.ok(&["read", "@t", "--output", "csv"]).await;
    assert_eq!(rows.lines().count(), 1 + count);
}

/// Files of some editors begin with a byte order mark; `+i` is `+I`, as in the reference.
#[tokio::test]
async fn a_byte_order_mark_is_passed_and_kinds_may_be_in_lower_case() {
    let bom = "\u{feff}";
    for (name, text) in [
        ("in.jsonl", "{\"op\":\"+i\",\"id\":1}\n{\"op\":\"-d\",\"id\":2}\n"),
        ("in.csv", "op,id\n+u,1\n-D,2\n"),
    ] {
        let shell = Shell::new();
        shell.create().await;
        std::fs::write(shell.dir.path().join(name), format!("{bom}{text}")).unwrap();
        shell
            .ok(&["write", "@t", &format!("@{name}"), "--kind-field", "op"])
            .await;
        let rows = shell.ok(&["read", "@t", "--output", "csv"]).await;
        assert_eq!(rows, "id,city,amount\n1,,\n", "{name}");
    }
    let shell = Shell::new();
    shell.create().await;
    let ran = shell
        .run_with_input(&["write", "@t"], &format!("{{\"id\":1}}\n{bom}{{\"id\":2}}\n"))
        .await;
    assert_eq!(
        ran.err,
        "error: standard input, line 2: no JSON: expected a value at byte 1\n"
    );
}

#[tokio::test]
async fn what_is_read_of_a_float_can_be_written() {
    let shell = Shell::new();
    shell.create_table(&["id INT", "f FLOAT"], &["bucket=1"]).await;
    let lines = "{\"id\":1,\"f\":1.4e-45}\n{\"id\":2,\"f\":-3.4028235e38}\n";
    assert_eq!(shell.run_with_input(&["write", "@t"], lines).await.err, "");
    let read = shell.ok(&["read", "@t", "--json"]).await;
    assert_eq!(read, "{\"id\":1,\"f\":1e-45}\n{\"id\":2,\"f\":-3.4028235e+38}\n");
    assert_eq!(shell.run_with_input(&["write", "@t"], &read).await.err, "");
    assert_eq!(shell.ok(&["read", "@t", "--json"]).await, read);
}

#[tokio::test]
async fn commits_are_not_numbered_beyond_the_last_number() {
    let shell = Shell::new();
    shell.create().await;
    let write = |first: i64, lines: &'static str| {
        let first = first.to_string();
        let shell = &shell;
        async move {
            let args = [
                "write",
                "@t",
                "--commit-user",
                "u",
                "--commit-every",
                "1",
                "--identifier",
                &first,
            ];
            shell.run_with_input(&args, lines).await
        }
    };
    let refused = write(i64::MAX, "{\"id\":1}\n").await;
    assert_eq!(
        refused.err,
        "error: --identifier: commits are numbered up to 9223372036854775806, no further\n"
    );
    assert!(!shell.dir.path().join("t/snapshot").exists());
    assert_eq!(write(i64::MAX - 1, "{\"id\":1}\n").await.err, "");
    assert_eq!(
        shell.ok(&["read", "@t", "--output", "csv"]).await,
        "id,city,amount\n1,,\n"
    );
}
