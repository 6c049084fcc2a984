//! Random tables, batches and compactions against the row-by-row model: a table's rows are those of the merge rules, whatever was compacted
//! when, in whatever buffers, spills and batches, and whichever columns are read.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, RecordBatch};
use paimon::format::options::Options;
use paimon::format::row::BinaryRow;
use paimon::format::types::{DataType, Datum, RowKind, TypeKind, array_from_datums, arrow_schema};
use paimon::{Table, TableCommit, TableSchema, TableWrite};
use paimon_testkit::model::{Model, Row};
use proptest::prelude::*;
use rstest::rstest;

use crate::support::{Place, datums_of};

/// A table: columns behind the key `k INT NOT NULL`, options, and which retracts are the same however versions are grouped.
#[derive(Clone, Copy, Debug)]
struct Kind {
    columns: &'static [(&'static str, &'static str)],
    options: &'static [(&'static str, &'static str)],
    retracts: Retracts,
    /// Grows with every row: functions that know an order, or deletes that are dropped with their sequence.
    growing: &'static [&'static str],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Retracts {
    None,
    /// -U and -D of keys that were added.
    Any,
    /// -D of keys that were added, and no more rows of these keys.
    Last,
}

const INTS: &str = "ARRAY<INT>";
const ROWS: &str = "ARRAY<ROW<id INT, v STRING, w INT>>";

const KINDS: &[Kind] = &[
    Kind {
        columns: &[("a", "INT"), ("s", "STRING")],
        options: &[("merge-engine", "deduplicate")],
        retracts: Retracts::Any,
        growing: &[],
    },
    Kind {
        columns: &[("a", "INT"), ("s", "STRING"), ("t", "INT")],
        options: &[("sequence.field", "t,a"), ("sequence.field.sort-order", "descending")],
        retracts: Retracts::None,
        growing: &[],
    },
    Kind {
        columns: &[("a", "INT"), ("s", "STRING"), ("t", "INT")],
        options: &[("sequence.field", "t")],
        retracts: Retracts::Any,
        growing: &["t"],
    },
    Kind {
        columns: &[("a", "INT"), ("s", "STRING"), ("d", "DOUBLE")],
        options: &[("merge-engine", "partial-update")],
        retracts: Retracts::None,
        growing: &[],
    },
    Kind {
        columns: &[("a", "INT"), ("s", "STRING"), ("t", "INT")],
        options: &[("merge-engine", "partial-update"), ("sequence.field", "t")],
        retracts: Retracts::None,
        growing: &["t"],
    },
    Kind {
        columns: &[("a", "INT"), ("s", "STRING"), ("d", "DOUBLE")],
        options: &[
            ("merge-engine", "partial-update"),
            ("partial-update.remove-record-on-delete", "true"),
        ],
        retracts: Retracts::Last,
        growing: &[],
    },
    Kind {
        columns: &[
            ("a", "INT"),
            ("g", "INT!"),
            ("s", "STRING"),
            ("h1", "INT!"),
            ("h2", "INT"),
            ("c", "BIGINT"),
            ("x", "STRING"),
        ],
        options: &[
            ("merge-engine", "partial-update"),
            ("fields.g.sequence-group", "a"),
            ("fields.h1,h2.sequence-group", "c,s"),
        ],
        retracts: Retracts::Any,
        growing: &[],
    },
    Kind {
        columns: &[
            ("a", "STRING"),
            ("g", "INT"),
            ("s", "STRING"),
            ("h1", "INT"),
            ("h2", "INT"),
            ("c", "BIGINT"),
            ("x", "STRING"),
        ],
        options: &[
            ("merge-engine", "partial-update"),
            ("fields.g.sequence-group", "a"),
            ("fields.h1,h2.sequence-group", "c,s"),
            ("fields.a.aggregate-function", "listagg"),
            ("fields.c.aggregate-function", "sum"),
        ],
        retracts: Retracts::None,
        growing: &["g"],
    },
    Kind {
        columns: &[
            ("a", "INT"),
            ("g", "INT!"),
            ("c", "BIGINT"),
            ("h", "INT!"),
            ("x", "STRING"),
        ],
        options: &[
            ("merge-engine", "partial-update"),
            ("fields.g.sequence-group", "a"),
            ("fields.h.sequence-group", "c"),
            ("partial-update.remove-record-on-sequence-group", "g"),
        ],
        retracts: Retracts::Last,
        growing: &["g", "h"],
    },
    Kind {
        columns: &[("a", "INT"), ("b", "DECIMAL(20, 2)"), ("c", "DOUBLE"), ("d", "STRING")],
        options: &[
            ("merge-engine", "aggregation"),
            ("fields.a.aggregate-function", "sum"),
            ("fields.b.aggregate-function", "sum"),
            ("fields.c.aggregate-function", "max"),
            ("fields.c.ignore-retract", "true"),
            ("fields.d.aggregate-function", "listagg"),
            ("fields.d.ignore-retract", "true"),
        ],
        retracts: Retracts::Any,
        growing: &[],
    },
    Kind {
        columns: &[
            ("a", "INT"),
            ("b", "STRING"),
            ("c", "BOOLEAN"),
            ("d", "STRING"),
            ("t", "INT"),
        ],
        options: &[
            ("merge-engine", "aggregation"),
            ("sequence.field", "t"),
            ("fields.a.aggregate-function", "min"),
            ("fields.b.aggregate-function", "first_non_null_value"),
            ("fields.c.aggregate-function", "bool_or"),
            ("fields.d.aggregate-function", "listagg"),
            ("fields.d.distinct", "true"),
        ],
        retracts: Retracts::None,
        growing: &["t"],
    },
    Kind {
        columns: &[
            ("a", INTS),
            ("b", INTS),
            ("c", "MAP<INT NOT NULL, STRING>"),
            ("d", "MAP<INT NOT NULL, ROW<v INT, ts STRING> NOT NULL>"),
        ],
        options: &[
            ("merge-engine", "aggregation"),
            ("fields.a.aggregate-function", "collect"),
            ("fields.b.aggregate-function", "collect"),
            ("fields.b.distinct", "true"),
            ("fields.c.aggregate-function", "merge_map"),
            ("fields.d.aggregate-function", "merge_map_with_keytime"),
        ],
        retracts: Retracts::None,
        growing: &[],
    },
    Kind {
        columns: &[("a", ROWS), ("b", ROWS), ("c", ROWS), ("d", "INT")],
        options: &[
            ("merge-engine", "aggregation"),
            ("fields.a.aggregate-function", "nested_update"),
            ("fields.b.aggregate-function", "nested_update"),
            ("fields.b.nested-key", "id"),
            ("fields.b.nested-sequence-field", "w"),
            ("fields.c.aggregate-function", "nested_partial_update"),
            ("fields.c.nested-key", "id"),
            ("fields.d.aggregate-function", "first_value"),
        ],
        retracts: Retracts::None,
        growing: &[],
    },
    Kind {
        columns: &[("a", "INT"), ("b", "BIGINT")],
        options: &[
            ("merge-engine", "aggregation"),
            ("fields.default-aggregate-function", "sum"),
            ("aggregation.remove-record-on-delete", "true"),
        ],
        retracts: Retracts::Last,
        growing: &[],
    },
];

