//! A table in memory, and what each step made of it, as text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, RecordBatch};
use futures::TryStreamExt;
use paimon::format::env::Env;
use paimon::format::kv::{BatchLimit, KeyRange, ReadSpec};
use paimon::format::options::Options;
use paimon::format::types::{Datum, RowKind, array_from_datums, arrow_schema};
use paimon::manifest::manifest::ManifestEntry;
use paimon::manifest::scan::ScanKind;
use paimon::manifest::snapshot::CommitKind;
use paimon::{Context, Error, Snapshot, Table, TableCommit, TableSchema, TableWrite};
use paimon_testkit::print::{self, CompactionLine};
use paimon_testkit::replay::Replay;
use tempfile::TempDir;

use crate::support::datums_of;

/// Keys from here on are filler: wide rows that make files large, and are not printed.
const FILLER: i32 = 1_000_000;

/// A table whose first column, INT, is the key, with an open writer.
pub(crate) struct Trace {
    context: Context,
    table: Table,
    write: TableWrite,
    commit: TableCommit,
    dynamic: Options,
    identifier: i64,
    fillers: i32,
    seen: i64,
    /// The changes of each commit: `-U 1 a; +U 1 b`.
    changes: Vec<String>,
    /// Who follows the changelog, if the producer tells everything.
    reader: Option<Replay>,
    /// Who takes the changes as they were written, if the newest row of a key is its state.
    upserts: Option<BTreeMap<Vec<Datum>, Vec<Datum>>>,
    text: String,
    _temp: TempDir,
}

