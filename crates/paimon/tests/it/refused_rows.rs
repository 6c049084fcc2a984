//! Rows that a table's merge engine does not take are refused when they are written: alone in a file they would pass, and every later merge with
//! another row of their key would fail.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int32Array, RecordBatch};
use paimon::format::types::{Datum, RowKind};
use paimon::merge::MergeError;
use paimon::merge::engine::{Promises, Registry};
use paimon::merge::kernel::{MergeFunction, Merged, RowEngine, Versions};
use paimon::{Context, ErrorKind, Table, TableSchema};

use crate::support::{Place, commit_batch, kinds, rows};

/// Takes the newest row.
struct Newest;

impl MergeFunction for Newest {
    fn merge(&mut self, versions: &Versions<'_>) -> Result<Merged, MergeError> {
        match versions.iter().find(|version| version.kind().is_retract()) {
            Some(version) => Err(MergeError::retract("newest", &version)),
            None => Ok(Merged::Version(versions.len() - 1)),
        }
    }
}

const PARTIAL: &str = "merge engine partial-update cannot take a -D row: set ignore-delete, partial-update.remove-record-on-delete, or \
                       sequence groups with partial-update.remove-record-on-sequence-group";
const MAX: &str = "column a: aggregate function max does not support retraction; fields.a.ignore-retract = true lets it ignore -U and -D rows";

/// Options, a row (kind and `g`), and how the refusal begins and ends; `None`: it is taken.
type Case = (
    &'static str,
    &'static str,
    Option<i32>,
    Option<(&'static str, &'static str)>,
);

const CASES: &[Case] = &[
    ("merge-engine=deduplicate", "-D", None, None),
    (
        "merge-engine=first-row",
        "-D",
        None,
        Some((
            "merge engine first-row cannot take a -D row",
            "ignore-delete = true lets it ignore -U and -D rows",
        )),
    ),
    (
        "merge-engine=first-row",
        "-U",
        None,
        Some(("merge engine first-row cannot take a -U row", "")),
    ),
    ("merge-engine=first-row;ignore-delete=true", "-D", None, None),
    ("merge-engine=first-row;first-row.ignore-delete=true", "-U", None, None),
    ("merge-engine=partial-update", "-D", None, Some((PARTIAL, ""))),
    ("merge-engine=partial-update;ignore-delete=true", "-U", None, None),
    (
        "merge-engine=partial-update;ignore-update-before=true",
        "-U",
        None,
        None,
    ),
    (
        "merge-engine=partial-update;partial-update.remove-record-on-delete=true",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a",
        "-D",
        Some(1),
        None,
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a;fields.a.aggregate-function=max",
        "-D",
        Some(1),
        Some(("merge engine partial-update cannot take a -D row", MAX)),
    ),
    // The row says nothing about the group.
    (
        "merge-engine=partial-update;fields.g.sequence-group=a;fields.a.aggregate-function=max",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a;fields.a.aggregate-function=max;fields.a.ignore-retract=true",
        "-D",
        Some(1),
        None,
    ),
    // A removed row is not taken back column by column.
    (
        "merge-engine=partial-update;fields.g.sequence-group=a;fields.a.aggregate-function=max;\
         partial-update.remove-record-on-sequence-group=g",
        "-D",
        Some(1),
        None,
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=sum",
        "-U",
        None,
        None,
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=max",
        "-U",
        None,
        Some(("merge engine aggregation cannot take a -U row", MAX)),
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=max;fields.a.ignore-retract=true",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=max;aggregation.remove-record-on-delete=true",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=max;aggregation.remove-record-on-delete=true",
        "-U",
        None,
        Some(("merge engine aggregation cannot take a -U row", MAX)),
    ),
    (
        "merge-engine=newest",
        "-D",
        None,
        Some((
            "merge engine newest cannot take a -D row",
            "it merges +I and +U rows only",
        )),
    ),
];

/// The same with `a` NOT NULL.
const NOT_NULL: &[Case] = &[
    (
        "merge-engine=aggregation",
        "-D",
        None,
        Some((
            "merge engine aggregation cannot take a -D row: column a: it is NOT NULL",
            "fields.a.ignore-retract = true lets it keep its value",
        )),
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=last_value",
        "-D",
        None,
        Some(("merge engine aggregation cannot take a -D row", "")),
    ),
    // Its +U follows.
    ("merge-engine=aggregation", "-U", None, None),
    (
        "merge-engine=aggregation;fields.a.ignore-retract=true",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=aggregation;aggregation.remove-record-on-delete=true",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=aggregation;fields.a.aggregate-function=sum",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a",
        "-D",
        Some(1),
        Some((
            "merge engine partial-update cannot take a -D row: column a: it is NOT NULL",
            "partial-update.remove-record-on-sequence-group = g lets the row remove the record",
        )),
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a",
        "-U",
        Some(1),
        None,
    ),
    // The row says nothing about the group.
    (
        "merge-engine=partial-update;fields.g.sequence-group=a",
        "-D",
        None,
        None,
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a;partial-update.remove-record-on-sequence-group=g",
        "-D",
        Some(1),
        None,
    ),
    (
        "merge-engine=partial-update;partial-update.remove-record-on-delete=true",
        "-D",
        None,
        None,
    ),
];