/// A row to write: key, kind and the seeds of its values.
type Change = (u8, u8, [u64; 8]);

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<Change>),
    /// Gives the buffer to level 0, or a temporary file.
    Flush,
    Commit(bool),
    Compact(bool),
    /// A new writer, with these settings.
    Reopen(u8),
    /// A read of some columns.
    Read(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let change = (0..7_u8, any::<u8>(), any::<[u64; 8]>());
    prop_oneof![
        6 => prop::collection::vec(change, 1..12).prop_map(Step::Write),
        1 => Just(Step::Flush),
        4 => any::<bool>().prop_map(Step::Commit),
        1 => Just(Step::Compact(true)),
        1 => Just(Step::Compact(false)),
        1 => any::<u8>().prop_map(Step::Reopen),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(columns, batch)| Step::Read(columns, batch)),
    ]
}

/// A value from few; nulls where they may be.
fn value(mut seed: u64, data_type: &DataType) -> Datum {
    let mut next = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    if data_type.nullable && next(5) == 0 {
        return Datum::Null;
    }
    let number = next(9) as i32 - 2;
    let mut inner = |data_type: &DataType| value(next(u64::from(u32::MAX)), data_type);
    match &data_type.kind {
        TypeKind::Boolean => Datum::Boolean(number > 2),
        TypeKind::Int => Datum::Int32(number),
        TypeKind::BigInt => Datum::Int64(number.into()),
        TypeKind::Double => Datum::Float64(f64::from(number) / 4.0),
        TypeKind::Decimal(..) => Datum::Decimal(i128::from(number) * 25),
        TypeKind::VarChar(_) => match number {
            ..0 => Datum::String("b,a".to_owned()),
            0 => Datum::String(" ".to_owned()),
            // Wide, so that small buffers are full.
            number => Datum::String("x".repeat((number * number) as usize)),
        },
        TypeKind::Array(element) => Datum::Array((0..number / 2).map(|_| inner(element)).collect()),
        TypeKind::Map(_, values) => {
            let keys = (0..4).filter(|key| (number >> key) & 1 == 1);
            Datum::Map(keys.map(|key| (Datum::Int32(key), inner(values))).collect())
        }
        TypeKind::Row(fields) => Datum::Row(fields.iter().map(|field| inner(&field.data_type)).collect()),
        other => panic!("{other}"),
    }
}