impl Trace {
    /// `columns`: `k INT, v STRING`; options: `a=1`, one a line or separated by blanks.
    pub(crate) async fn new(columns: &str, options: &str) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let context = Context::new(Env::fixed(temp.path()));
        let mut schema = TableSchema::builder().option("bucket", "1");
        for (at, column) in columns.split(", ").enumerate() {
            let (name, data_type) = column.split_once(' ').unwrap();
            let not_null = if at == 0 { " NOT NULL" } else { "" };
            schema = schema.column(name, format!("{data_type}{not_null}").parse().unwrap());
        }
        let key = columns.split(' ').next().unwrap();
        schema = schema.primary_key([key]);
        let mut text = format!("{columns}\n");
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').unwrap();
            schema = schema.option(name, value);
            let _ = writeln!(text, "{name} = {value}");
        }
        let table = Table::create("memory://traces/t", schema, &context).await.unwrap();
        let producer = table.options().get("changelog-producer").unwrap_or("none").to_owned();
        let tells_all = matches!(producer.as_str(), "lookup" | "full-compaction") && !options.contains("ignore-");
        let is_deduplicate = table
            .options()
            .get("merge-engine")
            .is_none_or(|engine| engine == "deduplicate");
        let takes_upserts = producer == "input" && is_deduplicate && !options.contains("sequence.field");
        let (write, commit) = writer(&table);
        Self {
            context,
            table,
            write,
            commit,
            dynamic: Options::new(),
            identifier: 0,
            fillers: 0,
            seen: 0,
            changes: Vec::new(),
            reader: tells_all.then(Replay::default),
            upserts: takes_upserts.then(BTreeMap::new),
            text,
            _temp: temp,
        }
    }

    fn note(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Puts rows into the writer: `+I 1 a; -D 2 N`; `N` is null.
    pub(crate) async fn write(&mut self, rows: &str) -> Result<(), Error> {
        let rows: Vec<(RowKind, Vec<Datum>)> = rows
            .split(';')
            .map(str::trim)
            .filter(|row| !row.is_empty())
            .map(|row| self.row(row))
            .collect();
        self.write_rows(&rows).await
    }

    fn row(&self, text: &str) -> (RowKind, Vec<Datum>) {
        let mut words = text.split(' ');
        let kind = RowKind::from_short_string(words.next().unwrap()).unwrap();
        let fields = self.table.schema().fields.iter();
        let values = fields.map(|field| match words.next().unwrap() {
            "N" => Datum::Null,
            word => Datum::parse(word, &field.data_type).unwrap(),
        });
        (kind, values.collect())
    }

    async fn write_rows(&mut self, rows: &[(RowKind, Vec<Datum>)]) -> Result<(), Error> {
        let fields = &self.table.schema().fields;
        let columns: Vec<ArrayRef> = fields
            .iter()
            .enumerate()
            .map(|(at, field)| array_from_datums(field, rows.iter().map(|(_, values)| &values[at])).unwrap())
            .collect();
        let batch = RecordBatch::try_new(Arc::new(arrow_schema(fields).unwrap()), columns).unwrap();
        let kinds = Int8Array::from_iter_values(rows.iter().map(|(kind, _)| *kind as i8));
        self.write.write_with_kinds(&batch, &kinds).await
    }

    /// Writes so many rows with keys of their own.
    pub(crate) async fn fill(&mut self, rows: i32) {
        if rows == 0 {
            return;
        }
        let mut seed = 88_172_645_463_325_252_u64;
        let mut random = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        let rows: Vec<(RowKind, Vec<Datum>)> = (0..rows)
            .map(|_| {
                self.fillers += 1;
                let fields = self.table.schema().fields.iter().skip(1);
                let others = fields.map(|field| {
                    let text = match field.data_type.to_string().as_str() {
                        "STRING" => format!("{:016x}{:016x}{:016x}", random(), random(), random()),
                        _ => (random() as i32).to_string(),
                    };
                    Datum::parse(&text, &field.data_type).unwrap()
                });
                let key = Datum::Int32(FILLER + self.fillers);
                (RowKind::Insert, std::iter::once(key).chain(others).collect())
            })
            .collect();
        self.write_rows(&rows).await.unwrap();
    }

    /// Writes rows, commits them and waits; tells what became of them.
    pub(crate) async fn commit(&mut self, rows: &str) {
        self.write(rows).await.unwrap();
        self.try_commit(rows, true).await.unwrap();
    }

    /// Commits what was written.
    pub(crate) async fn try_commit(&mut self, what: &str, wait: bool) -> Result<(), Error> {
        let wait_text = if wait { "" } else { "   (without waiting)" };
        self.note(&format!("\n== {what}{wait_text}"));
        self.identifier += 1;
        let messages = match self.write.prepare_commit(wait).await {
            Ok(messages) => messages,
            Err(error) => {
                self.note(&format!("error: {error}"));
                self.reopen("").await;
                return Err(error);
            }
        };
        self.commit.commit(self.identifier, messages).await?;
        self.tell().await;
        Ok(())
    }

    /// Compacts everything to the top level, and commits.
    pub(crate) async fn compact_fully(&mut self) {
        self.start_compaction(true).await;
        self.try_commit("full compaction", true).await.unwrap();
    }

    /// Starts a compaction, of which the next commit tells.
    pub(crate) async fn start_compaction(&mut self, full: bool) {
        let partition = paimon::format::row::BinaryRow::empty();
        self.write.compact(&partition, 0, full).await.unwrap();
    }

    /// A new writer, with other options.
    pub(crate) async fn reopen(&mut self, options: &str) {
        for option in options.split_whitespace() {
            let (name, value) = option.split_once('=').unwrap();
            self.dynamic.set(name, value);
        }
        let location = self.table.location().to_owned();
        self.table = Table::open(&location, self.dynamic.clone(), &self.context)
            .await
            .unwrap();
        let (write, commit) = writer(&self.table);
        std::mem::replace(&mut self.write, write).abort().await;
        self.commit = commit;
        if !options.is_empty() {
            self.note(&format!("\n== a new writer with {options}"));
        }
    }

    /// Tells of all snapshots since the last time, and checks that the changelog fits the table.
    async fn tell(&mut self) {
        self.changes.push(String::new());
        let store = self.table.snapshot_store().clone();
        let latest = store.latest().await.unwrap().map_or(0, |snapshot| snapshot.id);
        for id in self.seen + 1..=latest {
            let snapshot = store.get(id).await.unwrap();
            let before = match self.seen {
                0 => Vec::new(),
                _ => self.entries(&store.get(id - 1).await.unwrap(), ScanKind::All).await,
            };
            self.seen = id;
            self.tell_snapshot(&snapshot, &before).await;
        }
        let rows = self.rows().await;
        let shown = rows.values().filter(|row| !is_filler(row));
        let fields = &self.table.schema().fields;
        let shown: Vec<String> = shown.map(|row| print::row(fields, row)).collect();
        let levels = self.levels().await;
        self.note(&format!("table: {}", shown.join("; ")));
        self.note(&format!("files: {levels}"));
    }

    async fn tell_snapshot(&mut self, snapshot: &Snapshot, before: &[ManifestEntry]) {
        let after = self.entries(snapshot, ScanKind::All).await;
        let changelog = self.entries(snapshot, ScanKind::Changelog).await;
        let line = files_line(before, &after, changelog.len());
        let what = match snapshot.commit_kind {
            CommitKind::Append => format!("append   files: {}   changelog: {}", line.after.len(), changelog.len()),
            _ => line.text(),
        };
        self.note(&format!("snapshot {}: {what}", snapshot.id));
        for entry in &changelog {
            for (kind, sequence, values) in self.records(entry).await {
                if let Some(upserts) = &mut self.upserts {
                    let key = vec![values[0].clone()];
                    match kind.is_add() {
                        true => upserts.insert(key, values.clone()),
                        false => upserts.remove(&key),
                    };
                }
                if let Some(reader) = &mut self.reader {
                    let fits = reader.apply(kind, vec![values[0].clone()], values.clone());
                    fits.unwrap_or_else(|misfit| panic!("{misfit}\n{}", self.text));
                }
                if !is_filler(&values) {
                    let line = print::record(kind, &self.table.schema().fields, &values, sequence);
                    self.note(&format!("  {line}"));
                    let change = self.stored(kind, &values);
                    if let Some(changes) = self.changes.last_mut() {
                        let separator = if changes.is_empty() { "" } else { "; " };
                        changes.push_str(&format!("{separator}{change}"));
                    }
                }
            }
        }
    }

    /// The rows of the latest snapshot, by key.
    async fn rows(&self) -> BTreeMap<Vec<Datum>, Vec<Datum>> {
        let rows = datums_of(&self.table.read_builder()).await.into_iter();
        rows.map(|row| (vec![row[0].clone()], row)).collect()
    }

    /// `L4 +I 1 a | L5 +I 1 x`: stored rows by level, as far as they are no filler.
    async fn levels(&self) -> String {
        let store = self.table.snapshot_store();
        let Some(snapshot) = store.latest().await.unwrap() else {
            return String::new();
        };
        let mut levels: BTreeMap<i32, Vec<String>> = BTreeMap::new();
        for entry in self.entries(&snapshot, ScanKind::All).await {
            let mut rows = Vec::new();
            for (kind, _, values) in self.records(&entry).await {
                if !is_filler(&values) {
                    rows.push(self.stored(kind, &values));
                }
            }
            let beside = match entry.file.extra_files.len() {
                0 => String::new(),
                files => format!(" with {files} file beside it"),
            };
            let files = levels.entry(entry.file.level).or_default();
            files.push(format!("[{}]{beside}", rows.join("; ")));
        }
        let levels = levels.into_iter().map(|(level, mut files)| {
            files.sort_unstable();
            format!("L{level} {}", files.join(" "))
        });
        levels.collect::<Vec<_>>().join("  ")
    }

    /// `+I 1 a N`.
    fn stored(&self, kind: RowKind, values: &[Datum]) -> String {
        let values: Vec<String> = values.iter().zip(&self.table.schema().fields).map(word).collect();
        format!("{kind} {}", values.join(" "))
    }

    /// The changes of each commit so far: `-U 1 a; +U 1 b`.
    pub(crate) fn changes(&self) -> &[String] {
        &self.changes
    }

    async fn entries(&self, snapshot: &Snapshot, kind: ScanKind) -> Vec<ManifestEntry> {
        let scan = self.table.file_store_scan().unwrap();
        scan.entries(snapshot, kind).await.unwrap()
    }

    async fn records(&self, entry: &ManifestEntry) -> Vec<(RowKind, i64, Vec<Datum>)> {
        let files = self.table.kv_files(&entry.partition, entry.bucket).unwrap();
        let all = ReadSpec {
            schema: Arc::new(self.table.schema().kv_schema().unwrap()),
            keys: KeyRange::default(),
            deleted: None,
            expired_before: None,
            filter: None,
            positions: false,
            batch: BatchLimit::default(),
            window_bytes: 1 << 20,
        };
        let batches: Vec<_> = files.open(&entry.file, all).try_collect().await.unwrap();
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.len()).map(|row| {
                let values = batch.values().iter();
                let values = values.map(|column| Datum::from_array(column, row).unwrap()).collect();
                (batch.kind(row), batch.sequence_numbers()[row], values)
            })
        });
        rows.collect()
    }

    /// Who followed the changelog has the table as it is. (Level 0 must be empty.)
    pub(crate) async fn check(&self) {
        if let Some(reader) = &self.reader {
            assert_eq!(*reader.rows(), self.rows().await, "{}", self.text);
        }
        if let Some(upserts) = &self.upserts {
            assert_eq!(*upserts, self.rows().await, "{}", self.text);
        }
    }

    /// The row on the lowest level above 0 is all there is of its key.
    pub(crate) async fn check_whole_rows(&self) {
        let Some(snapshot) = self.table.snapshot_store().latest().await.unwrap() else {
            return;
        };
        let mut entries = self.entries(&snapshot, ScanKind::All).await;
        entries.sort_by_key(|entry| entry.file.level);
        let mut whole: BTreeMap<Vec<Datum>, (RowKind, Vec<Datum>)> = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.file.level > 0) {
            for (kind, _, values) in self.records(entry).await {
                whole.entry(vec![values[0].clone()]).or_insert((kind, values));
            }
        }
        let adds = whole.into_iter().filter(|(_, (kind, _))| kind.is_add());
        let whole: BTreeMap<_, _> = adds.map(|(key, (_, values))| (key, values)).collect();
        assert_eq!(whole, self.rows().await, "{}", self.text);
    }

    /// The text, at the end.
    pub(crate) async fn end(self) -> String {
        self.write.abort().await;
        self.text
    }
}

