//! Options of merge engines that cannot be right: refused when the table is made, by name, and nothing is left behind.

use paimon::{ErrorKind, Table, TableSchema};

use crate::support::Place;

/// `k` and `p` INT NOT NULL, `a` INT, `s` STRING, `v` VARCHAR(9), `g` and `h` INT, `b` BOOLEAN, `n` ARRAY<ROW>, `m` MAP, `i` ARRAY<INT>.
const COLUMNS: [(&str, &str); 11] = [
    ("k", "INT NOT NULL"),
    ("p", "INT NOT NULL"),
    ("a", "INT"),
    ("s", "STRING"),
    ("v", "VARCHAR(9)"),
    ("g", "INT"),
    ("h", "INT"),
    ("b", "BOOLEAN"),
    ("n", "ARRAY<ROW<id INT, w STRING>>"),
    ("m", "MAP<INT, ROW<v INT, ts BIGINT>>"),
    ("i", "ARRAY<INT>"),
];

/// An engine with options; `partitioned by p` makes the key `k` alone.
const ILLEGAL: &[(&str, &[&str])] = &[
    ("no-engine", &[]),
    ("deduplicate", &["ignore-delete=perhaps"]),
    // Sequence groups.
    ("partial-update", &["fields.x.sequence-group=a"]),
    ("partial-update", &["fields.g.sequence-group=x"]),
    ("partial-update", &["fields.k.sequence-group=a"]),
    ("partial-update", &["fields.g.sequence-group=k"]),
    (
        "partial-update",
        &["fields.g.sequence-group=a", "fields.h.sequence-group=s,a"],
    ),
    (
        "partial-update",
        &["fields.g.sequence-group=a", "fields.h.sequence-group=g"],
    ),
    (
        "partial-update",
        &["fields.g.sequence-group=a", "fields.s.aggregate-function=listagg"],
    ),
    ("partial-update", &["fields.default-aggregate-function=sum"]),
    (
        "partial-update",
        &["fields.g.sequence-group=a", "fields.a.aggregate-function=median"],
    ),
    (
        "partial-update",
        &["fields.g.sequence-group=b", "fields.b.aggregate-function=sum"],
    ),
    // Deletes of partial-update.
    (
        "partial-update",
        &["partial-update.remove-record-on-delete=true", "ignore-delete=true"],
    ),
    (
        "partial-update",
        &[
            "partial-update.remove-record-on-delete=true",
            "partial-update.ignore-delete=true",
        ],
    ),
    (
        "partial-update",
        &[
            "fields.g.sequence-group=a",
            "partial-update.remove-record-on-sequence-group=g",
            "ignore-delete=true",
        ],
    ),
    (
        "partial-update",
        &[
            "fields.g.sequence-group=a",
            "partial-update.remove-record-on-delete=true",
        ],
    ),
    (
        "partial-update",
        &[
            "fields.g.sequence-group=a",
            "partial-update.remove-record-on-sequence-group=a",
        ],
    ),
    ("partial-update", &["partial-update.remove-record-on-sequence-group=g"]),
    ("partial-update", &["partial-update.remove-record-on-delete=1"]),
    // Functions.
    ("aggregation", &["fields.a.aggregate-function=count"]),
    ("aggregation", &["fields.x.aggregate-function=sum"]),
    ("aggregation", &["fields.x.ignore-retract=true"]),
    ("aggregation", &["fields.n.id.aggregate-function=sum"]),
    ("aggregation", &["fields.s.aggregate-function=sum"]),
    ("aggregation", &["fields.b.aggregate-function=product"]),
    ("aggregation", &["fields.b.aggregate-function=max"]),
    ("aggregation", &["fields.n.aggregate-function=min"]),
    ("aggregation", &["fields.a.aggregate-function=bool_and"]),
    ("aggregation", &["fields.v.aggregate-function=listagg"]),
    ("aggregation", &["fields.s.aggregate-function=collect"]),
    ("aggregation", &["fields.i.aggregate-function=merge_map"]),
    ("aggregation", &["fields.m.aggregate-function=merge_map_with_keytime"]),
    (
        "aggregation",
        &[
            "fields.m.aggregate-function=merge_map_with_keytime",
            "fields.m.ts-field=time",
        ],
    ),
    ("aggregation", &["fields.i.aggregate-function=nested_update"]),
    (
        "aggregation",
        &["fields.n.aggregate-function=nested_update", "fields.n.nested-key=key"],
    ),
    (
        "aggregation",
        &[
            "fields.n.aggregate-function=nested_update",
            "fields.n.nested-sequence-field=w",
        ],
    ),
    (
        "aggregation",
        &[
            "fields.n.aggregate-function=nested_update",
            "fields.n.nested-key-null-strategy=ignore",
        ],
    ),
    (
        "aggregation",
        &["fields.n.aggregate-function=nested_update", "fields.n.count-limit=many"],
    ),
    ("aggregation", &["fields.n.aggregate-function=nested_partial_update"]),
    ("aggregation", &["fields.s.aggregate-function=theta_sketch"]),
    ("aggregation", &["fields.s.aggregate-function=hll_sketch"]),
    ("aggregation", &["fields.s.aggregate-function=rbm32"]),
    ("aggregation", &["fields.s.aggregate-function=rbm64"]),
    (
        "aggregation",
        &["fields.a.aggregate-function=sum", "fields.a.ignore-retract=no"],
    ),
    (
        "aggregation",
        &[
            "fields.a.aggregate-function=max",
            "fields.a.ignore-retract=true",
            "aggregation.remove-record-on-delete=true",
        ],
    ),
    // Sequence fields.
    ("aggregation", &["sequence.field=a", "fields.a.aggregate-function=sum"]),
    ("deduplicate", &["sequence.field=x"]),
    ("deduplicate", &["sequence.field=a,g,a"]),
    ("deduplicate", &["sequence.field=a", "sequence.field.sort-order=up"]),
    ("deduplicate", &["sequence.field=a", "partitioned by p"]),
    (
        "deduplicate",
        &["sequence.snapshot-ordering=true", "sequence.field=a", "write-only=true"],
    ),
    ("deduplicate", &["sequence.snapshot-ordering=true"]),
    // First rows.
    ("first-row", &["sequence.field=a"]),
    ("first-row", &["changelog-producer=input"]),
    ("first-row", &["changelog-producer=full-compaction"]),
    ("first-row", &["deletion-vectors.enabled=true"]),
    // Row kinds in a column.
    ("deduplicate", &["rowkind.field=x"]),
    ("deduplicate", &["rowkind.field=a"]),
];

#[tokio::test]
async fn illegal_options_of_engines_are_refused_when_a_table_is_made() {
    let place = Place::new();
    let mut answers = String::new();
    for (number, (engine, options)) in ILLEGAL.iter().enumerate() {
        let location = place.location(&number.to_string());
        let mut schema = TableSchema::builder().option("merge-engine", *engine);
        for (name, text) in COLUMNS {
            schema = schema.column(name, text.parse().unwrap());
        }
        schema = match options.contains(&"partitioned by p") {
            true => schema.primary_key(["k"]).partition_keys(["p"]),
            false => schema.primary_key(["k", "p"]),
        };
        for (key, text) in options.iter().filter_map(|option| option.split_once('=')) {
            schema = schema.option(key, text);
        }
        let answer = match Table::create(&location, schema.option("bucket", "1"), &place.context).await {
            Ok(_) => "accepted".to_owned(),
            // What else is not built says so first.
            Err(error) if error.kind() == ErrorKind::Unsupported => "not built".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_ne!(answer, "accepted", "{engine} {options:?}");
        assert!(!Table::exists(&location, &place.context).await.unwrap());
        answers += &format!("{engine} {}\n    {answer}\n", options.join(" "));
    }
    insta::assert_snapshot!(answers);
}
