//! Stages against a model that takes one key after the other, as the reference does.

use std::collections::BTreeMap;

use paimon_format::types::{Datum, RowKind, TypeKind};
use paimon_merge::changelog::{
    ChangelogSettings, FullChangelogMergeFunctionWrapper, LookupChangelogMergeFunctionWrapper, MergeStage,
};
use proptest::prelude::*;

use super::play::{Cut, Record, batch, play};
use crate::table::Table;

/// Runs of a merge, oldest first, by level; then what is below.
const RUNS: [i32; 6] = [3, 2, 1, 0, 0, 0];
const BELOW: [i32; 2] = [4, 5];

/// What a key has on each run: its kind, the user-defined sequence, and a value.
type Versions = Vec<Option<(RowKind, Option<i32>, i32)>>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Engine {
    Newest,
    Sum,
}

struct Model {
    engine: Engine,
    descending: bool,
    row_deduplicate: bool,
}

/// A version with its level.
type Leveled = (i32, Record);

impl Model {
    fn sort(&self, versions: &mut [Leveled]) {
        versions.sort_by(|(_, left), (_, right)| {
            let (a, b) = (&left.values[1], &right.values[1]);
            let by_user = match (a.is_null() || b.is_null(), self.descending) {
                (false, true) => b.cmp(a),
                _ => a.cmp(b),
            };
            by_user.then(left.sequence.cmp(&right.sequence))
        });
    }

    fn merge(&self, versions: &[Leveled]) -> Record {
        let newest = versions.last().unwrap().1.clone();
        if self.engine == Engine::Newest {
            return newest;
        }
        let value = |record: &Record| match record.values[2] {
            Datum::Int32(value) => value,
            _ => 0,
        };
        let sum = versions.iter().fold(0, |sum, (_, record)| match record.kind.is_add() {
            true => sum + value(record),
            false => sum - value(record),
        });
        // Retracts take back the sequence, too.
        let user = match newest.kind.is_add() {
            true => newest.values[1].clone(),
            false => Datum::Null,
        };
        Record {
            kind: RowKind::Insert,
            values: vec![newest.values[0].clone(), user, Datum::Int32(sum)],
            ..newest
        }
    }

    fn diff(&self, before: Option<&Record>, after: &Record, changes: &mut Vec<Record>) {
        let with = |record: &Record, kind| Record { kind, ..record.clone() };
        match (before.filter(|before| before.kind.is_add()), after.kind.is_add()) {
            (None, true) => changes.push(with(after, RowKind::Insert)),
            (None, false) => {}
            (Some(before), false) => changes.push(with(before, RowKind::Delete)),
            (Some(before), true) => {
                if !(self.row_deduplicate && before.values == after.values) {
                    changes.push(with(before, RowKind::UpdateBefore));
                    changes.push(with(after, RowKind::UpdateAfter));
                }
            }
        }
    }

    fn lookup(&self, mut versions: Vec<Leveled>, below: &[Leveled], rows: &mut Vec<Record>, changes: &mut Vec<Record>) {
        let has_level0 = versions.iter().any(|(level, _)| *level == 0);
        let merged_high = versions
            .iter()
            .filter(|(level, _)| *level > 0)
            .min_by_key(|(level, _)| *level);
        let high = merged_high.or(below.first()).cloned();
        versions.retain(|(level, _)| *level == 0);
        if !has_level0 {
            rows.extend(high.map(|(_, record)| record));
            return;
        }
        versions.extend(high.clone());
        self.sort(&mut versions);
        let merged = self.merge(&versions);
        self.diff(high.as_ref().map(|(_, record)| record), &merged, changes);
        rows.push(merged);
    }

    fn full(&self, mut versions: Vec<Leveled>, rows: &mut Vec<Record>, changes: &mut Vec<Record>) {
        let top = versions
            .iter()
            .find(|(level, _)| *level == RUNS[0])
            .map(|(_, record)| record.clone());
        self.sort(&mut versions);
        let merged = match versions.as_slice() {
            [(_, only)] => only.clone(),
            several => self.merge(several),
        };
        if versions.len() > 1 || top.is_none() {
            self.diff(top.as_ref(), &merged, changes);
        }
        rows.extend(Some(merged).filter(|merged| merged.kind.is_add()));
    }
}

