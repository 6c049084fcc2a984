//! Overwriting, emptying and rescaling.

use serde_json::Value;

use crate::support::Shell;

async fn shell() -> Shell {
    let shell = Shell::new();
    let columns = ["--column", "p STRING", "--column", "k INT", "--column", "v STRING"];
    let keys = ["--primary-key", "p,k", "--partition-by", "p", "-D", "bucket=1"];
    shell.ok(&[&["create", "@t"], columns.as_slice(), &keys].concat()).await;
    write(
        &shell,
        &[],
        "{\"p\":\"a\",\"k\":1,\"v\":\"x\"}\n{\"p\":\"b\",\"k\":2,\"v\":\"x\"}\n{\"p\":\"c\",\"k\":3,\"v\":\"x\"}",
    )
    .await;
    shell
}

async fn write(shell: &Shell, args: &[&str], rows: &str) {
    let ran = shell
        .run_with_input(&[&["write", "@t", "-"], args].concat(), rows)
        .await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
}

async fn rows(shell: &Shell) -> Vec<String> {
    let read = shell.ok(&["read", "@t", "--output", "csv"]).await;
    read.lines().skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn partitions_are_overwritten() {
    let shell = shell().await;
    write(&shell, &["--overwrite"], "{\"p\":\"a\",\"k\":9,\"v\":\"new\"}").await;
    assert_eq!(rows(&shell).await, ["a,9,new", "b,2,x", "c,3,x"]);
    let named = [
        "--overwrite",
        "--partition",
        "p=b",
        "-D",
        "dynamic-partition-overwrite=false",
    ];
    let files = shell.data_files();
    let ran = shell
        .run_with_input(&[&["write", "@t"], named.as_slice()].concat(), "{\"p\":\"c\",\"k\":9}")
        .await;
    assert_eq!(
        ran.err,
        "error: partition p=c was written, but it is not one of those to be overwritten\n"
    );
    assert_eq!(shell.data_files(), files, "nobody will ever name what was written");
    write(&shell, &named, "").await;
    assert_eq!(rows(&shell).await, ["a,9,new", "c,3,x"]);
    let ran = shell.run(&["write", "@t", "--partition", "p=a"]).await;
    assert_eq!(ran.code, 2, "{}", ran.out);
}

#[tokio::test]
async fn partitions_are_dropped_and_tables_emptied() {
    let shell = shell().await;
    assert_eq!(
        shell
            .ok(&["drop-partition", "@t", "--partition", "p=a", "--partition", "p=c"])
            .await,
        "removed 2 records from the files that are read, snapshot 2\n"
    );
    assert_eq!(rows(&shell).await, ["b,2,x"]);
    assert_eq!(shell.run(&["drop-partition", "@t"]).await.code, 2);
    let ran: Value = serde_json::from_str(&shell.ok(&["truncate", "@t", "--json"]).await).unwrap();
    assert_eq!(ran, serde_json::json!({"snapshot": 3, "recordsRemoved": 1}));
    assert_eq!(rows(&shell).await, [] as [&str; 0]);
}

#[tokio::test]
async fn a_table_gets_another_number_of_buckets() {
    let shell = shell().await;
    insta::assert_snapshot!(
        shell
            .ok(&["rescale", "@t", "--buckets", "3", "--partition", "p=b"])
            .await
    );
    let ran = shell.run_with_input(&["write", "@t"], "{\"p\":\"a\",\"k\":7}").await;
    assert!(ran.err.contains("rescale it before writing"), "{}", ran.err);
    let rest: Value = serde_json::from_str(&shell.ok(&["rescale", "@t", "--buckets", "3", "--json"]).await).unwrap();
    let partitions = rest
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["partition"].as_str().unwrap());
    assert_eq!(partitions.collect::<Vec<_>>(), ["p=a", "p=c"]);
    assert_eq!(
        shell.ok(&["rescale", "@t", "--buckets", "3"]).await,
        "nothing to do: all files are in 3 buckets\n"
    );
    write(&shell, &[], "{\"p\":\"a\",\"k\":7,\"v\":\"y\"}").await;
    assert_eq!(rows(&shell).await.len(), 4);
}
