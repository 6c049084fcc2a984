//! Random writes, compactions and restarts of tables with deletion vectors: whoever reads, and however, sees the same rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int32Array, RecordBatch};
use paimon::format::types::RowKind;
use paimon::{Selection, TableSchema, TableWrite, TimeTravel, WriteBuilder};
use proptest::prelude::*;

use crate::support::{Place, rows, with};

/// How versions of a key become a row.
#[derive(Clone, Copy, Debug)]
enum Engine {
    Deduplicate,
    /// Deduplicate, by the column `w`.
    Sequence,
    Sum,
    PartialUpdate,
}

/// A version of a row: its key, its columns, and whether it deletes.
type Version = (i32, Option<i32>, Option<i32>, bool);

#[derive(Clone, Debug)]
enum Op {
    /// A commit of these rows, with the compaction that it asks for.
    Commit(Vec<Version>),
    /// A commit of another writer, which never compacts.
    WriteOnly(Vec<Version>),
    /// A compaction of another job.
    Compact { full: bool },
    /// The writer ends, and another one goes on.
    Reopen,
}

impl Engine {
    fn options(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Deduplicate => &[],
            Self::Sequence => &[("sequence.field", "w")],
            Self::Sum => &[
                ("merge-engine", "aggregation"),
                ("fields.default-aggregate-function", "sum"),
            ],
            Self::PartialUpdate => &[("merge-engine", "partial-update")],
        }
    }

    /// Merges a version into what is there.
    fn merge(self, state: &mut Model, (key, v, w, delete): Version) {
        let old = state.get(&key).copied();
        let new = match (self, old) {
            (Self::Deduplicate, _) if delete => {
                state.remove(&key);
                return;
            }
            (Self::Sequence, Some(old)) if old.1 > w => return,
            (Self::Sum, Some((old_v, old_w))) => (sum(old_v, v), sum(old_w, w)),
            (Self::PartialUpdate, Some((old_v, old_w))) => (v.or(old_v), w.or(old_w)),
            _ => (v, w),
        };
        state.insert(key, new);
    }

    fn versions(self) -> impl Strategy<Value = Vec<Version>> {
        let value = move || match self {
            Self::Sequence => (0..5).prop_map(Some).boxed(),
            _ => prop::option::weighted(0.8, 0..100).boxed(),
        };
        let delete = match self {
            Self::Deduplicate => prop::bool::weighted(0.3).boxed(),
            _ => Just(false).boxed(),
        };
        prop::collection::vec((0..12, value(), value(), delete), 0..8)
    }

    fn ops(self) -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            4 => self.versions().prop_map(Op::Commit),
            3 => self.versions().prop_map(Op::WriteOnly),
            1 => any::<bool>().prop_map(|full| Op::Compact { full }),
            1 => Just(Op::Reopen),
        ];
        prop::collection::vec(op, 1..12)
    }
}

type Model = BTreeMap<i32, (Option<i32>, Option<i32>)>;

fn sum(a: Option<i32>, b: Option<i32>) -> Option<i32> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

fn texts(state: &Model) -> Vec<String> {
    let text = |value: &Option<i32>| value.map_or_else(|| "null".to_owned(), |value| value.to_string());
    let mut texts: Vec<String> = state
        .iter()
        .map(|(key, (v, w))| format!("{key} {} {}", text(v), text(w)))
        .collect();
    texts.sort_unstable();
    texts
}

async fn write(write: &mut TableWrite, versions: &[Version]) {
    let column = |values: Vec<Option<i32>>| Arc::new(Int32Array::from(values)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([
        ("k", column(versions.iter().map(|version| Some(version.0)).collect())),
        ("v", column(versions.iter().map(|version| version.1).collect())),
        ("w", column(versions.iter().map(|version| version.2).collect())),
    ]);
    let kinds = versions.iter().map(|version| match version.3 {
        true => RowKind::Delete as i8,
        false => RowKind::Insert as i8,
    });
    write
        .write_with_kinds(&batch.unwrap(), &Int8Array::from_iter_values(kinds))
        .await
        .unwrap();
}

/// Commits what is written; the identifiers of one user must grow.
async fn commit(builder: &WriteBuilder, write: &mut TableWrite, identifier: i64) {
    let messages = write.prepare_commit(true).await.unwrap();
    builder
        .new_commit()
        .unwrap()
        .commit(identifier, messages)
        .await
        .unwrap();
}

async fn play(engine: Engine, producer: &str, bitmap64: bool, ops: Vec<Op>) {
    let place = Place::new();
    let int = || "INT".parse().unwrap();
    let schema = TableSchema::builder()
        .column("k", int())
        .column("v", int())
        .column("w", int())
        .primary_key(["k"])
        .option("bucket", "1")
        .option("deletion-vectors.enabled", "true")
        .option("deletion-vectors.bitmap64", bitmap64.to_string())
        .option("changelog-producer", producer);
    let options = engine.options().iter();
    let table = place
        .create(options.fold(schema, |schema, (key, value)| schema.option(*key, *value)))
        .await;
    let merging = with(&table, "deletion-vectors.merge-on-read", "true");
    let mut builder = table.write_builder();
    let mut writer = builder.new_write().unwrap();
    // What is written, and what of it has left level 0.
    let (mut all, mut taken_up) = (Model::new(), Model::new());
    for (identifier, op) in (0..).zip(ops) {
        match &op {
            Op::Commit(versions) => {
                write(&mut writer, versions).await;
                commit(&builder, &mut writer, identifier).await;
                versions.iter().for_each(|&version| engine.merge(&mut all, version));
            }
            Op::WriteOnly(versions) => {
                // A writer of a bucket ends before another one begins.
                std::mem::replace(&mut writer, builder.new_write().unwrap())
                    .abort()
                    .await;
                let table = with(&table, "write-only", "true");
                let builder = table.write_builder();
                let mut writer = builder.new_write().unwrap();
                write(&mut writer, versions).await;
                commit(&builder, &mut writer, identifier).await;
                writer.abort().await;
                versions.iter().for_each(|&version| engine.merge(&mut all, version));
            }
            Op::Compact { full } => {
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
        let buckets = table.buckets(&TimeTravel::Latest, &Selection::all()).await.unwrap();
        let levels = || buckets.iter().flat_map(|bucket| bucket.runs()).map(|run| run.level);
        if levels().all(|level| level > 0) {
            taken_up.clone_from(&all);
        }
        assert_eq!(rows(&table).await, texts(&taken_up), "read after {op:?}");
        assert_eq!(rows(&merging).await, texts(&all), "merged on reading after {op:?}");
        for split in table.read_builder().new_scan().plan().await.unwrap().splits {
            assert!(split.raw_convertible);
        }
        if let Op::Compact { full: true } = op {
            assert!(levels().all(|level| level == 5));
            assert!(buckets.iter().all(|bucket| bucket.deletion_index_files().is_empty()));
        }
    }
    writer.abort().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn however_it_is_read_the_rows_are_the_same(
        (engine, ops) in prop_oneof![
            Just(Engine::Deduplicate),
            Just(Engine::Sequence),
            Just(Engine::Sum),
            Just(Engine::PartialUpdate),
        ]
        .prop_flat_map(|engine| (Just(engine), engine.ops())),
        producer in prop_oneof![Just("none"), Just("input"), Just("lookup")],
        bitmap64 in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(play(engine, producer, bitmap64, ops));
    }
}
