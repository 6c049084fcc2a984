//! Replaying the changelog over nothing gives the table at every snapshot, whatever is committed, compacted, restarted and evicted.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::Trace;

/// Kind, key and values.
type Row = (&'static str, i32, Option<i32>, Option<i32>);

#[derive(Clone, Debug)]
enum Op {
    /// In one commit.
    Commit(Vec<Row>),
    /// The same, and so much filler.
    CommitWide(Vec<Row>, i32),
    /// Two commits of a writer that compacts nothing, then a compaction.
    WriteOnly(Vec<Row>, Vec<Row>),
    FullCompaction,
    Restart,
}

fn text(rows: &[Row]) -> String {
    let number = |value: Option<i32>| value.map_or("N".to_owned(), |value| value.to_string());
    let rows = rows
        .iter()
        .map(|&(kind, key, a, b)| format!("{kind} {key} {} {}", number(a), number(b)));
    rows.collect::<Vec<_>>().join("; ")
}

fn ops(kinds: &'static [&'static str], nulls: bool) -> impl Strategy<Value = Vec<Op>> {
    let value = (0..6i32, 0..5).prop_map(move |(value, null)| (null > 0 || !nulls).then_some(value));
    let row = (prop::sample::select(kinds), 0..6i32, value.clone(), value);
    let rows = prop::collection::vec(row, 1..5);
    let op = prop_oneof![
        5 => rows.clone().prop_map(Op::Commit),
        3 => (rows.clone(), prop::sample::select(vec![30, 300])).prop_map(|(rows, filler)| Op::CommitWide(rows, filler)),
        2 => (rows.clone(), rows).prop_map(|(first, second)| Op::WriteOnly(first, second)),
        1 => Just(Op::FullCompaction),
        2 => Just(Op::Restart),
    ];
    prop::collection::vec(op, 4..12)
}

/// One engine with one producer.
struct Law {
    options: &'static str,
    kinds: &'static [&'static str],
    /// Not where a lone version whose sequence group is null stays in its file as it was written, and is told as it is merged.
    nulls: bool,
    /// A row above level 0 that is not deleted by a vector is whole.
    whole_rows: bool,
    cases: u32,
}

const ADDS: &[&str] = &["+I", "+U"];
const ALL: &[&str] = &["+I", "+I", "+U", "+U", "-U", "-D"];
const INSERTS_AND_DELETES: &[&str] = &["+I", "+I", "+U", "-D"];

impl Law {
    fn check(&self, producer: &str, more: &str) {
        let options = format!("{} changelog-producer={producer} {more}", self.options);
        let config = Config {
            cases: self.cases,
            max_shrink_iters: 200,
            failure_persistence: None,
            ..Config::default()
        };
        let outcome = TestRunner::new(config).run(&ops(self.kinds, self.nulls), |ops| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(self.play(&options, &ops, producer));
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{options}: {error}");
        }
    }

    async fn play(&self, options: &str, ops: &[Op], producer: &str) {
        let is_lookup = producer == "lookup";
        let mut trace = Trace::new("k INT, a INT, b INT", options).await;
        for op in ops {
            match op {
                Op::Commit(rows) => trace.commit(&text(rows)).await,
                Op::CommitWide(rows, filler) => {
                    trace.fill(*filler).await;
                    trace.commit(&text(rows)).await;
                }
                Op::WriteOnly(first, second) => {
                    trace.reopen("write-only=true").await;
                    trace.commit(&text(first)).await;
                    trace.commit(&text(second)).await;
                    trace.reopen("write-only=false").await;
                    if is_lookup {
                        trace.start_compaction(false).await;
                        trace.try_commit("compaction", true).await.unwrap();
                    }
                }
                Op::FullCompaction => trace.compact_fully().await,
                Op::Restart => trace.reopen("").await,
            }
            // A full compaction alone tells what was written since the last one.
            if producer != "full-compaction" || matches!(op, Op::FullCompaction) {
                trace.check().await;
            }
            if is_lookup && self.whole_rows {
                trace.check_whole_rows().await;
            }
        }
        trace.compact_fully().await;
        trace.check().await;
        trace.end().await;
    }
}

