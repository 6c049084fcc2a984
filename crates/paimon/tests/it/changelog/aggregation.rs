//! `merge-engine = aggregation`.

use super::{Trace, WHOLE, reviewed};

const KV: &str = "k INT, v INT";
const SUM: &str = "merge-engine=aggregation fields.v.aggregate-function=sum";
const LOOKUP: &str = "changelog-producer=lookup";

#[tokio::test]
async fn a_sum_is_rewritten_with_what_is_looked_up() {
    let mut trace = Trace::new(KV, &format!("{SUM} {LOOKUP}")).await;
    trace.fill(4000).await;
    trace.commit("+I 1 10").await;
    trace.commit("+I 1 5").await;
    reviewed("aggregation__lookup__example", trace).await;
}

#[tokio::test]
async fn a_sum_on_every_level() {
    let mut trace = Trace::new(KV, &format!("{SUM} {LOOKUP}")).await;
    for (filler, rows) in [(8000, "+I 1 10"), (2000, "+I 1 5"), (500, "-D 1 3"), (0, "+I 2 1")] {
        trace.fill(filler).await;
        trace.commit(rows).await;
    }
    reviewed("aggregation__lookup__w09_four_levels", trace).await;
}

#[tokio::test]
async fn rows_of_level_0_are_told_together() {
    let mut trace = Trace::new(KV, &format!("{SUM} {LOOKUP}")).await;
    trace.commit("+I 1 10").await;
    trace.reopen("write-only=true").await;
    trace.commit("+I 1 1").await;
    trace.commit("+I 1 2").await;
    trace.reopen("write-only=false").await;
    trace.compact_fully().await;
    reviewed("aggregation__lookup__level_0_at_once", trace).await;
}

#[tokio::test]
async fn a_lone_retract() {
    let mut trace = Trace::new(KV, &format!("{SUM} {LOOKUP}")).await;
    trace.commit("-D 1 5").await;
    reviewed("aggregation__lookup__w10_lone_retract", trace).await;
    let mut trace = Trace::new(KV, SUM).await;
    trace.commit("-D 1 5").await;
    reviewed("aggregation__none__w10_lone_retract", trace).await;
}

#[tokio::test]
async fn a_removed_sum_begins_anew() {
    let options = format!("{SUM} {LOOKUP} aggregation.remove-record-on-delete=true");
    let mut trace = Trace::new(KV, &format!("{options} {WHOLE}")).await;
    for rows in ["+I 1 10", "-D 1 10", "+I 1 5"] {
        trace.commit(rows).await;
    }
    reviewed("aggregation__lookup__w11_removed_whole", trace).await;
    let mut trace = Trace::new(KV, &options).await;
    for (filler, rows) in [(4000, "+I 1 10"), (400, "-D 1 10"), (0, "+I 1 5")] {
        trace.fill(filler).await;
        trace.commit(rows).await;
    }
    reviewed("aggregation__lookup__w11_removed_small", trace).await;
    let mut trace = Trace::new(KV, &options).await;
    trace.commit("+I 1 10; -D 1 10; +I 1 5").await;
    reviewed("aggregation__lookup__w11_removed_at_once", trace).await;
}

#[tokio::test]
async fn full_compactions() {
    let mut trace = Trace::new(KV, &format!("{SUM} changelog-producer=full-compaction")).await;
    for (rows, full) in [
        ("+I 1 10", false),
        ("+I 1 5", true),
        ("+I 1 1", false),
        ("-D 1 2", true),
    ] {
        trace.write(rows).await.unwrap();
        if full {
            trace.start_compaction(true).await;
        }
        trace.try_commit(rows, true).await.unwrap();
    }
    reviewed("aggregation__full_compaction__w20", trace).await;
}

#[tokio::test]
async fn deletion_vectors() {
    let options = format!("{SUM} {LOOKUP} deletion-vectors.enabled=true");
    let mut trace = Trace::new(KV, &options).await;
    for (filler, rows) in [
        (4000, "+I 1 111111111; +I 2 2; +I 3 3; +I 4 4"),
        (400, "+I 2 1; +I 3 1"),
        (0, "+I 2 1; +I 4 1"),
    ] {
        trace.fill(filler).await;
        trace.commit(rows).await;
    }
    reviewed("aggregation__lookup__w26_deletion_vectors", trace).await;
}

#[tokio::test]
async fn what_was_written_is_told() {
    for (producer, name) in [("input", "aggregation__input__w35"), ("none", "aggregation__none__w36")] {
        let mut trace = Trace::new(KV, &format!("{SUM} changelog-producer={producer}")).await;
        trace.commit("+I 1 10").await;
        trace.commit("-U 1 10; +U 1 12").await;
        reviewed(name, trace).await;
    }
}
