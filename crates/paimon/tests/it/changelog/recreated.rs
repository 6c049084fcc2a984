//! Rows that are deleted and come back, late rows, equal versions: in every mode the changelog is the same.

use super::{Trace, WHOLE, reviewed};

/// Commits each step; `full`: and compacts everything in the same commit. `fresh`: with a new writer a step.
async fn play(trace: &mut Trace, steps: &[(&str, bool)], fresh: bool) {
    for &(rows, full) in steps {
        trace.write(rows).await.unwrap();
        if full {
            trace.start_compaction(true).await;
        }
        trace.try_commit(rows, true).await.unwrap();
        if fresh {
            trace.reopen("").await;
        }
    }
    trace.check().await;
}

#[tokio::test]
async fn a_row_that_comes_back_is_new_in_every_mode() {
    let kab = "k INT, a INT, b INT";
    let row = "+I 1 5 7";
    let engines = [
        ("merge-engine=deduplicate", "+I 1 N 9"),
        ("merge-engine=deduplicate sequence.field=b", "+I 1 N 9"),
        (
            "merge-engine=partial-update partial-update.remove-record-on-delete=true",
            "+I 1 N 9",
        ),
        (
            "merge-engine=partial-update fields.b.sequence-group=a partial-update.remove-record-on-sequence-group=b",
            "+I 1 6 9",
        ),
        (
            "merge-engine=aggregation fields.default-aggregate-function=sum aggregation.remove-record-on-delete=true",
            "+I 1 N 9",
        ),
    ];
    for (engine, again) in engines {
        for producer in [
            "changelog-producer=lookup",
            "changelog-producer=lookup deletion-vectors.enabled=true",
            "changelog-producer=lookup lookup.cache-max-disk-size=1kb",
            "changelog-producer=full-compaction",
        ] {
            for (layout, filler, fresh) in [("", 0, false), ("", 600, false), ("", 600, true), (WHOLE, 0, false)] {
                let options = format!("{engine} {producer} {layout}");
                let mut trace = Trace::new(kab, &options).await;
                trace.fill(filler).await;
                let full = producer.contains("full-compaction");
                play(&mut trace, &[(row, full), ("-D 1 5 7", full), (again, full)], fresh).await;
                let kept = again.replacen("+I", "", 1);
                assert_eq!(
                    trace.changes(),
                    [row, "-D 1 5 7", &format!("+I{kept}")],
                    "{options}, {filler} rows of filler, fresh writers: {fresh}"
                );
                trace.end().await;
            }
        }
    }
}

/// The three options by which a delete removes what is older.
const REMOVING: [&str; 3] = [
    "merge-engine=partial-update partial-update.remove-record-on-delete=true",
    "merge-engine=partial-update fields.b.sequence-group=a partial-update.remove-record-on-sequence-group=b",
    "merge-engine=aggregation fields.a.aggregate-function=sum fields.b.aggregate-function=max aggregation.remove-record-on-delete=true",
];