/// The top level has no deletes.
fn versions() -> impl Strategy<Value = Versions> {
    let kind = prop_oneof![3 => Just(RowKind::Insert), 1 => Just(RowKind::Delete)];
    let version = (kind, prop::option::weighted(0.8, 0..4i32), 0..3i32);
    let versions = prop::collection::vec(prop::option::weighted(0.4, version), RUNS.len() + BELOW.len());
    versions.prop_map(|mut versions| {
        if let Some((kind, ..)) = &mut versions[0] {
            *kind = RowKind::Insert;
        }
        versions
    })
}

/// Keys with their versions; sequence numbers do not depend on levels.
fn check(model: &Model, keys: &BTreeMap<i32, Versions>, lookup: bool, cut: Cut) -> Result<(), TestCaseError> {
    let mut options = vec![("sequence.field", "s")];
    if model.descending {
        options.push(("sequence.field.sort-order", "descending"));
    }
    let engine = match model.engine {
        Engine::Newest => "deduplicate",
        Engine::Sum => {
            options.push(("fields.v.aggregate-function", "sum"));
            "aggregation"
        }
    };
    let table = Table::new(engine, &[("s", TypeKind::Int), ("v", TypeKind::Int)], &options);
    let mut runs: Vec<Vec<Record>> = vec![Vec::new(); RUNS.len() + BELOW.len()];
    let (mut rows, mut changes) = (Vec::new(), Vec::new());
    for (&key, versions) in keys {
        let (mut merged, mut below) = (Vec::new(), Vec::new());
        for (at, version) in versions.iter().enumerate() {
            let Some((kind, user, value)) = version else { continue };
            let record = Record {
                kind: *kind,
                sequence: ((at * 7 + key as usize) % 8) as i64,
                values: vec![
                    Datum::Int32(key),
                    user.map_or(Datum::Null, Datum::Int32),
                    Datum::Int32(*value),
                ],
            };
            runs[at].push(record.clone());
            match RUNS.get(at) {
                Some(&level) => merged.push((level, record)),
                None => below.push((BELOW[at - RUNS.len()], record)),
            }
        }
        if !merged.is_empty() && lookup {
            model.lookup(merged, &below, &mut rows, &mut changes);
        } else if !merged.is_empty() {
            model.full(merged, &mut rows, &mut changes);
        }
    }
    let settings = ChangelogSettings {
        row_deduplicate: model.row_deduplicate,
        ..ChangelogSettings::default()
    };
    let (engine, schema) = (table.engine.as_ref(), &table.schema);
    let mut stage: Box<dyn MergeStage> = match lookup {
        true => Box::new(LookupChangelogMergeFunctionWrapper::new(engine, schema, Some(&settings)).unwrap()),
        false => Box::new(FullChangelogMergeFunctionWrapper::new(engine, schema, RUNS[0], &settings).unwrap()),
    };
    let batches: Vec<_> = RUNS
        .iter()
        .chain(&BELOW)
        .zip(&runs)
        .map(|(&level, records)| batch(&table, level, records))
        .collect();
    let (runs, below) = batches.split_at(RUNS.len());
    let played = play(&table, stage.as_mut(), runs, below, cut).unwrap();
    prop_assert_eq!(played.rows, rows);
    prop_assert_eq!(played.changes, changes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn stages_do_what_the_model_does(
        keys in prop::collection::btree_map(0..40i32, versions(), 0..20),
        sums in any::<bool>(),
        descending in any::<bool>(),
        row_deduplicate in any::<bool>(),
        lookup in any::<bool>(),
        (batch_rows, block_keys) in prop::sample::select(vec![(100, 100), (1, 1), (3, 4)]),
    ) {
        let engine = if sums { Engine::Sum } else { Engine::Newest };
        let model = Model { engine, descending, row_deduplicate };
        check(&model, &keys, lookup, Cut { batch_rows, block_keys, ..Cut::default() })?;
    }
}
