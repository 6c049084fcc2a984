//! Worked traces of the changelog: what each commit and compaction made of files, changes and rows, one snapshot a case.
//!
//! Two layouts of the same steps differ. *Small*: level 0 is much smaller than the top level, which has wide filler rows, and goes to the
//! level above it. *Whole*: `compaction.size-ratio` is so large that level 0 takes the top level along.

#![expect(clippy::future_not_send, reason = "a trace runs on the thread of its test")]

mod aggregation;
mod deduplicate;
mod first_row;
mod laws;
mod partial_update;
mod recreated;
mod trace;

use trace::Trace;

/// Makes level 0 take the top level along.
const WHOLE: &str = "compaction.size-ratio=1000";

/// The trace as it was reviewed. Its changelog, replayed, is the table.
async fn reviewed(name: &str, trace: Trace) {
    trace.check().await;
    let text = trace.end().await;
    insta::with_settings!({snapshot_path => "../snapshots", prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}
