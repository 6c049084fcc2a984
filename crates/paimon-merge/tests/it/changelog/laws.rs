//! Replaying the changelog over nothing gives the table, whatever was compacted when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use paimon_format::kv::KvBatch;
use paimon_format::types::{Datum, RowKind, TypeKind};
use paimon_merge::changelog::{
    ChangelogSettings, FirstRowMergeFunctionWrapper, FullChangelogMergeFunctionWrapper,
    LookupChangelogMergeFunctionWrapper, LookupMergeFunction, LookupNeed, MergeStage, ReducerMergeFunctionWrapper,
};
use paimon_merge::engine::MergeEngine;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::play::{Cut, Record, batch, play, records};
use crate::table::{Row, Table};

const MAX: i32 = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Producer {
    Lookup,
    FullCompaction,
}

#[derive(Clone, Debug)]
enum Op {
    /// Kinds, keys and values of one file of level 0.
    Write(Vec<(RowKind, i32, Option<i32>, Option<i32>)>),
    /// Level 0 and so many levels above it, to a level as low as may be, or deeper by so many.
    Compact(usize, i32),
    Full,
}

/// One bucket, and who reads its changelog.
struct Bucket<'a> {
    table: &'a Table,
    producer: Producer,
    cut: Cut,
    sequence: i64,
    level0: Vec<Vec<Record>>,
    levels: BTreeMap<i32, Vec<Record>>,
    history: Vec<Row>,
    reader: BTreeMap<Datum, Vec<Datum>>,
}

type State = BTreeMap<Datum, Vec<Datum>>;

fn state(records: impl IntoIterator<Item = Record>) -> State {
    let adds = records.into_iter().filter(|record| record.kind.is_add());
    adds.map(|record| (record.key().clone(), record.values)).collect()
}

impl<'a> Bucket<'a> {
    fn new(table: &'a Table, producer: Producer, cut: Cut) -> Self {
        Self {
            table,
            producer,
            cut,
            sequence: 1,
            level0: Vec::new(),
            levels: BTreeMap::new(),
            history: Vec::new(),
            reader: BTreeMap::new(),
        }
    }

    fn engine(&self) -> Arc<dyn MergeEngine> {
        let engine = Arc::clone(&self.table.engine);
        match self.producer {
            Producer::Lookup => LookupMergeFunction::wrap(engine),
            Producer::FullCompaction => engine,
        }
    }

    fn is_first_row(&self) -> bool {
        self.table.engine.promises().existence_only
    }

