//! `paimon ingest`: a bad row is one bad record, a table that cannot be written ends the run, and jobs beside each other get on.

use std::sync::Arc;

use paimon::{Context, ErrorKind, StopSignal, Table};
use paimon_cdc::{ChangeFormat, Evolution, Ingest, IngestSettings, Outcome, Position};
use serde_json::Value;

use crate::support::Shell;

/// Takes lines in by one run; gives what it printed as errors, and its bad records: line and error.
async fn ingest(shell: &Shell, more: &[&str], lines: &[&str]) -> (String, Vec<String>) {
    std::fs::write(shell.dir.path().join("in.jsonl"), lines.join("\n")).unwrap();
    let args = [
        "ingest",
        "@t",
        "--format",
        "json",
        "@in.jsonl",
        "--bad-records",
        "@bad.jsonl",
    ];
    let ran = shell.run(&[args.as_slice(), more].concat()).await;
    let noted = std::fs::read_to_string(shell.dir.path().join("bad.jsonl")).unwrap();
    let noted = noted.lines().map(|line| {
        let note: Value = serde_json::from_str(line).unwrap();
        format!("{}: {}", note["line"], note["error"].as_str().unwrap())
    });
    (ran.err, noted.collect())
}

async fn read(shell: &Shell) -> Vec<String> {
    let read = shell.ok(&["read", "@t", "--output", "csv"]).await;
    read.lines().skip(1).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_row_kind_that_is_none_is_one_bad_record() {
    let shell = Shell::new();
    let options = ["bucket=1", "rowkind.field=op"];
    shell.create_table(&["id INT", "op STRING"], &options).await;
    let (errors, bad) = ingest(
        &shell,
        &["--add-columns"],
        &[
            r#"{"id":1,"op":"+I"}"#,
            r#"{"id":2,"op":"X"}"#,
            r#"{"id":3,"op":"+I"}"#,
            r#"{"id":4}"#,
            r#"{"id":5,"op":"+U","new":"x"}"#,
            r#"{"id":3,"op":"-D"}"#,
        ],
    )
    .await;
    assert_eq!(errors, "");
    assert_eq!(
        bad,
        [
            "2: column op (rowkind.field): the value is \"X\"; expected +I, -U, +U or -D",
            "4: column op (rowkind.field): the value is null; expected +I, -U, +U or -D"
        ]
    );
    assert_eq!(read(&shell).await, ["1,+I,", "5,+U,x"]);
}

/// Each of these rows was let through, and failed all rows that were written with it.
#[tokio::test]
async fn rows_that_cannot_be_written_are_bad_records() {
    let refused = |engine, kind| format!("merge engine {engine} cannot take a {kind} row: ");
    let max = ["merge-engine=aggregation", "fields.v.aggregate-function=max"];
    for (column, options, row, error) in [
        (
            "v INT",
            vec!["merge-engine=first-row"],
            r#""op":"-D""#,
            refused("first-row", "-D"),
        ),
        (
            "v INT",
            vec!["merge-engine=partial-update"],
            r#""op":"-U""#,
            refused("partial-update", "-U"),
        ),
        (
            "v INT",
            max.to_vec(),
            r#""op":"-U","v":1"#,
            refused("aggregation", "-U"),
        ),
        (
            "v INT",
            vec!["merge-engine=first-row", "bucket=-2"],
            r#""op":"-D""#,
            refused("first-row", "-D"),
        ),
        (
            "v MAP<STRING, INT>",
            vec![],
            r#""op":"+I","v":[[null,1]]"#,
            "column v.key is NOT NULL, but value 0 is null".to_owned(),
        ),
        (
            "v ARRAY<INT NOT NULL>",
            vec![],
            r#""op":"+I","v":"[1,null]""#,
            "column v.element is NOT NULL, but value 1 is null".to_owned(),
        ),
    ] {
        let shell = Shell::new();
        let bucket = options.iter().all(|option| !option.starts_with("bucket"));
        let options = options.into_iter().chain(bucket.then_some("bucket=1"));
        let options: Vec<&str> = options.collect();
        shell.create_table(&["id INT", column], &options).await;
        let lines = [
            r#"{"id":1,"op":"+I"}"#.to_owned(),
            format!("{{\"id\":2,{row}}}"),
            r#"{"id":3,"op":"+I"}"#.to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (errors, bad) = ingest(&shell, &["--kind-field", "op"], &lines).await;
        assert_eq!((errors.as_str(), bad.len()), ("", 1), "{column} {options:?}: {bad:?}");
        assert!(
            bad[0].starts_with(&format!("2: {error}")),
            "{column} {options:?}: {bad:?}"
        );
        shell.ok(&["compact", "@t", "--full"]).await;
        assert_eq!(read(&shell).await, ["1,", "3,"], "{column} {options:?}");
    }
}

#[tokio::test]
async fn rows_that_are_left_out_anyway_are_no_bad_records() {
    let shell = Shell::new();
    let options = ["bucket=1", "merge-engine=first-row", "ignore-update-before=true"];
    shell.create_table(&["id INT"], &options).await;
    let lines = [r#"{"id":1,"op":"+I"}"#, r#"{"id":1,"op":"-U"}"#];
    let (errors, bad) = ingest(&shell, &["--kind-field", "op"], &lines).await;
    assert_eq!((errors.as_str(), bad), ("", vec![]));
}

#[tokio::test]
async fn a_partition_without_a_directory_name_is_a_bad_record() {
    let shell = Shell::new();
    let columns = ["--column", "id INT", "--column", "day DATE", "--primary-key", "id,day"];
    let options = [
        "--partition-by",
        "day",
        "-D",
        "bucket=1",
        "-D",
        "partition.legacy-name=false",
    ];
    shell
        .ok(&[&["create", "@t"], columns.as_slice(), &options].concat())
        .await;
    let lines = [r#"{"id":1,"day":"2024-01-01"}"#, r#"{"id":2,"day":5000000}"#];
    let (errors, bad) = ingest(&shell, &[], &lines).await;
    assert_eq!(errors, "");
    assert_eq!(
        bad,
        ["2: partition column 'day': a partition of 15659-07-15: the year in its directory name has four digits"]
    );
    assert_eq!(read(&shell).await, ["1,2024-01-01"]);
}

/// What rows come to together no record can be blamed for: the run ends, and nothing is passed.
#[tokio::test]
async fn a_commit_that_fails_before_columns_are_added_ends_the_run() {
    let columns = ["id INT", "n TINYINT"];
    let options = [
        "bucket=1",
        "merge-engine=aggregation",
        "fields.n.aggregate-function=sum",
    ];
    let shell = Shell::new();
    shell.create_table(&columns, &options).await;
    let lines = [r#"{"id":1,"n":100}"#, r#"{"id":1,"n":100}"#, r#"{"id":2,"new":"x"}"#];
    let (errors, bad) = ingest(&shell, &["--add-columns"], &lines).await;
    assert!(errors.contains("column n: sum overflows TINYINT"), "{errors}");
    assert_eq!(bad, [] as [String; 0]);
    assert_eq!(shell.ok(&["snapshots", "@t", "--json"]).await, "");
}

/// A job of its own beside the commands of a shell.
struct Job {
    ingest: Ingest,
    records: i64,
}

impl Job {
    async fn open(shell: &Shell, format: ChangeFormat) -> Self {
        let path = shell.dir.path().join("t").to_str().unwrap().to_owned();
        let table = Table::open(&path, Default::default(), &Context::new(shell.env.clone()))
            .await
            .unwrap();
        let settings = IngestSettings {
            format,
            kind_field: None,
            commit_user: Some("job".to_owned()),
            evolution: Evolution {
                add_columns: true,
                widen_columns: true,
            },
            stop: StopSignal::never(),
        };
        let ingest = Ingest::open(&table, settings).await.unwrap();
        Self { ingest, records: 0 }
    }

    async fn record(&mut self, record: &str) -> Outcome {
        self.records += 1;
        let position = Position {
            records: self.records,
            input: Arc::from("in"),
            line: 1,
            start: 0,
            end: 0,
            checksum: None,
        };
        self.ingest.record(record.as_bytes(), position).await.unwrap()
    }
}

async fn types(shell: &Shell) -> Vec<String> {
    let schema: Value = serde_json::from_str(&shell.ok(&["schema", "@t", "--json"]).await).unwrap();
    let fields = schema["fields"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    fields
        .map(|field| format!("{} {}", text(&field["name"]), text(&field["type"])))
        .collect()
}

#[tokio::test]
async fn two_jobs_add_columns_that_overlap_in_part() {
    let shell = Shell::new();
    shell.create_table(&["id INT"], &["bucket=1"]).await;
    let mut job = Job::open(&shell, ChangeFormat::Json).await;
    assert_eq!(job.record(r#"{"id":1}"#).await, Outcome::Rows(1));
    let (errors, _) = ingest(&shell, &["--add-columns"], &[r#"{"id":2,"a":"x"}"#]).await;
    assert_eq!(errors, "");
    assert_eq!(job.record(r#"{"id":3,"a":"y","b":"z"}"#).await, Outcome::Rows(1));
    // A change that is refused is the fault of its record alone.
    let refused = job.record(r#"{"id":4,"_VALUE_KIND":"z"}"#).await;
    assert!(
        matches!(&refused, Outcome::Bad(error) if error.to_string().contains("reserved")),
        "{refused:?}"
    );
    assert_eq!(job.record(r#"{"id":5,"a":"y","b":"z"}"#).await, Outcome::Rows(1));
    let counts = job.ingest.finish().await.unwrap();
    assert_eq!((counts.columns_changed, counts.bad), (1, 1));
    assert_eq!(types(&shell).await, ["id INT NOT NULL", "a STRING", "b STRING"]);
    assert_eq!(read(&shell).await, ["1,,", "2,x,", "3,y,z", "5,y,z"]);
}

#[tokio::test]
async fn two_jobs_widen_a_column_to_different_widths() {
    let shell = Shell::new();
    let columns = ["id INT", "s VARCHAR(2)", "n INT"];
    shell.create_table(&columns, &["bucket=1"]).await;
    let record = |id: u32, text: &str, types: &str| {
        format!(r#"{{"type":"INSERT","data":[{{"id":"{id}","s":"{text}","n":"7"}}],"mysqlType":{{{types}}}}}"#)
    };
    let mut job = Job::open(&shell, ChangeFormat::Canal).await;
    let narrow = r#""id":"int","s":"varchar(2)","n":"int""#;
    assert_eq!(job.record(&record(1, "ab", narrow)).await, Outcome::Rows(1));
    let wide = record(2, "abcdefgh", r#""id":"int","s":"varchar(10)","n":"int""#);
    let args = ["ingest", "@t", "--format", "canal-json", "--widen-columns"];
    assert_eq!(shell.run_with_input(&args, &wide).await.err, "");
    // Wider than what this job knows, narrower than what is there.
    let between = r#""id":"int","s":"varchar(5)","n":"bigint""#;
    assert_eq!(job.record(&record(3, "abcde", between)).await, Outcome::Rows(1));
    job.ingest.finish().await.unwrap();
    assert_eq!(types(&shell).await, ["id INT NOT NULL", "s VARCHAR(10)", "n BIGINT"]);
    assert_eq!(read(&shell).await, ["1,ab,7", "2,abcdefgh,7", "3,abcde,7"]);
}

/// Of two jobs that bring new keys into dynamic buckets the second is refused: nobody will ever name its files.
#[tokio::test]
async fn a_commit_that_lost_leaves_no_files() {
    let shell = Shell::new();
    shell.create_table(&["id INT"], &["bucket=-1"]).await;
    let mut job = Job::open(&shell, ChangeFormat::Json).await;
    assert_eq!(job.record(r#"{"id":1}"#).await, Outcome::Rows(1));
    job.ingest.commit(false).await.unwrap();
    let (errors, _) = ingest(&shell, &[], &[r#"{"id":2}"#]).await;
    assert_eq!(errors, "");
    let before = shell.data_files();
    assert_eq!(job.record(r#"{"id":3}"#).await, Outcome::Rows(1));
    let error = job.ingest.commit(false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    job.ingest.abort().await;
    assert_eq!(shell.data_files(), before);
    assert_eq!(read(&shell).await, ["1", "2"]);
}

/// Takes away the files that a job knows.
async fn compact_beside(shell: &Shell) {
    let write = ["write", "@t", "--format", "json", "-D", "write-only=true"];
    assert_eq!(shell.run_with_input(&write, r#"{"id":1,"v":-1}"#).await.code, 0);
    shell.ok(&["compact", "@t", "--full"]).await;
}

#[tokio::test]
async fn a_job_whose_compaction_is_lost_goes_on_behind_its_rows() {
    let shell = Shell::new();
    // All runs are merged whenever there are two.
    let always = "compaction.max-size-amplification-percent=1";
    let options = ["bucket=1", "num-sorted-run.compaction-trigger=2", always];
    shell.create_table(&["id INT", "v INT"], &options).await;
    let mut job = Job::open(&shell, ChangeFormat::Json).await;
    let lost = |job: &Job| {
        let counts = job.ingest.counts();
        let committed = job.ingest.committed().map(|position| position.records);
        (committed, counts.snapshots, counts.compactions_lost)
    };
    assert_eq!(job.record(r#"{"id":1,"v":1}"#).await, Outcome::Rows(1));
    job.ingest.commit(true).await.unwrap();
    assert_eq!(lost(&job), (Some(1), 1, 0));

    // What was compacted in the same commit as the rows.
    compact_beside(&shell).await;
    assert_eq!(job.record(r#"{"id":2,"v":2}"#).await, Outcome::Rows(1));
    let snapshot = job.ingest.commit(true).await.unwrap();
    assert_eq!((snapshot, lost(&job)), (Some(4), (Some(2), 2, 1)));
    let other = Job::open(&shell, ChangeFormat::Json).await.ingest;
    assert_eq!(other.resume_at(), job.ingest.committed());
    other.abort().await;

    // What was begun with a commit, and ended after it.
    assert_eq!(job.record(r#"{"id":3,"v":3}"#).await, Outcome::Rows(1));
    job.ingest.commit(false).await.unwrap();
    assert_eq!(lost(&job), (Some(3), 3, 1));
    compact_beside(&shell).await;
    let counts = job.ingest.finish().await.unwrap();
    assert_eq!((counts.snapshots, counts.compactions_lost), (3, 2));
    assert_eq!(read(&shell).await, ["1,-1", "2,2", "3,3"]);
}
