//! `merge-engine = partial-update`.

use super::{Trace, WHOLE, reviewed};

const KAB: &str = "k INT, a INT, b INT";
const GROUPS: &str = "k INT, a STRING, ga INT, b STRING, gb INT";
const PARTIAL: &str = "merge-engine=partial-update";
const LOOKUP: &str = "changelog-producer=lookup";
const GROUP_OPTIONS: &str = "fields.ga.sequence-group=a fields.gb.sequence-group=b";

#[tokio::test]
async fn columns_meet() {
    let mut trace = Trace::new(KAB, &format!("{PARTIAL} {LOOKUP}")).await;
    trace.fill(4000).await;
    trace.commit("+I 1 5 N").await;
    trace.commit("+I 1 N 7").await;
    reviewed("partial_update__lookup__w12", trace).await;
}

#[tokio::test]
async fn deletes_are_refused_when_they_are_written() {
    let mut trace = Trace::new(KAB, &format!("{PARTIAL} {LOOKUP}")).await;
    trace.commit("+I 1 5 7").await;
    trace.write("-D 1 5 7").await.unwrap_err();
    trace.commit("+I 1 6 N").await;
    reviewed("partial_update__lookup__w13_refused_delete", trace).await;
}

#[tokio::test]
async fn sequence_groups() {
    for (name, more) in [
        ("w14_groups", ""),
        ("w14_groups_row_deduplicate", "changelog-producer.row-deduplicate=true"),
    ] {
        let options = format!("{PARTIAL} {LOOKUP} {GROUP_OPTIONS} {WHOLE} {more}");
        let mut trace = Trace::new(GROUPS, &options).await;
        for rows in ["+I 1 x 1 N N", "+I 1 N N y 5", "+I 1 w 0 N N"] {
            trace.commit(rows).await;
        }
        reviewed(&format!("partial_update__lookup__{name}"), trace).await;
    }
}

#[tokio::test]
async fn a_group_removes_a_row() {
    let options = format!("{PARTIAL} {LOOKUP} {GROUP_OPTIONS} partial-update.remove-record-on-sequence-group=ga");
    let steps = ["+I 1 x 1 N N", "+I 1 N N y 5", "-D 1 x 2 N N", "+I 1 N N z 9"];
    let mut trace = Trace::new(GROUPS, &format!("{options} {WHOLE}")).await;
    for rows in steps {
        trace.commit(rows).await;
    }
    reviewed("partial_update__lookup__w15_removed_whole", trace).await;
    let mut trace = Trace::new(GROUPS, &options).await;
    for (filler, rows) in [1600, 400, 100, 0].into_iter().zip(steps) {
        trace.fill(filler).await;
        trace.commit(rows).await;
    }
    reviewed("partial_update__lookup__w15_removed_small", trace).await;
}

#[tokio::test]
async fn a_delete_removes_a_row() {
    let options = format!("{PARTIAL} {LOOKUP} partial-update.remove-record-on-delete=true");
    let steps = ["+I 1 5 7", "-D 1 5 7", "+I 1 N 9"];
    let mut trace = Trace::new(KAB, &format!("{options} {WHOLE}")).await;
    for rows in steps {
        trace.commit(rows).await;
    }
    reviewed("partial_update__lookup__r08_removed_whole", trace).await;
    let mut trace = Trace::new(KAB, &options).await;
    for (filler, rows) in [4000, 400, 0].into_iter().zip(steps) {
        trace.fill(filler).await;
        trace.commit(rows).await;
    }
    reviewed("partial_update__lookup__r08_removed_small", trace).await;
}

#[tokio::test]
async fn full_compactions() {
    let options = "changelog-producer=full-compaction changelog-producer.row-deduplicate=true";
    let mut trace = Trace::new(KAB, &format!("{PARTIAL} {options}")).await;
    for (rows, full) in [
        ("+I 1 5 N", false),
        ("+I 1 N 7", true),
        ("+I 1 5 N", false),
        ("+I 1 N 7", true),
    ] {
        trace.write(rows).await.unwrap();
        if full {
            trace.start_compaction(true).await;
        }
        trace.try_commit(rows, true).await.unwrap();
    }
    reviewed("partial_update__full_compaction__w21", trace).await;
}

#[tokio::test]
async fn nothing_is_told() {
    let mut trace = Trace::new(KAB, PARTIAL).await;
    for rows in ["+I 1 5 N", "+I 1 N 7", "+I 1 N N", "+I 1 N N", "+I 1 N N"] {
        trace.commit(rows).await;
    }
    reviewed("partial_update__none__w33", trace).await;
}

#[tokio::test]
async fn what_was_written_is_told() {
    let mut trace = Trace::new(KAB, &format!("{PARTIAL} changelog-producer=input")).await;
    trace.commit("+I 1 5 N; +I 1 N 7").await;
    trace.compact_fully().await;
    reviewed("partial_update__input__w34", trace).await;
}
