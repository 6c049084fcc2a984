//! `merge-engine = deduplicate`.

use super::{Trace, WHOLE, reviewed};

const KV: &str = "k INT, v STRING";
const LOOKUP: &str = "changelog-producer=lookup";

/// A table with a row in the top level, under much filler.
async fn small(columns: &str, options: &str, rows: &str) -> Trace {
    let mut trace = Trace::new(columns, options).await;
    trace.fill(400).await;
    trace.commit(rows).await;
    trace
}

fn whole(options: &str) -> String {
    format!("{options} {WHOLE}")
}

#[tokio::test]
async fn an_update_moves_a_file_and_is_told() {
    let mut trace = small("k INT, n STRING, v INT", LOOKUP, "+I 1 a 10").await;
    trace.commit("+I 1 a 20").await;
    reviewed("deduplicate__lookup__example", trace).await;
}

#[tokio::test]
async fn an_update_that_takes_the_top_level_along() {
    let mut trace = Trace::new("k INT, n STRING, v INT", &whole(LOOKUP)).await;
    trace.commit("+I 1 a 10").await;
    trace.commit("+I 1 a 20").await;
    reviewed("deduplicate__lookup__example_whole", trace).await;
}

#[tokio::test]
async fn updates_deletes_and_new_rows() {
    let mut trace = Trace::new(KV, &whole(LOOKUP)).await;
    trace.commit("+I 1 a; +I 2 b").await;
    trace.commit("+U 1 c; -D 2 b; +I 3 d").await;
    reviewed("deduplicate__lookup__w01_whole", trace).await;
}

#[tokio::test]
async fn a_delete_that_is_kept_below_is_no_row() {
    let mut trace = small(KV, LOOKUP, "+I 1 a; +I 2 b").await;
    trace.fill(40).await;
    trace.commit("+U 1 c; -D 2 b; +I 3 d").await;
    trace.commit("+I 2 e").await;
    reviewed("deduplicate__lookup__w02_delete_then_insert", trace).await;
}

#[tokio::test]
async fn deletes_of_what_is_not_there() {
    let mut trace = Trace::new(KV, LOOKUP).await;
    trace.commit("-D 9 x").await;
    trace.commit("+I 1 a; +U 1 b; -D 1 b").await;
    reviewed("deduplicate__lookup__w03_w04_deletes_alone", trace).await;
}

#[tokio::test]
async fn equal_rows_with_and_without_row_deduplicate() {
    for (name, options) in [
        ("w05_equal_rows", LOOKUP.to_owned()),
        (
            "w05_row_deduplicate",
            format!("{LOOKUP} changelog-producer.row-deduplicate=true"),
        ),
    ] {
        let mut trace = Trace::new(KV, &whole(&options)).await;
        trace.commit("+I 1 a").await;
        trace.commit("+I 1 a; +I 2 z").await;
        trace.commit("+I 1 a").await;
        reviewed(&format!("deduplicate__lookup__{name}"), trace).await;
    }
}

#[tokio::test]
async fn a_column_that_does_not_count() {
    let options =
        format!("{LOOKUP} changelog-producer.row-deduplicate=true changelog-producer.row-deduplicate-ignore-fields=ts");
    let mut trace = Trace::new("k INT, v STRING, ts INT", &whole(&options)).await;
    trace.commit("+I 1 a 10").await;
    trace.commit("+I 1 a 20").await;
    trace.commit("+I 1 b 30").await;
    reviewed("deduplicate__lookup__w06_ignored_field", trace).await;
}

#[tokio::test]
async fn late_rows() {
    let columns = "k INT, ts INT, v STRING";
    for (name, options) in [
        ("w07_late", "sequence.field=ts"),
        (
            "w07_late_row_deduplicate",
            "sequence.field=ts changelog-producer.row-deduplicate=true",
        ),
        (
            "w08_descending",
            "sequence.field=ts sequence.field.sort-order=descending",
        ),
    ] {
        let mut trace = small(columns, &format!("{LOOKUP} {options}"), "+I 1 10 a").await;
        trace.commit("+I 1 5 b").await;
        trace.commit("+I 1 N n").await;
        reviewed(&format!("deduplicate__lookup__{name}"), trace).await;
    }
}

#[tokio::test]
async fn gentle_compaction_waits_for_runs() {
    let mut trace = Trace::new(KV, &format!("{LOOKUP} lookup-compact=gentle")).await;
    for value in 1..=5 {
        trace.commit(&format!("+I 1 a{value}")).await;
    }
    reviewed("deduplicate__lookup__w27_gentle", trace).await;
}

#[tokio::test]
async fn a_commit_need_not_wait_for_the_changelog() {
    let mut trace = Trace::new(KV, &format!("{LOOKUP} lookup-wait=false")).await;
    trace.write("+I 1 a").await.unwrap();
    trace.try_commit("+I 1 a", false).await.unwrap();
    trace.try_commit("nothing", true).await.unwrap();
    trace.write("+I 1 b").await.unwrap();
    trace.try_commit("+I 1 b", true).await.unwrap();
    reviewed("deduplicate__lookup__w28_without_waiting", trace).await;
}