fn word((value, field): (&Datum, &paimon::format::types::DataField)) -> String {
    match value {
        Datum::Null => "N".to_owned(),
        value => value.to_text(&field.data_type),
    }
}

fn is_filler(row: &[Datum]) -> bool {
    matches!(row.first(), Some(Datum::Int32(key)) if *key >= FILLER)
}

fn writer(table: &Table) -> (TableWrite, TableCommit) {
    let builder = table.write_builder().commit_user("trace");
    (builder.new_write().unwrap(), builder.new_commit().unwrap())
}

/// Which files went, came, and moved.
fn files_line(before: &[ManifestEntry], after: &[ManifestEntry], changelog: usize) -> CompactionLine {
    let level_in = |entries: &[ManifestEntry], name: &str| {
        let entry = entries.iter().find(|entry| entry.file.file_name == name);
        entry.map(|entry| entry.file.level)
    };
    let mut line = CompactionLine {
        changelog,
        ..CompactionLine::default()
    };
    for entry in before {
        match level_in(after, &entry.file.file_name) {
            None => line.before.push(entry.file.level),
            Some(level) if level != entry.file.level => line.moved.push((entry.file.level, level)),
            Some(_) => {}
        }
    }
    let came = after
        .iter()
        .filter(|entry| level_in(before, &entry.file.file_name).is_none());
    line.after.extend(came.map(|entry| entry.file.level));
    line
}