/// Every lookup file is evicted by the next one.
const EVICTING: &str = "lookup.cache-max-disk-size=1kb changelog-producer.row-deduplicate=true";

/// With look-ups, a small cache and none; with full compactions.
fn check_all(law: &Law) {
    law.check("lookup", "");
    law.check("lookup", EVICTING);
    law.check("full-compaction", "");
}

const DEDUPLICATE: Law = Law {
    options: "merge-engine=deduplicate",
    kinds: ALL,
    nulls: true,
    whole_rows: true,
    cases: 3,
};

#[test]
fn deduplicate() {
    check_all(&DEDUPLICATE);
    let vectors = Law {
        options: "deletion-vectors.enabled=true",
        whole_rows: false,
        ..DEDUPLICATE
    };
    vectors.check("lookup", "");
    vectors.check("lookup", EVICTING);
    // Lookup files that other writers made.
    DEDUPLICATE.check("lookup", "lookup.remote-file.enabled=true");
    vectors.check("lookup", "lookup.remote-file.enabled=true");
    // What was written, row by row.
    DEDUPLICATE.check("input", "");
    vectors.check("input", "deletion-vectors.merge-on-read=true");
}

#[test]
fn deduplicate_by_sequence() {
    let ascending = Law {
        options: "sequence.field=a",
        ..DEDUPLICATE
    };
    check_all(&ascending);
    let descending = Law {
        options: "sequence.field=b,a sequence.field.sort-order=descending",
        ..DEDUPLICATE
    };
    check_all(&descending);
    let vectors = Law {
        options: "sequence.field=a deletion-vectors.enabled=true",
        whole_rows: false,
        ..DEDUPLICATE
    };
    vectors.check("lookup", "");
}

const PARTIAL_UPDATE: Law = Law {
    options: "merge-engine=partial-update",
    kinds: ADDS,
    ..DEDUPLICATE
};

#[test]
fn partial_update() {
    check_all(&PARTIAL_UPDATE);
    let vectors = Law {
        options: "merge-engine=partial-update deletion-vectors.enabled=true",
        whole_rows: false,
        ..PARTIAL_UPDATE
    };
    vectors.check("lookup", "");
    vectors.check("lookup", EVICTING);
    let groups = Law {
        options: "merge-engine=partial-update fields.b.sequence-group=a fields.a.aggregate-function=sum",
        kinds: ALL,
        nulls: false,
        ..PARTIAL_UPDATE
    };
    check_all(&groups);
    let on_delete = Law {
        options: "merge-engine=partial-update partial-update.remove-record-on-delete=true",
        kinds: INSERTS_AND_DELETES,
        ..PARTIAL_UPDATE
    };
    check_all(&on_delete);
    let on_group = Law {
        options: "merge-engine=partial-update fields.b.sequence-group=a partial-update.remove-record-on-sequence-group=b",
        nulls: false,
        ..on_delete
    };
    check_all(&on_group);
}

#[test]
fn aggregation() {
    let sum = Law {
        options: "merge-engine=aggregation fields.default-aggregate-function=sum",
        kinds: ALL,
        ..DEDUPLICATE
    };
    check_all(&sum);
    let vectors = Law {
        options: "merge-engine=aggregation fields.default-aggregate-function=sum deletion-vectors.enabled=true",
        whole_rows: false,
        ..sum
    };
    vectors.check("lookup", "");
    vectors.check("lookup", EVICTING);
    let on_delete = Law {
        options: "merge-engine=aggregation fields.default-aggregate-function=sum aggregation.remove-record-on-delete=true",
        kinds: INSERTS_AND_DELETES,
        ..DEDUPLICATE
    };
    check_all(&on_delete);
}

#[test]
fn first_row() {
    let law = Law {
        options: "merge-engine=first-row",
        kinds: &["+I"],
        ..DEDUPLICATE
    };
    law.check("lookup", "");
    law.check("lookup", "lookup.cache-max-disk-size=1kb");
    law.check("lookup", "lookup.remote-file.enabled=true");
}
