//! Random writes, compactions and restarts of tables whose buckets are not fixed: a key is there once, with its last row.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int32Array, RecordBatch};
use paimon::format::types::RowKind;
use paimon::{SchemaBuilder, TableSchema, TableWrite, WriteBuilder};
use proptest::prelude::*;

use crate::support::{Place, rows};

/// What finds a row its bucket, and what becomes of one whose key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// An index of hashes in each partition.
    Dynamic,
    /// An index of all keys; the newest row takes its key along.
    Move,
    /// The row goes where its key is, and is added up there.
    Follow,
    /// The row is dropped.
    Drop,
    /// A compaction.
    Postpone,
}

/// Key, partition, value, and whether it is a delete.
type Row = (i32, i32, i32, bool);

#[derive(Clone, Debug)]
enum Op {
    Commit(Vec<Row>),
    Compact { full: bool },
    Reopen,
}

/// Partition and value of each key; where keys are those of a partition, of each key with its partition.
type Model = BTreeMap<(i32, i32), (i32, i32)>;

impl Mode {
    fn schema(self, target: u32) -> SchemaBuilder {
        let int = || "INT".parse().unwrap();
        let schema = TableSchema::builder()
            .column("k", int())
            .column("p", int())
            .column("v", int());
        let schema = schema
            .partition_keys(["p"])
            .option("dynamic-bucket.target-row-num", target.to_string());
        let schema = match self {
            Self::Dynamic | Self::Postpone => schema.primary_key(["p", "k"]),
            Self::Move | Self::Follow | Self::Drop => schema.primary_key(["k"]),
        };
        match self {
            Self::Dynamic => schema.option("dynamic-bucket.initial-buckets", "2"),
            Self::Move => schema,
            Self::Follow => schema
                .option("merge-engine", "aggregation")
                .option("fields.v.aggregate-function", "sum"),
            Self::Drop => schema.option("merge-engine", "first-row"),
            Self::Postpone => schema
                .option("bucket", "-2")
                .option("postpone.target-row-num-per-bucket", target.to_string()),
        }
    }

    fn deletes(self) -> bool {
        !matches!(self, Self::Follow | Self::Drop)
    }

    fn apply(self, model: &mut Model, (k, p, v, delete): Row) {
        let key = match self {
            Self::Dynamic | Self::Postpone => (k, p),
            Self::Move | Self::Follow | Self::Drop => (k, 0),
        };
        match (self, model.get(&key).copied()) {
            (_, _) if delete => drop(model.remove(&key)),
            (Self::Follow, Some((there, sum))) => drop(model.insert(key, (there, sum + v))),
            (Self::Drop, Some(_)) => {}
            _ => drop(model.insert(key, (p, v))),
        }
    }

    /// Whether reads see what no compaction has taken up.
    fn hides(self) -> bool {
        matches!(self, Self::Drop | Self::Postpone)
    }

    fn ops(self) -> impl Strategy<Value = Vec<Op>> {
        let delete = if self.deletes() { 0.3 } else { 0.0 };
        let row = (0..16, 0..3, 0..100, prop::bool::weighted(delete));
        let op = prop_oneof![
            5 => prop::collection::vec(row, 0..10).prop_map(Op::Commit),
            1 => any::<bool>().prop_map(|full| Op::Compact { full }),
            1 => Just(Op::Reopen),
        ];
        prop::collection::vec(op, 1..12)
    }
}

fn texts(model: &Model) -> Vec<String> {
    let mut texts: Vec<String> = model.iter().map(|((k, _), (p, v))| format!("{k} {p} {v}")).collect();
    texts.sort_unstable();
    texts
}

async fn commit(builder: &WriteBuilder, writer: &mut TableWrite, rows: &[Row], identifier: i64) {
    let column = |value: fn(&Row) -> i32| Arc::new(Int32Array::from_iter_values(rows.iter().map(value))) as ArrayRef;
    let batch = RecordBatch::try_from_iter([
        ("k", column(|row| row.0)),
        ("p", column(|row| row.1)),
        ("v", column(|row| row.2)),
    ]);
    let kinds = rows.iter().map(|row| match row.3 {
        true => RowKind::Delete as i8,
        false => RowKind::Insert as i8,
    });
    writer
        .write_with_kinds(&batch.unwrap(), &Int8Array::from_iter_values(kinds))
        .await
        .unwrap();
    let messages = writer.prepare_commit(true).await.unwrap();
    builder
        .new_commit()
        .unwrap()
        .commit(identifier, messages)
        .await
        .unwrap();
    writer.close_idle_buckets().await.unwrap();
}

async fn play(mode: Mode, target: u32, ops: Vec<Op>) {
    let place = Place::new();
    let table = place.create(mode.schema(target)).await;
    let mut builder = table.write_builder();
    let mut writer = builder.new_write().unwrap();
    let (mut all, mut seen) = (Model::new(), Model::new());
    for (identifier, op) in (0..).zip(ops) {
        match &op {
            Op::Commit(rows) => {
                commit(&builder, &mut writer, rows, identifier).await;
                rows.iter().for_each(|&row| mode.apply(&mut all, row));
            }
            Op::Compact { full } => {
                // A writer that compacts ends before another job does.
                std::mem::replace(&mut writer, builder.new_write().unwrap())
                    .abort()
                    .await;
                table.compact_builder().full(*full).run().await.unwrap();
            }
            Op::Reopen => {
                builder = table.write_builder();
                std::mem::replace(&mut writer, builder.new_write().unwrap())
                    .abort()
                    .await;
            }
        }
        match op {
            Op::Compact { full } if full || mode == Mode::Postpone => seen.clone_from(&all),
            // First-row: its writers compact too, as they like.
            _ if mode == Mode::Drop => continue,
            _ if !mode.hides() => seen.clone_from(&all),
            _ => {}
        }
        assert_eq!(rows(&table).await, texts(&seen), "after {op:?}");
    }
    writer.abort().await;
    table.compact_builder().full(true).run().await.unwrap();
    assert_eq!(rows(&table).await, texts(&all), "in the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_key_is_there_once_with_its_last_row(
        (mode, ops) in prop_oneof![
            Just(Mode::Dynamic),
            Just(Mode::Move),
            Just(Mode::Follow),
            Just(Mode::Drop),
            Just(Mode::Postpone),
        ]
        .prop_flat_map(|mode| (Just(mode), mode.ops())),
        target in 1_u32..6,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(play(mode, target, ops));
    }
}
