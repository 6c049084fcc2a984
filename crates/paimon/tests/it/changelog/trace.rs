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
use paimon::{
    Context, Error, Selection, Snapshot, StreamStart, Table, TableCommit, TableSchema, TableStream, TableWrite,
};
use paimon_testkit::print::{self, CompactionLine};
use paimon_testkit::replay::Replay;
use tempfile::TempDir;

use crate::support::try_datums_of;

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
    /// Who follows the table through the public API, from its first snapshot on.
    stream: TableStream,
    /// Without a producer the stream tells what was written, and is printed; otherwise it must give the changelog.
    prints_stream: bool,
    /// Reads do not see level 0.
    hides_level_0: bool,
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
        let hides_level_0 = options.contains("deletion-vectors.enabled=true") || options.contains("first-row");
        let start = table.changelog_builder().start(StreamStart::earliest());
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
            stream: start.stream().await.unwrap(),
            prints_stream: producer == "none",
            hides_level_0,
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

    /// Replaces the whole table by these rows. Who follows the changelog is not told, and begins anew.
    pub(crate) async fn overwrite(&mut self, rows: &str) {
        let builder = self
            .table
            .write_builder()
            .commit_user("trace")
            .overwrite(Selection::all());
        self.commit = builder.new_commit().unwrap();
        let write = builder.new_write().unwrap();
        std::mem::replace(&mut self.write, write).abort().await;
        self.write(rows).await.unwrap();
        self.try_commit(&format!("overwrite with {rows}"), true).await.unwrap();
        self.reopen("").await;
        let state = self.rows().await;
        if let Some(reader) = &mut self.reader {
            *reader = Replay::default();
            for (key, row) in &state {
                reader.apply(RowKind::Insert, key.clone(), row.clone()).unwrap();
            }
        }
        if let Some(upserts) = &mut self.upserts {
            *upserts = state;
        }
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
        let mut told = Vec::new();
        let store = self.table.snapshot_store().clone();
        let latest = store.latest().await.unwrap().map_or(0, |snapshot| snapshot.id);
        for id in self.seen + 1..=latest {
            let snapshot = store.get(id).await.unwrap();
            let before = match self.seen {
                0 => Vec::new(),
                _ => self.entries(&store.get(id - 1).await.unwrap(), ScanKind::All).await,
            };
            if snapshot.commit_kind == CommitKind::Append && self.seen > 0 {
                let before = store.get(id - 1).await.unwrap().index_manifest;
                assert_eq!(
                    snapshot.index_manifest, before,
                    "deletion vectors come with what replaces the rows"
                );
            }
            self.seen = id;
            told.extend(self.tell_snapshot(&snapshot, &before).await);
            if self.hides_level_0 && id < latest {
                let then = self
                    .table
                    .with_options(&[("scan.snapshot-id", id.to_string())].into_iter().collect());
                let rows = self.shown(&then.unwrap()).await;
                self.note(&format!("  read: {rows}"));
            }
        }
        self.follow(told).await;
        let rows = self.shown(&self.table).await;
        let levels = self.levels().await;
        self.note(&format!("table: {rows}"));
        self.note(&format!("files: {levels}"));
    }

    /// The rows of a read that are no filler, or why there are none.
    async fn shown(&self, table: &Table) -> String {
        let mut rows = match try_datums_of(&table.read_builder()).await {
            Ok(rows) => rows,
            Err(error) => return format!("error: {error}"),
        };
        rows.sort_unstable();
        let shown = rows.iter().filter(|row| !is_filler(row));
        let fields = &self.table.schema().fields;
        shown.map(|row| print::row(fields, row)).collect::<Vec<_>>().join("; ")
    }

    /// A stream of the table gives what was told, in the same order; without a producer, what was written.
    async fn follow(&mut self, told: Vec<(RowKind, Vec<Datum>)>) {
        let mut streamed = Vec::new();
        while let Some(batch) = self.stream.next_available().await.unwrap() {
            for (row, kind) in batch.row_kinds().enumerate() {
                let values = batch.columns.columns().iter();
                let values = values.map(|column| Datum::from_array(column, row).unwrap());
                streamed.push((kind, values.collect::<Vec<_>>()));
            }
        }
        if !self.prints_stream {
            assert_eq!(streamed, told, "{}", self.text);
            return;
        }
        let shown = streamed.iter().filter(|(_, values)| !is_filler(values));
        let shown: Vec<String> = shown.map(|(kind, values)| self.stored(*kind, values)).collect();
        self.note(&format!("stream: {}", shown.join("; ")));
    }

    /// Returns the changelog rows.
    async fn tell_snapshot(&mut self, snapshot: &Snapshot, before: &[ManifestEntry]) -> Vec<(RowKind, Vec<Datum>)> {
        let mut told = Vec::new();
        let after = self.entries(snapshot, ScanKind::All).await;
        let changelog = self.entries(snapshot, ScanKind::Changelog).await;
        let line = files_line(before, &after, changelog.len());
        let what = match snapshot.commit_kind {
            CommitKind::Append => format!("append   files: {}   changelog: {}", line.after.len(), changelog.len()),
            CommitKind::Overwrite => line.text().replacen("compact", "overwrite", 1),
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
                told.push((kind, values));
            }
        }
        told
    }

    /// The rows of the latest snapshot, by key.
    async fn rows(&self) -> BTreeMap<Vec<Datum>, Vec<Datum>> {
        let rows = try_datums_of(&self.table.read_builder()).await.unwrap();
        rows.into_iter().map(|row| (vec![row[0].clone()], row)).collect()
    }

    /// The same as text: `1 a; 2 b`.
    pub(crate) async fn shown_rows(&self) -> String {
        let fields = &self.table.schema().fields;
        let rows = self.rows().await;
        let words = |row: &Vec<Datum>| row.iter().zip(fields).map(word).collect::<Vec<_>>().join(" ");
        rows.values().map(words).collect::<Vec<_>>().join("; ")
    }

    /// `L4 [+I 1 a]  L5 [+I 1 x] without rows 0`: stored rows by level, as far as they are no filler, and the positions of those that
    /// are deleted.
    async fn levels(&self) -> String {
        let store = self.table.snapshot_store();
        let Some(snapshot) = store.latest().await.unwrap() else {
            return String::new();
        };
        let deleted = self.deleted(&snapshot).await;
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
            let without = deleted.get(&entry.file.file_name).map_or("", String::as_str);
            let files = levels.entry(entry.file.level).or_default();
            files.push(format!("[{}]{beside}{without}", rows.join("; ")));
        }
        let levels = levels.into_iter().map(|(level, mut files)| {
            files.sort_unstable();
            format!("L{level} {}", files.join(" "))
        });
        levels.collect::<Vec<_>>().join("  ")
    }

    /// ` without rows 0, 1`: the deletion vectors, by data file.
    async fn deleted(&self, snapshot: &Snapshot) -> BTreeMap<String, String> {
        let scan = self.table.file_store_scan().unwrap();
        let plan = scan.plan(snapshot, ScanKind::All).await.unwrap();
        let mut deleted = BTreeMap::new();
        for bucket in &plan.buckets {
            let index = self.table.deletion_vectors(&bucket.partition, bucket.bucket).unwrap();
            for (file, deletion) in &bucket.deletion_files {
                let vectors = index.read(&deletion.index_file, |name| name == file).await.unwrap();
                let rows: Vec<String> = vectors[file].iter().map(|row| row.to_string()).collect();
                deleted.insert(file.clone(), format!(" without rows {}", rows.join(", ")));
            }
        }
        deleted
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
            page_cache: None,
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