/// A table, and all that was written to it.
struct Written {
    table: Table,
    model: Model,
    kind: Kind,
    write: TableWrite,
    commit: TableCommit,
    identifier: i64,
    written: Vec<Row>,
    /// How many of them are committed.
    committed: usize,
    added: BTreeSet<u8>,
    gone: BTreeSet<u8>,
}

impl Written {
    async fn new(place: &Place, kind: Kind) -> Self {
        let mut schema = TableSchema::builder()
            .column("k", "INT".parse().unwrap())
            .primary_key(["k"]);
        for (name, text) in kind.columns {
            schema = match text.strip_suffix('!') {
                Some(text) => schema.column(*name, DataType::not_null(text.parse::<DataType>().unwrap().kind)),
                None => schema.column(*name, text.parse().unwrap()),
            };
        }
        let trigger = ("num-sorted-run.compaction-trigger", "3");
        for (key, text) in kind.options.iter().chain(&[("bucket", "1"), trigger]) {
            schema = schema.option(*key, *text);
        }
        let table = place.create(schema).await;
        let model = Model::new(&table.schema().fields, &[0], table.options()).unwrap();
        let builder = table.write_builder();
        Self {
            write: builder.new_write().unwrap(),
            commit: builder.new_commit().unwrap(),
            table,
            model,
            kind,
            identifier: 0,
            written: Vec::new(),
            committed: 0,
            added: BTreeSet::new(),
            gone: BTreeSet::new(),
        }
    }

    async fn run(&mut self, step: &Step) {
        match step {
            Step::Write(changes) => self.write(changes).await,
            Step::Flush => self.write.compact(&BinaryRow::default(), 0, false).await.unwrap(),
            Step::Commit(wait) => self.commit(*wait).await,
            Step::Compact(full) => {
                self.write.compact(&BinaryRow::default(), 0, *full).await.unwrap();
                self.commit(true).await;
            }
            Step::Reopen(settings) => {
                self.commit(true).await;
                let options = [
                    ("page-size", "64 b"),
                    (
                        "write-buffer-size",
                        ["200 b", "1 kb", "256 mb"][usize::from(settings % 3)],
                    ),
                    ("sort-spill-threshold", ["2", "3", "10"][usize::from(settings / 3 % 3)]),
                    (
                        "write-buffer-spillable",
                        ["true", "false"][usize::from(settings / 9 % 2)],
                    ),
                ];
                let table = self.table.with_options(&Options::from_iter(options)).unwrap();
                let write = table.write_builder().new_write().unwrap();
                std::mem::replace(&mut self.write, write).abort().await;
            }
            Step::Read(columns, batch) => {
                let fields = &self.table.schema().fields;
                let chosen: Vec<usize> = (0..fields.len())
                    .filter(|column| columns >> (column % 8) & 1 == 1)
                    .collect();
                let size = (1 + batch % 8).to_string();
                let table = self
                    .table
                    .with_options(&Options::from_iter([("read.batch-size", size.as_str())]))
                    .unwrap();
                if !chosen.is_empty() {
                    let written = &self.written[..self.committed];
                    check(&self.model, written, &table, &chosen).await;
                }
            }
        }
    }

    async fn write(&mut self, changes: &[Change]) {
        let fields = self.table.schema().fields.clone();
        let mut rows: Vec<Row> = Vec::new();
        for (key, kind, seeds) in changes {
            if self.gone.contains(key) {
                continue;
            }
            let retracts = self.added.contains(key) && kind % 3 == 0;
            let kind = match (self.kind.retracts, retracts) {
                (Retracts::Any, true) if kind % 2 == 0 => RowKind::UpdateBefore,
                (Retracts::Any | Retracts::Last, true) => RowKind::Delete,
                _ if kind % 2 == 0 => RowKind::Insert,
                _ => RowKind::UpdateAfter,
            };
            self.added.insert(*key);
            if kind.is_retract() && self.kind.retracts == Retracts::Last {
                self.gone.insert(*key);
            }
            let age = (self.written.len() + rows.len()) as i32;
            let values = fields.iter().zip(seeds).map(|(field, seed)| match field.name.as_str() {
                "k" => Datum::Int32((*key).into()),
                name if self.kind.growing.contains(&name) => Datum::Int32(age),
                _ => value(*seed, &field.data_type),
            });
            rows.push((kind, values.collect()));
        }
        self.write_rows(rows).await;
    }

