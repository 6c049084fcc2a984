//! `merge-engine = first-row`.

use super::{Trace, WHOLE, reviewed};

const KV: &str = "k INT, v STRING";
const FIRST_ROW: &str = "merge-engine=first-row";
const LOOKUP: &str = "changelog-producer=lookup";

#[tokio::test]
async fn new_keys_are_told() {
    let steps = ["+I 1 a; +I 2 b", "+I 1 c; +I 3 d", "+I 1 e"];
    let mut trace = Trace::new(KV, &format!("{FIRST_ROW} {LOOKUP} {WHOLE}")).await;
    for rows in steps {
        trace.commit(rows).await;
    }
    reviewed("first_row__lookup__w16_whole", trace).await;
    let mut trace = Trace::new(KV, &format!("{FIRST_ROW} {LOOKUP}")).await;
    for (filler, rows) in [400, 40, 0].into_iter().zip(steps) {
        trace.fill(filler).await;
        trace.commit(rows).await;
    }
    reviewed("first_row__lookup__w16_small", trace).await;
}

#[tokio::test]
async fn nothing_is_told() {
    let mut trace = Trace::new(KV, FIRST_ROW).await;
    trace.commit("+I 1 a; +I 2 b").await;
    trace.commit("+I 1 c; +I 3 d").await;
    reviewed("first_row__none__w17", trace).await;
}

#[tokio::test]
async fn deletes() {
    let mut trace = Trace::new(KV, &format!("{FIRST_ROW} {LOOKUP}")).await;
    trace.write("-D 1 a").await.unwrap_err();
    trace.commit("+I 1 b").await;
    reviewed("first_row__lookup__w18_refused_delete", trace).await;
    let mut trace = Trace::new(KV, &format!("{FIRST_ROW} {LOOKUP} ignore-delete=true")).await;
    trace.commit("-D 1 a; +I 2 b").await;
    reviewed("first_row__lookup__w18_ignored_delete", trace).await;
}

#[tokio::test]
async fn keys_that_an_overwrite_took_are_new_again() {
    let mut trace = Trace::new(KV, &format!("{FIRST_ROW} {LOOKUP}")).await;
    trace.fill(400).await;
    trace.commit("+I 1 a; +I 2 b").await;
    trace.overwrite("+I 1 z").await;
    trace.commit("+I 1 y; +I 2 d").await;
    reviewed("first_row__lookup__w29_overwrite", trace).await;
}