async fn table(place: &Place, options: &str, a: &str) -> Table {
    let mut registry = Registry::default();
    let insert_only = Promises::insert_only();
    registry.engine(RowEngine::new("newest", insert_only, [""; 0], |_, _| {
        Ok(Box::new(Newest))
    }));
    let context = Context::clone(&place.context).with_registry(registry);
    let mut schema = TableSchema::builder().primary_key(["k"]).option("write-only", "true");
    for (column, data_type) in [("k", "INT"), ("g", "INT"), ("a", a)] {
        schema = schema.column(column, data_type.parse().unwrap());
    }
    for option in options.split(';') {
        let (key, value) = option.split_once('=').unwrap();
        schema = schema.option(key, value);
    }
    let name = format!("t{}", std::fs::read_dir(place.dir.path()).unwrap().count());
    Table::create(&place.location(&name), schema, &context).await.unwrap()
}

fn row(g: Option<i32>) -> RecordBatch {
    row_with(g, Arc::new(Int32Array::from(vec![7])))
}

fn row_with(g: Option<i32>, a: ArrayRef) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("k", Arc::new(Int32Array::from(vec![1]))),
        ("g", Arc::new(Int32Array::from(vec![g]))),
        ("a", a),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[tokio::test]
async fn what_no_merge_could_take_is_refused_and_all_else_is_merged() {
    for bucket in [
        "bucket=1",
        "bucket=-1",
        "bucket=-2",
        "bucket=1;local-merge-buffer-size=1 mb",
    ] {
        let place = Place::new();
        let nullable = CASES.iter().map(|case| ("INT", case));
        for (a, (options, kind, g, refusal)) in nullable.chain(NOT_NULL.iter().map(|case| ("INT NOT NULL", case))) {
            let case = format!("{bucket};{options}: {kind} g={g:?} a {a}");
            let table = table(&place, &format!("{bucket};{options}"), a).await;
            let Some((begins, ends)) = refusal else {
                commit_batch(&table, &row(*g), &kinds([*kind].into_iter())).await;
                commit_batch(&table, &row(Some(2)), &kinds(["+I"].into_iter())).await;
                let compacted = table.compact_builder().full(true).run().await;
                assert!(compacted.is_ok(), "{case}: {:?}", compacted.unwrap_err());
                assert_eq!(rows(&table).await.len(), 1, "{case}");
                continue;
            };
            let mut write = table.write_builder().new_write().unwrap();
            let written = write.write_with_kinds(&row(*g), &kinds([*kind].into_iter())).await;
            let Err(error) = written else {
                panic!("{case}: it was taken");
            };
            assert_eq!(error.kind(), ErrorKind::Invalid, "{case}");
            let error = error.to_string();
            assert!(error.starts_with(begins) && error.ends_with(ends), "{case}: {error}");
            assert_eq!(
                write.prepare_commit(true).await.unwrap(),
                [],
                "{case}: nothing is taken"
            );
            write.abort().await;
        }
    }
}

/// A row that is written after a key's first one, and what its refusal begins with; `None`: it is taken.
type Bytes = (RowKind, Option<i32>, Option<&'static [u8]>, Option<&'static str>);

/// Options, and rows whose bytes are those of `a`.
const BYTES: &[(&str, &[Bytes])] = &[
    (
        "merge-engine=aggregation;fields.a.ignore-retract=true",
        &[
            (RowKind::Insert, None, Some(&[1, 2]), Some("column a: 2 bytes are no ")),
            (RowKind::UpdateAfter, None, Some(&[]), Some("column a: 0 bytes are no ")),
            (RowKind::Insert, None, None, None),
            // Ignored.
            (RowKind::Delete, None, Some(&[1, 2]), None),
        ],
    ),
    (
        "merge-engine=partial-update;fields.g.sequence-group=a;fields.a.ignore-retract=true",
        &[
            (
                RowKind::Insert,
                Some(1),
                Some(&[1, 2]),
                Some("column a: 2 bytes are no "),
            ),
            (
                RowKind::UpdateBefore,
                Some(2),
                Some(&[1, 2]),
                Some("column a: 2 bytes are no "),
            ),
            // The row says nothing about the group.
            (RowKind::Insert, None, Some(&[1, 2]), None),
        ],
    ),
];

#[tokio::test]
async fn bytes_that_a_function_cannot_read_are_refused() {
    let place = Place::new();
    for function in ["rbm32", "rbm64", "theta_sketch", "hll_sketch"] {
        for (options, cases) in BYTES {
            let options = format!("bucket=1;{options};fields.a.aggregate-function={function}");
            let table = table(&place, &options, "BYTES").await;
            commit_batch(
                &table,
                &row_with(Some(1), Arc::new(BinaryArray::from(vec![None::<&[u8]>]))),
                &kinds(["+I"].into_iter()),
            )
            .await;
            for (kind, g, a, refusal) in *cases {
                let case = format!("{options}: {kind} {g:?} {a:?}");
                let batch = row_with(*g, Arc::new(BinaryArray::from(vec![*a])));
                let kinds = kinds([kind.short_string()].into_iter());
                let number = |number: Option<i32>| number.map_or(Datum::Null, Datum::Int32);
                let datums = [
                    number(Some(1)),
                    number(*g),
                    a.map_or(Datum::Null, |a| Datum::Bytes(a.to_vec())),
                ];
                let mut write = table.write_builder().new_write().unwrap();
                let checked = write.check_row(*kind, &datums);
                let Some(begins) = refusal else {
                    checked.unwrap();
                    write.abort().await;
                    commit_batch(&table, &batch, &kinds).await;
                    assert_eq!(rows(&table).await.len(), 1, "{case}");
                    continue;
                };
                let written = write.write_with_kinds(&batch, &kinds).await;
                for error in [checked.unwrap_err(), written.unwrap_err()] {
                    assert_eq!(error.kind(), ErrorKind::Invalid, "{case}");
                    assert!(error.to_string().starts_with(begins), "{case}: {error}");
                }
                write.abort().await;
            }
        }
    }
}
