//! Small tables, and rows as text.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;

use arrow_array::{Array, ArrayRef, Int8Array, Int32Array, RecordBatch, StringArray};
use futures::TryStreamExt;
use paimon::format::env::Env;
use paimon::format::options::Options;
use paimon::format::types::{Datum, RowKind};
use paimon::manifest::scan::{BucketFiles, ScanKind};
use paimon::{Context, ReadBuilder, SchemaBuilder, StopSignal, Table, TableSchema};
use tempfile::TempDir;

/// A folder for tables, and a context whose clock and names are the same in every run.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) context: Context,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let context = Context::new(Env::fixed(dir.path()));
        Self { dir, context }
    }

    /// With the machine's clock, names and threads.
    pub(crate) fn on_threads() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            context: Context::system().unwrap(),
        }
    }

    pub(crate) fn location(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) async fn create(&self, schema: SchemaBuilder) -> Table {
        Table::create(&self.location("t"), schema, &self.context).await.unwrap()
    }
}

/// Copies a folder.
pub(crate) fn copy(source: &Path, target: &Path) {
    std::fs::create_dir_all(target).unwrap();
    for entry in std::fs::read_dir(source).unwrap() {
        let entry = entry.unwrap();
        let target = target.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A copy of a table that Spark wrote.
pub(crate) async fn spark(place: &Place, folder: &str, table: &str) -> Table {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/spark")
        .join(folder);
    let location = place.location(table);
    copy(
        &source.join(format!("warehouse/default.db/{table}")),
        Path::new(&location),
    );
    Table::open(&location, Options::new(), &place.context).await.unwrap()
}

/// `k INT NOT NULL, v STRING`, primary key `k`, one bucket.
pub(crate) fn kv_schema() -> SchemaBuilder {
    TableSchema::builder()
        .column("k", "INT".parse().unwrap())
        .column("v", "STRING".parse().unwrap())
        .primary_key(["k"])
        .option("bucket", "1")
}

/// The same table used with another option.
pub(crate) fn with(table: &Table, key: &str, value: &str) -> Table {
    let options: Options = [(key, value)].into_iter().collect();
    table.with_options(&options).unwrap()
}

/// Rows of [`kv_schema`] with their kinds.
pub(crate) fn kv(rows: &[(&str, i32, &str)]) -> (RecordBatch, Int8Array) {
    let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| row.1)));
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.2)));
    let batch = RecordBatch::try_from_iter([("k", keys), ("v", values)]).unwrap();
    (batch, kinds(rows.iter().map(|row| row.0)))
}

pub(crate) fn kinds<'a>(texts: impl Iterator<Item = &'a str>) -> Int8Array {
    Int8Array::from_iter_values(texts.map(|text| RowKind::from_short_string(text).unwrap() as i8))
}

/// Writes rows and commits them, with a new writer.
pub(crate) async fn commit(table: &Table, rows: &[(&str, i32, &str)]) -> Vec<i64> {
    let (batch, kinds) = kv(rows);
    commit_batch(table, &batch, &kinds).await
}

pub(crate) async fn commit_batch(table: &Table, batch: &RecordBatch, kinds: &Int8Array) -> Vec<i64> {
    let builder = table.write_builder();
    let mut write = builder.new_write().unwrap();
    write.write_with_kinds(batch, kinds).await.unwrap();
    let messages = write.prepare_commit(true).await.unwrap();
    write.abort().await;
    builder.new_commit().unwrap().commit(1, messages).await.unwrap()
}

/// All rows of the latest snapshot, sorted: `1 a`.
pub(crate) async fn rows(table: &Table) -> Vec<String> {
    rows_of(table.read_builder()).await
}

/// All rows of a read, sorted.
pub(crate) async fn rows_of(builder: ReadBuilder) -> Vec<String> {
    let mut rows = try_rows_of(&builder).await.unwrap();
    rows.sort_unstable();
    rows
}

