//! Tables whose changes are known, and changes as text.

use std::sync::Arc;

use arrow_array::Array;
use futures::TryStreamExt;
use paimon::format::meta::CommitMessage;
use paimon::format::options::Options;
use paimon::format::types::Datum;
use paimon::{ChangelogBatch, ChangelogBuilder, StreamStart, Table, TableStream};

use crate::support::{Place, commit, kv, kv_schema};

/// Rows with their kinds.
pub(crate) type Rows<'a> = &'a [(&'a str, i32, &'a str)];

/// Batches as text: `3 +U 1 c`, snapshot, kind and values.
pub(crate) fn text(batch: &ChangelogBatch) -> Vec<String> {
    let kinds = batch.row_kinds().enumerate();
    kinds
        .map(|(row, kind)| {
            let values = batch.columns.columns().iter().map(|column| match column.is_null(row) {
                true => "null".to_owned(),
                false => match Datum::from_array(column, row).unwrap() {
                    Datum::Int32(value) => value.to_string(),
                    other => other.to_text(&"STRING".parse().unwrap()),
                },
            });
            let values: Vec<String> = values.collect();
            format!("{} {kind} {}", batch.snapshot_id, values.join(" "))
        })
        .collect()
}

/// All that is there now.
pub(crate) async fn available(stream: &mut TableStream) -> Vec<String> {
    let mut rows = Vec::new();
    while let Some(batch) = stream.next_available().await.unwrap() {
        rows.extend(text(&batch));
    }
    rows
}

/// A stream of all columns.
pub(crate) async fn stream_from(table: &Table, start: StreamStart) -> TableStream {
    table.changelog_builder().start(start).stream().await.unwrap()
}

/// All changes from a start on that are there now.
pub(crate) async fn changes_from(table: &Table, start: StreamStart) -> Vec<String> {
    available(&mut stream_from(table, start).await).await
}

/// Why a table's changes cannot be followed as its options say.
pub(crate) async fn refused(table: &Table) -> String {
    table.changelog_builder().stream().await.unwrap_err().to_string()
}

/// Makes a tag of a snapshot.
pub(crate) async fn tag(table: &Table, name: &str, id: i64) {
    let storage = table.storage();
    let json = storage.read_all(&format!("snapshot/snapshot-{id}")).await.unwrap();
    storage.put(&format!("tag/tag-{name}"), json).await.unwrap();
}

/// Takes snapshots away.
pub(crate) async fn expire(table: &Table, ids: impl IntoIterator<Item = i64>) {
    for id in ids {
        table
            .storage()
            .delete(&format!("snapshot/snapshot-{id}"))
            .await
            .unwrap();
    }
}

/// All changes between two states, or the error.
pub(crate) async fn between(builder: ChangelogBuilder) -> Result<Vec<String>, String> {
    let batches = builder.read_between().map_err(|error| error.to_string())?;
    let batches: Vec<ChangelogBatch> = batches.try_collect().await.map_err(|error| error.to_string())?;
    Ok(batches.iter().flat_map(text).collect())
}

/// Four snapshots: two of writes, a full compaction, a delete.
pub(crate) async fn delta_table(place: &Place) -> Table {
    let table = place.create(kv_schema()).await;
    commit(&table, &[("+I", 1, "a"), ("+I", 2, "b")]).await;
    commit(&table, &[("+U", 1, "c"), ("+I", 3, "d")]).await;
    table.compact_builder().full(true).run().await.unwrap();
    commit(&table, &[("-D", 2, "b")]).await;
    table
}

/// The same table, with further options.
pub(crate) fn with(table: &Table, options: &[(&str, &str)]) -> Table {
    table
        .with_options(&options.iter().copied().collect::<Options>())
        .unwrap()
}

/// Files with these rows, not committed.
pub(crate) async fn files(table: &Table, rows: Rows<'_>) -> Vec<CommitMessage> {
    let (batch, kinds) = kv(rows);
    let mut write = table.write_builder().new_write().unwrap();
    write.write_with_kinds(&batch, &kinds).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    write.abort().await;
    messages
}

/// Commits rows with a changelog made by hand: as of a flush.
pub(crate) async fn commit_with_changelog(table: &Table, rows: Rows<'_>, changelog: Rows<'_>) {
    let mut messages = files(table, rows).await;
    let changes = files(table, changelog).await;
    messages[0].increment.data.changelog_files = changes[0].increment.data.new_files.clone();
    let commit = table.write_builder().new_commit().unwrap();
    commit.commit(1, messages).await.unwrap();
}

/// Commits a compaction of all files into one of `level`, with a changelog made by hand.
pub(crate) async fn compact_with_changelog(table: &Table, level: i32, merged: Rows<'_>, changelog: Rows<'_>) {
    let buckets = table
        .buckets(&paimon::TimeTravel::Latest, &paimon::Selection::all())
        .await
        .unwrap();
    let mut messages = files(table, merged).await;
    let changes = files(table, changelog).await;
    let message = &mut messages[0];
    let mut after = paimon::format::meta::DataFileMeta::clone(&message.increment.data.new_files[0]);
    after.level = level;
    message.increment.data.new_files.clear();
    message.increment.compact.compact_before = buckets[0].levels().all_files();
    message.increment.compact.compact_after = vec![Arc::new(after)];
    message.increment.compact.changelog_files = changes[0].increment.data.new_files.clone();
    let commit = table.write_builder().new_commit().unwrap();
    commit.commit(2, messages).await.unwrap();
}