#[tokio::test]
async fn writers_that_leave_the_work_to_others() {
    let mut trace = Trace::new(KV, LOOKUP).await;
    trace.reopen("write-only=true").await;
    trace.commit("+I 1 a; +I 2 b").await;
    trace.commit("+U 1 b; -D 2 b").await;
    trace.reopen("write-only=false").await;
    trace.compact_fully().await;
    reviewed("deduplicate__lookup__w30_w32_write_only", trace).await;
}

#[tokio::test]
async fn another_format_is_rewritten() {
    let mut trace = Trace::new(KV, &format!("{LOOKUP} file.format.per.level=0:avro")).await;
    trace.commit("+I 1 a").await;
    trace.commit("+I 1 b").await;
    reviewed("deduplicate__lookup__w31_format_per_level", trace).await;
}

#[tokio::test]
async fn look_ups_without_changelog() {
    let mut trace = small(KV, "force-lookup=true", "+I 1 a").await;
    trace.commit("+I 1 b").await;
    reviewed("deduplicate__none__w38_force_lookup", trace).await;
}

#[tokio::test]
async fn remote_lookup_files() {
    let options = format!("{LOOKUP} lookup.remote-file.enabled=true lookup.remote-file.level-threshold=5");
    let mut trace = small(KV, &options, "+I 1 a").await;
    trace.commit("+I 1 b").await;
    trace.reopen("lookup-wait=true").await;
    trace.commit("+I 1 c").await;
    reviewed("deduplicate__lookup__w39_remote_files", trace).await;
}

#[tokio::test]
async fn full_compactions() {
    let mut trace = Trace::new(KV, "changelog-producer=full-compaction").await;
    for rows in ["+I 1 a; +I 2 b", "+U 1 c; -D 2 b", "+I 2 q; -D 5 z"] {
        trace.write(rows).await.unwrap();
        trace.start_compaction(true).await;
        trace.try_commit(rows, true).await.unwrap();
    }
    reviewed("deduplicate__full_compaction__w19", trace).await;
}

#[tokio::test]
async fn a_compaction_of_all_runs_is_a_full_one() {
    let mut trace = Trace::new(KV, "changelog-producer=full-compaction").await;
    for value in 1..=5 {
        trace.commit(&format!("+I 1 a{value}")).await;
    }
    reviewed("deduplicate__full_compaction__w37", trace).await;
}

#[tokio::test]
async fn what_was_written_is_told() {
    let mut trace = Trace::new(KV, "changelog-producer=input").await;
    trace.commit("+I 2 x; +I 1 a; -U 1 a; +U 1 b; -D 2 x").await;
    reviewed("deduplicate__input__w22", trace).await;
}

#[tokio::test]
async fn nothing_is_told() {
    let mut trace = Trace::new(KV, "changelog-producer=none").await;
    trace.commit("+I 2 x; +I 1 a; -U 1 a; +U 1 b; -D 2 x").await;
    trace.commit("+I 1 c").await;
    reviewed("deduplicate__none__w23", trace).await;
}

#[tokio::test]
async fn deletion_vectors() {
    for (name, options) in [("none__w24", ""), ("lookup__w25", LOOKUP)] {
        let options = format!("deletion-vectors.enabled=true {options}");
        let mut trace = small(KV, &options, "+I 1 a; +I 2 b").await;
        trace.fill(40).await;
        trace.commit("+U 1 c").await;
        trace.commit("-D 2 b").await;
        reviewed(&format!("deduplicate__{name}_deletion_vectors"), trace).await;
    }
}

#[tokio::test]
async fn an_overwrite_is_told_to_nobody() {
    for (name, options) in [
        ("w29_overwrite", ""),
        ("w29_overwrite_deletion_vectors", "deletion-vectors.enabled=true"),
    ] {
        let mut trace = Trace::new(KV, &format!("{LOOKUP} {options}")).await;
        trace.fill(400).await;
        trace.commit("+I 1 a; +I 2 b").await;
        trace.commit("+U 1 c").await;
        trace.overwrite("+I 1 z").await;
        trace.commit("+I 1 y; +I 2 d").await;
        reviewed(&format!("deduplicate__lookup__{name}"), trace).await;
    }
}

#[tokio::test]
async fn many_versions_on_many_levels() {
    let options = format!("{LOOKUP} lookup.merge-records-threshold=3");
    let mut trace = small(KV, &options, "+I 1 5").await;
    for (value, filler) in [(4, 100), (3, 25), (2, 6), (1, 0)] {
        trace.fill(filler).await;
        trace.commit(&format!("+I 1 {value}")).await;
    }
    trace.write("+I 1 0").await.unwrap();
    trace.start_compaction(true).await;
    trace.try_commit("+I 1 0, and a full compaction", true).await.unwrap();
    reviewed("deduplicate__lookup__w40_all_levels", trace).await;
}

#[tokio::test]
async fn changes_that_are_not_wanted() {
    let filter = "changelog-producer.ignore-update-before=true changelog-producer.ignore-delete=true";
    for producer in ["lookup", "full-compaction"] {
        let mut trace = Trace::new(KV, &whole(&format!("changelog-producer={producer} {filter}"))).await;
        for rows in ["+I 1 a; +I 2 b", "+U 1 c; -D 2 b; +I 3 d"] {
            trace.write(rows).await.unwrap();
            trace.start_compaction(true).await;
            trace.try_commit(rows, true).await.unwrap();
        }
        let name = producer.replace('-', "_");
        reviewed(&format!("deduplicate__{name}__filtered"), trace).await;
    }
}