/// All rows of a read, in order.
pub(crate) async fn try_rows_of(builder: &ReadBuilder) -> paimon::Result<Vec<String>> {
    let plan = builder.new_scan().plan().await?;
    let batches: Vec<RecordBatch> = builder.new_read().stream(plan.splits)?.try_collect().await?;
    let fields = builder.fields();
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().zip(fields).map(|(column, field)| {
                if column.is_null(row) {
                    "null".to_owned()
                } else {
                    Datum::from_array(column, row).unwrap().to_text(&field.data_type)
                }
            });
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    Ok(rows)
}

/// All rows of a read, in order, as values.
pub(crate) async fn datums_of(builder: &ReadBuilder) -> Vec<Vec<Datum>> {
    try_datums_of(builder).await.unwrap()
}

/// All rows of a read, in order, as values.
pub(crate) async fn try_datums_of(builder: &ReadBuilder) -> paimon::Result<Vec<Vec<Datum>>> {
    let plan = builder.new_scan().plan().await?;
    let stream = builder.new_read().stream(plan.splits)?;
    let batches: Vec<RecordBatch> = stream.try_collect().await?;
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| {
            let values = batch.columns().iter();
            values.map(|column| Datum::from_array(column, row).unwrap()).collect()
        })
    });
    Ok(rows.collect())
}

/// The buckets of the latest snapshot with their files; none before the first one.
pub(crate) async fn live_buckets(table: &Table) -> Vec<BucketFiles> {
    let Some(snapshot) = table.snapshot_store().latest().await.unwrap() else {
        return Vec::new();
    };
    let scan = table.file_store_scan().unwrap();
    scan.plan(&snapshot, ScanKind::All).await.unwrap().buckets
}

/// Files in the folders of a local table's buckets that no snapshot names.
pub(crate) async fn strays(table: &Table) -> Vec<String> {
    let mut named = BTreeSet::new();
    let scan = table.file_store_scan().unwrap();
    for snapshot in table.snapshots(usize::MAX).await.unwrap() {
        let plan = scan.plan(&snapshot, ScanKind::All).await.unwrap();
        let files = plan.buckets.iter().flat_map(|bucket| &bucket.files);
        named.extend(files.map(|file| file.file_name.clone()));
    }
    let mut strays = Vec::new();
    let mut folders = vec![PathBuf::from(table.location())];
    while let Some(folder) = folders.pop() {
        let is_bucket = folder.file_name().unwrap().to_str().unwrap().starts_with("bucket-");
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            // Folders of partitions, and of buckets.
            if name.contains('=') || name.starts_with("bucket-") {
                folders.push(entry.path());
            } else if is_bucket && !named.contains(&name) {
                strays.push(name);
            }
        }
    }
    strays
}

/// A signal to stop that comes when it is asked for once more than so often.
pub(crate) fn stop_after(polls: usize) -> StopSignal {
    let mut left = polls;
    StopSignal::new(poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }))
}

/// Levels of a table's only bucket, newest run first: `L0:1 L5:3` (level and rows).
pub(crate) async fn shape(table: &Table) -> String {
    let buckets = table
        .buckets(&paimon::TimeTravel::Latest, &paimon::Selection::all())
        .await
        .unwrap();
    let bucket = buckets.iter().map(|bucket| {
        let runs = bucket.runs().iter().map(|run| {
            let rows: i64 = run.run.files().iter().map(|file| file.row_count).sum();
            format!("L{}:{rows}", run.level)
        });
        runs.collect::<Vec<_>>().join(" ")
    });
    bucket.collect::<Vec<_>>().join(" | ")
}

pub(crate) fn only_file(table: &Table, dir: &str, prefix: &str) -> PathBuf {
    let files = std::fs::read_dir(Path::new(table.location()).join(dir)).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.file_name().unwrap().to_str().unwrap().starts_with(prefix));
    files.pop().unwrap()
}