/// How rows come.
#[derive(Clone, Copy, Debug)]
enum Grouping {
    Batch,
    BatchEach,
    CommitEach,
    /// In one batch that waits for a bucket first, or is merged before it comes to one.
    Through(&'static str),
}

#[tokio::test]
async fn rows_after_a_delete_are_the_same_however_they_come() {
    let rows = [
        "-D 1 100 2",
        "+I 1 7 3",
        "+I 2 4 3",
        "-D 3 1 3",
        "-D 3 1 4",
        "+I 3 5 5",
        "-D 3 5 6",
        "+I 3 N 7",
        "+U 3 6 8",
        "+I 4 1 1",
        "-D 4 1 2",
    ];
    let expected = "1 7 3; 2 4 3; 3 6 8";
    for engine in REMOVING {
        for producer in [
            "none",
            "input",
            "lookup",
            "lookup deletion-vectors.enabled=true",
            "full-compaction",
        ] {
            for grouping in [
                Grouping::Batch,
                Grouping::BatchEach,
                Grouping::CommitEach,
                Grouping::Through("write-buffer-spillable=false"),
                Grouping::Through("local-merge-buffer-size=1mb"),
                Grouping::Through("commit.force-compact=true"),
            ] {
                let more = match grouping {
                    Grouping::Through(option) => option,
                    _ => "",
                };
                let options = format!("{engine} changelog-producer={producer} {more}");
                let mut trace = Trace::new("k INT, a INT, b INT", &options).await;
                trace.commit("+I 1 100 1; +I 3 50 1; +I 4 50 0").await;
                trace.compact_fully().await;
                match grouping {
                    Grouping::Batch | Grouping::Through(_) => trace.commit(&rows.join("; ")).await,
                    Grouping::CommitEach => {
                        for row in rows {
                            trace.commit(row).await;
                        }
                    }
                    Grouping::BatchEach => {
                        for row in rows {
                            trace.write(row).await.unwrap();
                        }
                        trace.try_commit("all", true).await.unwrap();
                    }
                }
                for full in [false, true] {
                    if full {
                        trace.compact_fully().await;
                    }
                    assert_eq!(
                        trace.shown_rows().await,
                        expected,
                        "{options}, {grouping:?}, compacted: {full}"
                    );
                }
                trace.check().await;
                trace.end().await;
            }
        }
    }
}

/// A late delete comes before rows that were written before it.
#[tokio::test]
async fn a_late_delete_removes_what_is_older_than_it() {
    for compacts in [false, true] {
        let options = format!(
            "merge-engine=aggregation fields.a.aggregate-function=sum aggregation.remove-record-on-delete=true sequence.field=b \
             changelog-producer=none write-only={}",
            !compacts
        );
        let mut trace = Trace::new("k INT, a INT, b INT", &options).await;
        trace.commit("+I 1 100 1").await;
        trace.write("+I 1 7 10").await.unwrap();
        trace.write("-D 1 0 5; +I 2 1 1").await.unwrap();
        trace.try_commit("a late delete", true).await.unwrap();
        assert_eq!(trace.shown_rows().await, "1 7 10; 2 1 1", "{options}");
        trace.end().await;
    }
}

#[tokio::test]
async fn a_recreated_row_and_its_update() {
    let steps = [
        ("+I 1 a; +I 2 b", false),
        ("-D 1 a", false),
        ("+I 1 a", false),
        ("+I 1 c", false),
    ];
    let mut reviewed_one = None;
    for vectors in ["true", "false"] {
        for row_deduplicate in ["true", "false"] {
            for fresh in [false, true] {
                let options = format!(
                    "changelog-producer=lookup deletion-vectors.enabled={vectors} \
                     changelog-producer.row-deduplicate={row_deduplicate}"
                );
                let mut trace = Trace::new("k INT, v STRING", &options).await;
                play(&mut trace, &[("+I 1 a; +I 2 b", true)], fresh).await;
                play(&mut trace, &steps[1..], fresh).await;
                let changes = ["+I 1 a; +I 2 b", "-D 1 a", "+I 1 a", "-U 1 a; +U 1 c"];
                assert_eq!(trace.changes(), changes, "{options}, fresh writers: {fresh}");
                reviewed_one = Some(trace);
            }
        }
    }
    reviewed("deduplicate__lookup__r01_recreated", reviewed_one.unwrap()).await;
}

#[tokio::test]
async fn late_equal_and_null_versions() {
    let columns = "k INT, ver INT, v STRING";
    let steps = [
        ("+I 1 5 five; +I 2 1 x", true),
        ("+I 1 3 three", false),
        ("+I 1 5 five-b", false),
        ("+I 1 N nul", false),
        ("+I 1 7 seven; +I 1 6 six", false),
    ];
    let update = ["-U 1 5 five; +U 1 5 five-b", "-U 1 5 five-b; +U 1 7 seven"];
    for vectors in ["true", "false"] {
        for fresh in [false, true] {
            let options = format!("sequence.field=ver changelog-producer=lookup deletion-vectors.enabled={vectors}");
            let mut trace = Trace::new(columns, &format!("{options} changelog-producer.row-deduplicate=true")).await;
            play(&mut trace, &steps, fresh).await;
            trace.compact_fully().await;
            let first = "+I 1 5 five; +I 2 1 x";
            assert_eq!(trace.changes(), [first, "", update[0], "", update[1], ""], "{options}");
            trace.check().await;
            trace.end().await;
            // Without row-deduplicate what was rewritten is told.
            let mut trace = Trace::new(columns, &options).await;
            play(&mut trace, &steps, fresh).await;
            let same = ["-U 1 5 five; +U 1 5 five", "-U 1 5 five-b; +U 1 5 five-b"];
            assert_eq!(
                trace.changes(),
                [first, same[0], update[0], same[1], update[1]],
                "{options}"
            );
            trace.end().await;
        }
    }
}

#[tokio::test]
async fn deletes_have_a_version_too() {
    for vectors in ["true", "false"] {
        let options = format!("sequence.field=ver changelog-producer=lookup deletion-vectors.enabled={vectors}");
        let mut trace = Trace::new("k INT, ver INT, v STRING", &options).await;
        play(
            &mut trace,
            &[("+I 1 -5 neg", true), ("-D 1 -6 old", false), ("-D 1 -5 neg", false)],
            false,
        )
        .await;
        let same = "-U 1 -5 neg; +U 1 -5 neg";
        assert_eq!(trace.changes(), ["+I 1 -5 neg", same, "-D 1 -5 neg"], "{options}");
        trace.end().await;
    }
}