    fn plain(&self) -> ReducerMergeFunctionWrapper {
        ReducerMergeFunctionWrapper::new(self.engine().as_ref(), &self.table.schema).unwrap()
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Write(rows) => self.write(rows),
            Op::Compact(levels, deeper) => self.compact(*levels, *deeper),
            Op::Full => self.compact(usize::MAX, 0),
        }
    }

    fn write(&mut self, rows: &[(RowKind, i32, Option<i32>, Option<i32>)]) {
        let number = |value: Option<i32>| value.map_or(Datum::Null, Datum::Int32);
        let rows: Vec<Row> = rows
            .iter()
            .map(|&(kind, key, a, b)| (kind, vec![Datum::Int32(key), number(a), number(b)]))
            .collect();
        let flushed = self
            .table
            .merge_passing(&[self.table.run(&rows, self.sequence)])
            .unwrap();
        self.sequence += rows.len() as i64;
        self.level0.push(records(&flushed));
        self.history.extend(rows);
    }

    fn compact(&mut self, levels: usize, deeper: i32) {
        let mut taken: Vec<i32> = self.levels.keys().copied().take(levels).collect();
        let next = |taken: &[i32]| self.levels.keys().copied().nth(taken.len());
        // Something must be above the next run.
        if taken.is_empty() && next(&taken) == Some(1) {
            taken.push(1);
        }
        let output = match next(&taken) {
            None => MAX,
            Some(next) => {
                let lowest = taken.last().copied().unwrap_or(1);
                (lowest + deeper.max(0)).min(next - 1)
            }
        };
        if self.level0.is_empty() && taken.len() < 2 && !taken.iter().any(|&level| level != output) {
            return;
        }
        let below: Vec<KvBatch> = self
            .levels
            .iter()
            .filter(|(level, _)| **level > output)
            .map(|(&level, records)| batch(self.table, level, records))
            .collect();
        let mut runs: Vec<KvBatch> = taken
            .iter()
            .rev()
            .map(|level| batch(self.table, *level, &self.levels[level]))
            .collect();
        let has_level0 = !self.level0.is_empty();
        let lone = (self.level0.len() == 1 && taken.is_empty()).then(|| self.level0[0].clone());
        runs.extend(self.level0.drain(..).map(|records| batch(self.table, 0, &records)));
        let (engine, schema) = (&self.table.engine, &self.table.schema);
        let changelog = ChangelogSettings::default();
        let mut stage: Box<dyn MergeStage> = match self.producer {
            Producer::Lookup if !has_level0 => Box::new(self.plain()),
            Producer::FullCompaction if output != MAX => Box::new(self.plain()),
            Producer::Lookup if self.is_first_row() => {
                Box::new(FirstRowMergeFunctionWrapper::new(engine.as_ref(), schema, Some(&changelog)).unwrap())
            }
            Producer::Lookup => {
                Box::new(LookupChangelogMergeFunctionWrapper::new(engine.as_ref(), schema, Some(&changelog)).unwrap())
            }
            Producer::FullCompaction => {
                Box::new(FullChangelogMergeFunctionWrapper::new(engine.as_ref(), schema, MAX, &changelog).unwrap())
            }
        };
        let need = if self.is_first_row() {
            LookupNeed::Existence
        } else {
            LookupNeed::Value
        };
        let cut = Cut { need, ..self.cut };
        let played = play(self.table, stage.as_mut(), &runs, &below, cut).unwrap();
        let mut rows = played.rows;
        let promises = engine.promises();
        let upgrades = self.producer == Producer::Lookup && promises.newest_wins && schema.sequence.is_none();
        if let Some(file) = lone.filter(|_| upgrades) {
            // Its newest rows are the result: the file only changes its level.
            assert_eq!(file, rows);
        }
        if below.is_empty() {
            rows.retain(|record| record.kind.is_add());
        }
        for level in taken {
            self.levels.remove(&level);
        }
        if !rows.is_empty() {
            assert!(self.levels.insert(output, rows).is_none());
        }
        self.replay(&played.changes);
    }

    /// Who follows the changelog sees each change of what was there, and nothing else.
    fn replay(&mut self, changes: &[Record]) {
        for (at, change) in changes.iter().enumerate() {
            let key = change.key().clone();
            match change.kind {
                RowKind::UpdateBefore => {
                    assert_eq!(self.reader.get(&key), Some(&change.values), "{change:?}");
                    let after = changes.get(at + 1);
                    assert!(after.is_some_and(|after| after.kind == RowKind::UpdateAfter && *after.key() == key));
                }
                RowKind::Delete => assert_eq!(self.reader.remove(&key).as_ref(), Some(&change.values), "{change:?}"),
                RowKind::UpdateAfter if !self.is_first_row() => {
                    assert!(self.reader.insert(key, change.values.clone()).is_some(), "{change:?}");
                }
                RowKind::Insert | RowKind::UpdateAfter => {
                    assert!(self.reader.insert(key, change.values.clone()).is_none(), "{change:?}");
                }
            }
        }
    }

    /// What a read of the levels from `from` on, and of level 0 if `with_level0`, gives.
    fn read(&self, from: i32, with_level0: bool) -> State {
        let deep = self.levels.iter().rev().filter(|(level, _)| **level >= from);
        let mut runs: Vec<KvBatch> = deep
            .map(|(&level, records)| batch(self.table, level, records))
            .collect();
        if with_level0 {
            runs.extend(self.level0.iter().map(|records| batch(self.table, 0, records)));
        }
        state(play(self.table, &mut self.plain(), &runs, &[], self.cut).unwrap().rows)
    }

    fn check(&self, knows_history: bool) {
        let seen = match self.producer {
            Producer::Lookup => self.read(1, false),
            Producer::FullCompaction => self.read(MAX, false),
        };
        assert_eq!(self.reader, seen, "the changelog and the table");
        if self.producer == Producer::Lookup {
            // The lowest level above 0 that has a key has all of it.
            let mut lowest: BTreeMap<Datum, Record> = BTreeMap::new();
            for record in self.levels.values().flatten() {
                lowest.entry(record.key().clone()).or_insert_with(|| record.clone());
            }
            assert_eq!(state(lowest.into_values()), seen, "whole rows");
        }
        if knows_history {
            let history = self.table.merge_passing(&[self.table.run(&self.history, 1)]).unwrap();
            assert_eq!(
                self.read(1, true),
                state(records(&history)),
                "the table and its history"
            );
        }
    }
}

/// `once`: a file is written with one row a key. (A delete and a later row of its key in one buffer become the later row alone, and what
/// is older does not know of the delete.)
fn ops(kinds: &'static [RowKind], once: bool) -> impl Strategy<Value = Vec<Op>> {
    let value = prop_oneof![1 => Just(None), 4 => (0..6i32).prop_map(Some)];
    let row = (prop::sample::select(kinds), 0..5i32, value.clone(), value);
    let op = prop_oneof![
        4 => prop::collection::vec(row, 1..6).prop_map(move |mut rows| {
            let mut keys = BTreeSet::new();
            rows.retain(|&(_, key, ..)| keys.insert(key) || !once);
            Op::Write(rows)
        }),
        4 => (0..3usize, 0..3i32).prop_map(|(levels, deeper)| Op::Compact(levels, deeper)),
        1 => Just(Op::Full),
    ];
    prop::collection::vec(op, 1..24)
}