    async fn write_rows(&mut self, rows: Vec<Row>) {
        if rows.is_empty() {
            return;
        }
        let fields = &self.table.schema().fields;
        let column = |(position, field)| -> ArrayRef {
            array_from_datums(field, rows.iter().map(|row| &row.1[position])).unwrap()
        };
        let columns = fields.iter().enumerate().map(column).collect();
        let batch = RecordBatch::try_new(Arc::new(arrow_schema(fields).unwrap()), columns).unwrap();
        let kinds = Int8Array::from_iter_values(rows.iter().map(|row| row.0 as i8));
        self.write.write_with_kinds(&batch, &kinds).await.unwrap();
        self.written.extend(rows);
    }

    /// All that was written is there.
    async fn commit(&mut self, wait: bool) {
        let messages = self.write.prepare_commit(wait).await.unwrap();
        self.identifier += 1;
        self.commit.commit(self.identifier, messages).await.unwrap();
        self.committed = self.written.len();
        let all: Vec<usize> = (0..self.table.schema().fields.len()).collect();
        check(&self.model, &self.written, &self.table, &all).await;
    }
}

/// Committed rows, of some columns, in no order.
async fn check(model: &Model, written: &[Row], table: &Table, columns: &[usize]) {
    let expected = model.table(written).unwrap();
    let project =
        |row: &Vec<Datum>| -> Vec<Datum> { columns.iter().map(|&column| unordered(row[column].clone())).collect() };
    let mut expected: Vec<Vec<Datum>> = expected.iter().map(project).collect();
    let names: Vec<&str> = columns
        .iter()
        .map(|&column| table.schema().fields[column].name.as_str())
        .collect();
    let found = datums_of(&table.read_builder().projection(&names).unwrap()).await;
    let mut found: Vec<Vec<Datum>> = found
        .into_iter()
        .map(|row| row.into_iter().map(unordered).collect())
        .collect();
    expected.sort();
    found.sort();
    let longest = found.len().max(expected.len());
    if let Some(at) = (0..longest).find(|&at| found.get(at) != expected.get(at)) {
        let (found, expected) = (found.get(at), expected.get(at));
        panic!("{names:?} is {found:?}, not {expected:?}, in {:?}", table.options());
    }
}

/// A map's entries have no order: where a key stands that was removed and came again depends on what was merged when.
fn unordered(mut value: Datum) -> Datum {
    if let Datum::Map(entries) = &mut value {
        entries.sort();
    }
    value
}

fn cases() -> u32 {
    std::env::var("PAIMON_TEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn tables_hold_what_the_rules_say(kind in 0..KINDS.len(), steps in prop::collection::vec(step(), 1..25)) {
        let place = Place::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut bench = Written::new(&place, KINDS[kind]).await;
            for step in steps.iter().chain(&[Step::Commit(true), Step::Compact(true)]) {
                bench.run(step).await;
            }
            bench.write.abort().await;
        });
    }
}

/// Keys that are deleted and written again, with a large run at the top that a compaction of a few runs would leave alone: no file can hold
/// "deleted, then inserted", so such a compaction takes all older runs along.
#[rstest]
#[case::partial_update(&[("merge-engine", "partial-update"), ("partial-update.remove-record-on-delete", "true")])]
#[case::aggregation(&[
    ("merge-engine", "aggregation"),
    ("fields.default-aggregate-function", "sum"),
    ("aggregation.remove-record-on-delete", "true"),
])]
#[case::sequence_group(&[
    ("merge-engine", "partial-update"),
    ("fields.g.sequence-group", "a,b"),
    ("partial-update.remove-record-on-sequence-group", "g"),
])]
#[tokio::test]
async fn a_removed_row_does_not_come_back(#[case] options: &'static [(&'static str, &'static str)]) {
    let kind = Kind {
        columns: &[("a", "INT"), ("b", "INT"), ("g", "INT")],
        options,
        retracts: Retracts::Last,
        growing: &["g"],
    };
    let place = Place::new();
    let mut written = Written::new(&place, kind).await;
    let row = |kind, key: i32, a: Option<i32>, b: Option<i32>, g: i32| -> Row {
        let value = |value: Option<i32>| value.map_or(Datum::Null, Datum::Int32);
        (kind, vec![Datum::Int32(key), value(a), value(b), Datum::Int32(g)])
    };
    let many = (0..3000).map(|key| row(RowKind::Insert, key, Some(key), Some(1), key));
    written.write_rows(many.collect()).await;
    written.commit(true).await;
    written.run(&Step::Compact(true)).await;
    written
        .write_rows(vec![row(RowKind::Delete, 7, Some(7), Some(1), 4000)])
        .await;
    written.commit(true).await;
    written
        .write_rows(vec![row(RowKind::Insert, 7, None, Some(5), 4001)])
        .await;
    written.commit(true).await;
    written
        .write_rows(vec![row(RowKind::Insert, 8, Some(1), None, 4002)])
        .await;
    written.commit(true).await;
    written.run(&Step::Compact(false)).await;
    written.run(&Step::Compact(true)).await;
    written.write.abort().await;
}
