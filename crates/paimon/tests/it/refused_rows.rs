//! -U and -D rows that a table's merge engine does not take are refused when they are written: alone in a file they would pass, and every later
//! merge with another row of their key would fail.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch};
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

async fn table(place: &Place, options: &str) -> Table {
    let mut registry = Registry::default();
    let insert_only = Promises::insert_only();
    registry.engine(RowEngine::new("newest", insert_only, [""; 0], |_, _| {
        Ok(Box::new(Newest))
    }));
    let context = Context::clone(&place.context).with_registry(registry);
    let mut schema = TableSchema::builder().primary_key(["k"]).option("write-only", "true");
    for column in ["k", "g", "a"] {
        schema = schema.column(column, "INT".parse().unwrap());
    }
    for option in options.split(';') {
        let (key, value) = option.split_once('=').unwrap();
        schema = schema.option(key, value);
    }
    let name = format!("t{}", std::fs::read_dir(place.dir.path()).unwrap().count());
    Table::create(&place.location(&name), schema, &context).await.unwrap()
}

fn row(g: Option<i32>) -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("k", Arc::new(Int32Array::from(vec![1]))),
        ("g", Arc::new(Int32Array::from(vec![g]))),
        ("a", Arc::new(Int32Array::from(vec![7]))),
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
        for (options, kind, g, refusal) in CASES {
            let case = format!("{bucket};{options}: {kind} g={g:?}");
            let table = table(&place, &format!("{bucket};{options}")).await;
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