const ALL: &[RowKind] = &[
    RowKind::Insert,
    RowKind::Insert,
    RowKind::UpdateAfter,
    RowKind::UpdateAfter,
    RowKind::UpdateBefore,
    RowKind::Delete,
];
const ADDS: &[RowKind] = &[RowKind::Insert, RowKind::UpdateAfter];
const INSERTS_AND_DELETES: &[RowKind] = &[RowKind::Insert, RowKind::Insert, RowKind::UpdateAfter, RowKind::Delete];

/// What a table is given, and what holds for it.
struct Law {
    options: &'static [(&'static str, &'static str)],
    kinds: &'static [RowKind],
    /// Its rows are those that its history gives when it is merged at once. They are not where a delete that was dropped is forgotten
    /// with its sequence, and where a lone version is given to the engine by look-ups only.
    knows_history: bool,
    /// Compactions may merge some of the runs without looking older rows up.
    without_lookups: bool,
    /// See [`ops`].
    once: bool,
}

impl Law {
    fn check(&self) {
        let engine = self.options.iter().find(|(key, _)| *key == "merge-engine").unwrap().1;
        let table = Table::new(engine, &[("a", TypeKind::Int), ("b", TypeKind::Int)], self.options);
        let producers = match self.without_lookups {
            true => &[Producer::Lookup, Producer::FullCompaction][..],
            false => &[Producer::Lookup],
        };
        let config = Config {
            cases: 16,
            failure_persistence: None,
            ..Config::default()
        };
        for &producer in producers {
            for (batch_rows, block_keys) in [(100, 100), (2, 1)] {
                let cut = Cut {
                    batch_rows,
                    block_keys,
                    ..Cut::default()
                };
                let outcome = TestRunner::new(config.clone()).run(&ops(self.kinds, self.once), |ops| {
                    let mut bucket = Bucket::new(&table, producer, cut);
                    for op in &ops {
                        bucket.apply(op);
                        bucket.check(self.knows_history);
                    }
                    Ok(())
                });
                if let Err(error) = outcome {
                    panic!("{:?}, {producer:?}: {error}", self.options);
                }
            }
        }
    }
}

/// Where compactions always look up, a key is written once a run.
fn law(
    options: &'static [(&'static str, &'static str)],
    kinds: &'static [RowKind],
    knows_history: bool,
    without_lookups: bool,
) -> Law {
    Law {
        options,
        kinds,
        knows_history,
        without_lookups,
        once: !without_lookups,
    }
}

#[test]
fn deduplicate() {
    let law = |options, kinds, knows_history| law(options, kinds, knows_history, true);
    law(&[("merge-engine", "deduplicate")], ALL, true).check();
    law(&[("merge-engine", "deduplicate"), ("sequence.field", "a")], ADDS, true).check();
    law(
        &[("merge-engine", "deduplicate"), ("sequence.field", "a,b")],
        ALL,
        false,
    )
    .check();
    law(&[("merge-engine", "deduplicate"), ("ignore-delete", "true")], ALL, true).check();
    let descending = &[
        ("merge-engine", "deduplicate"),
        ("sequence.field", "b"),
        ("sequence.field.sort-order", "descending"),
    ];
    law(descending, ADDS, true).check();
}

#[test]
fn partial_update() {
    law(&[("merge-engine", "partial-update")], ADDS, true, true).check();
    let on_delete = &[
        ("merge-engine", "partial-update"),
        ("partial-update.remove-record-on-delete", "true"),
    ];
    law(on_delete, INSERTS_AND_DELETES, true, false).check();
    let group = &[("merge-engine", "partial-update"), ("fields.b.sequence-group", "a")];
    law(group, ADDS, false, true).check();
    law(group, ALL, false, true).check();
    let on_group = &[
        ("merge-engine", "partial-update"),
        ("fields.b.sequence-group", "a"),
        ("partial-update.remove-record-on-sequence-group", "b"),
    ];
    law(on_group, INSERTS_AND_DELETES, false, false).check();
}

#[test]
fn aggregation() {
    let sums = &[
        ("merge-engine", "aggregation"),
        ("fields.default-aggregate-function", "sum"),
    ];
    law(sums, ADDS, true, true).check();
    law(sums, ALL, false, true).check();
    let ordered = &[
        ("merge-engine", "aggregation"),
        ("fields.a.aggregate-function", "max"),
        ("sequence.field", "b"),
    ];
    law(ordered, ADDS, true, true).check();
    law(&[("merge-engine", "aggregation")], ADDS, true, true).check();
    let on_delete = &[
        ("merge-engine", "aggregation"),
        ("fields.default-aggregate-function", "sum"),
        ("aggregation.remove-record-on-delete", "true"),
    ];
    law(on_delete, INSERTS_AND_DELETES, true, false).check();
}

#[test]
fn first_row() {
    let law = |options, kinds| Law {
        once: false,
        ..law(options, kinds, true, false)
    };
    law(&[("merge-engine", "first-row")], ADDS).check();
    law(&[("merge-engine", "first-row"), ("ignore-delete", "true")], ALL).check();
}
