//! A table that is only ever written write-only, and whose reads do not see level 0: the compaction job must.

use serde_json::Value;

use crate::support::Shell;

async fn json(shell: &Shell, args: &[&str]) -> Vec<Value> {
    let text = shell.ok(&[args, &["--json"]].concat()).await;
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn rows(shell: &Shell) -> Vec<String> {
    let mut rows: Vec<String> = json(shell, &["read", "@t"])
        .await
        .iter()
        .map(|row| format!("{} {}", row["k"], row["v"].as_str().unwrap()))
        .collect();
    rows.sort_unstable();
    rows
}

#[tokio::test]
async fn the_job_compacts_what_reads_do_not_see() {
    for (option, expected) in [
        ("deletion-vectors.enabled=true", ["1 c", "2 b", "3 d"]),
        ("merge-engine=first-row", ["1 a", "2 b", "3 d"]),
    ] {
        let shell = Shell::new();
        let options = ["bucket=1", "write-only=true", option];
        shell.create_table(&["k INT", "v STRING"], &options).await;
        for lines in [
            "{\"k\":1,\"v\":\"a\"}\n{\"k\":2,\"v\":\"b\"}",
            "{\"k\":1,\"v\":\"c\"}\n{\"k\":3,\"v\":\"d\"}",
        ] {
            let ran = shell.run_with_input(&["write", "@t", "--format", "json"], lines).await;
            assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        }
        assert_eq!(rows(&shell).await, [""; 0], "{option}");
        let levels: Vec<i64> = json(&shell, &["files", "@t"])
            .await
            .iter()
            .map(|file| file["level"].as_i64().unwrap())
            .collect();
        assert_eq!(levels, [0, 0], "{option}");

        let compact = ["compact", "@t", "--full"];
        let dry = json(&shell, &[compact.as_slice(), &["--dry-run"]].concat()).await;
        assert_eq!(
            (&dry[0]["result"], &dry[0]["filesIn"]),
            (&"dry run".into(), &2.into()),
            "{option}"
        );
        assert_eq!(dry[0]["buckets"].as_array().unwrap().len(), 1, "{option}");
        assert_eq!(json(&shell, &["snapshots", "@t"]).await.len(), 2, "{option}");

        let done = json(&shell, &compact).await;
        let of = |name: &str| done[0][name].as_u64().unwrap();
        assert_eq!(
            (&done[0]["result"], of("filesIn"), of("filesOut")),
            (&"done".into(), 2, 1),
            "{option}"
        );
        assert!(of("bytesIn") > 0 && of("bytesOut") > 0, "{option}");
        let snapshots = json(&shell, &["snapshots", "@t"]).await;
        assert_eq!(
            (snapshots.len(), &snapshots[0]["commitKind"]),
            (3, &"COMPACT".into()),
            "{option}"
        );
        assert_eq!(rows(&shell).await, expected, "{option}");
        let files = json(&shell, &["files", "@t"]).await;
        assert_eq!(
            (files.len(), &files[0]["level"], &files[0]["rows"]),
            (1, &5.into(), &3.into()),
            "{option}"
        );

        let again = json(&shell, &compact).await;
        assert_eq!(again[0]["result"], "nothing to do", "{option}");
        assert_eq!(json(&shell, &["snapshots", "@t"]).await.len(), 3, "{option}");
    }
}
