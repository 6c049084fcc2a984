//! Each row of the tables that say what a stage gives.

use std::slice::from_ref;
use std::sync::Arc;

use paimon_format::kv::RowLevels;
use paimon_format::types::{DataType, Datum, RowKind, TypeKind};
use paimon_merge::changelog::{
    ChangelogSettings, FirstRowMergeFunctionWrapper, FullChangelogMergeFunctionWrapper,
    LookupChangelogMergeFunctionWrapper, LookupMergeFunction, LookupNeed, MergeStage, ReducerMergeFunctionWrapper,
};

use super::play::{Cut, Played, play, run, text};
use crate::table::{STRING, Table};

const MAX: i32 = 5;

/// Runs by level, oldest first, and what is below them, lowest level first.
struct Case<'a> {
    table: &'a Table,
    settings: ChangelogSettings,
    runs: &'a [(i32, &'a str)],
    below: &'a [(i32, &'a str)],
}

impl<'a> Case<'a> {
    fn new(table: &'a Table, runs: &'a [(i32, &'a str)], below: &'a [(i32, &'a str)]) -> Self {
        Self {
            table,
            settings: ChangelogSettings::default(),
            runs,
            below,
        }
    }

    fn row_deduplicate(mut self, ignored: &[&str]) -> Self {
        self.settings.row_deduplicate = true;
        self.settings.row_deduplicate_ignore_fields = ignored.iter().map(|&name| name.to_owned()).collect();
        self
    }

    fn play(&self, stage: &mut dyn MergeStage, cut: Cut) -> Result<Played, String> {
        let batches = |runs: &[(i32, &str)], first: i64, step: i64| {
            let runs = runs.iter().zip(0..);
            runs.map(|(&(level, rows), at)| run(self.table, level, first + at * step, rows))
                .collect::<Vec<_>>()
        };
        let (runs, below) = (batches(self.runs, 10_000, 100), batches(self.below, 1_000, -100));
        play(self.table, stage, &runs, &below, cut).map_err(|error| error.to_string())
    }

    fn lookup_stage(&self) -> LookupChangelogMergeFunctionWrapper {
        let (engine, schema) = (self.table.engine.as_ref(), &self.table.schema);
        LookupChangelogMergeFunctionWrapper::new(engine, schema, Some(&self.settings)).unwrap()
    }

    /// What the lookup stage gives: rows and changes.
    fn lookup(&self) -> Result<(String, String), String> {
        let played = self.play(&mut self.lookup_stage(), Cut::default())?;
        Ok((text(&played.rows), text(&played.changes)))
    }

    fn full(&self) -> Result<(String, String), String> {
        let (engine, schema) = (self.table.engine.as_ref(), &self.table.schema);
        let mut stage = FullChangelogMergeFunctionWrapper::new(engine, schema, MAX, &self.settings).unwrap();
        let played = self.play(&mut stage, Cut::default())?;
        assert!(played.asked.is_empty());
        Ok((text(&played.rows), text(&played.changes)))
    }

    fn first_row(&self) -> Result<(String, String, String), String> {
        let (engine, schema) = (self.table.engine.as_ref(), &self.table.schema);
        let mut stage = FirstRowMergeFunctionWrapper::new(engine, schema, Some(&self.settings)).unwrap();
        let cut = Cut {
            need: LookupNeed::Existence,
            ..Cut::default()
        };
        let played = self.play(&mut stage, cut)?;
        Ok((text(&played.rows), text(&played.changes), format!("{:?}", played.asked)))
    }
}

fn given(rows: &str, changes: &str) -> Result<(String, String), String> {
    Ok((rows.to_owned(), changes.to_owned()))
}

fn deduplicate() -> Table {
    Table::new("deduplicate", &[("v", STRING)], &[])
}

fn sum(options: &[(&str, &str)]) -> Table {
    let sum = [("fields.v.aggregate-function", "sum")];
    let options: Vec<(&str, &str)> = sum.iter().chain(options).copied().collect();
    Table::new("aggregation", &[("v", TypeKind::Int)], &options)
}

#[test]
fn old_and_new_row_of_a_lookup() {
    let table = deduplicate();
    // Old row, row on level 0, merged row, changes; the old row is looked up, then merged.
    for (before, level0, merged, changes) in [
        ("", "+I 1 a", "+I 1 a", "+I 1 a"),
        ("-D 1 x", "+I 1 a", "+I 1 a", "+I 1 a"),
        ("", "-D 1 a", "-D 1 a", ""),
        ("-D 1 x", "-D 1 a", "-D 1 a", ""),
        ("+I 1 x", "-D 1 a", "-D 1 a", "-D 1 x"),
        ("+I 1 x", "-U 1 a", "-U 1 a", "-D 1 x"),
        ("+I 1 x", "+U 1 a", "+U 1 a", "-U 1 x; +U 1 a"),
        ("+U 1 x", "+I 1 x", "+I 1 x", "-U 1 x; +U 1 x"),
    ] {
        let (level0, old) = ([(0, level0)], [(5, before)]);
        assert_eq!(
            Case::new(&table, &level0, &old).lookup(),
            given(merged, changes),
            "{old:?} {level0:?}"
        );
        let merging = [old[0], level0[0]];
        assert_eq!(
            Case::new(&table, &merging, &[]).lookup(),
            given(merged, changes),
            "{merging:?}"
        );
    }
}

#[test]
fn equal_rows_are_left_out_when_that_is_asked_for() {
    let table = Table::new("deduplicate", &[("v", STRING), ("ts", TypeKind::Double)], &[]);
    let changes = |level0, old, ignored: &[&str]| {
        let (level0, old) = ([(0, level0)], [(5, old)]);
        let case = Case::new(&table, &level0, &old).row_deduplicate(ignored);
        let (rows, changes) = case.lookup().unwrap();
        assert_eq!(rows, level0[0].1);
        changes
    };
    assert_eq!(changes("+I 1 a 10", "+I 1 a 10", &[]), "");
    assert_eq!(changes("+I 1 a 10", "+U 1 a 10", &[]), "");
    assert_eq!(changes("+I 1 a 10", "+I 1 a 11", &[]), "-U 1 a 11; +U 1 a 10");
    assert_eq!(changes("+I 1 a 10", "+I 1 a 11", &["ts"]), "");
    // Blanks and unknown names do no harm; the old value of an ignored column is what was stored.
    assert_eq!(
        changes("+I 1 b 30", "+I 1 a 10", &["ts", "gone"]),
        "-U 1 a 10; +U 1 b 30"
    );
    assert_eq!(changes("+I 1 N N", "+I 1 N N", &[]), "");
    assert_eq!(changes("+I 1 N 1", "+I 1 a 1", &[]), "-U 1 a 1; +U 1 N 1");
    assert_eq!(changes("+I 1 a NaN", "+I 1 a NaN", &[]), "");
    assert_eq!(changes("+I 1 a -0", "+I 1 a 0", &[]), "-U 1 a 0; +U 1 a -0");
    // Some equal, some not, some new.
    assert_eq!(
        changes(
            "+I 1 a 1; +I 2 b 2; +I 3 c 3; +I 4 d 4",
            "+I 1 a 1; +I 2 x 2; +I 4 d 4",
            &[]
        ),
        "-U 2 x 2; +U 2 b 2; +I 3 c 3"
    );
}

/// How many changes an update of a nested column comes to, with `row_deduplicate`.
fn changes_of_update(kind: &TypeKind, old: &Datum, new: &Datum) -> usize {
    let table = Table::new("deduplicate", &[("n", kind.clone())], &[]);
    let row = |value: &Datum| [(RowKind::Insert, vec![Datum::Int32(1), value.clone()])];
    let settings = ChangelogSettings {
        row_deduplicate: true,
        ..ChangelogSettings::default()
    };
    let mut runs = vec![table.run(&row(old), 1), table.run(&row(new), 2)];
    runs[0].levels = RowLevels::All(3);
    let engine = table.engine.as_ref();
    let mut stage = LookupChangelogMergeFunctionWrapper::new(engine, &table.schema, Some(&settings)).unwrap();
    let played = play(&table, &mut stage, &runs, &[], Cut::default()).unwrap();
    played.changes.len()
}

fn ints(values: &[i32]) -> Datum {
    Datum::Array(values.iter().copied().map(Datum::Int32).collect())
}

fn map(entries: &[(i32, Datum)]) -> Datum {
    let entries = entries.iter().cloned();
    Datum::Map(entries.map(|(key, value)| (Datum::Int32(key), value)).collect())
}

#[test]
fn equal_arrays_are_equal() {
    let kind = TypeKind::Array(Box::new(DataType::nullable(TypeKind::Int)));
    for (old, new, changes) in [
        (ints(&[1, 2]), ints(&[1, 2]), 0),
        (ints(&[1, 2]), ints(&[2, 1]), 2),
        (ints(&[1, 2]), ints(&[1, 3]), 2),
        (ints(&[1, 2]), Datum::Null, 2),
        (Datum::Null, Datum::Null, 0),
        (ints(&[]), Datum::Null, 2),
    ] {
        assert_eq!(changes_of_update(&kind, &old, &new), changes, "{old:?} {new:?}");
    }
}

#[test]
fn maps_are_equal_in_any_order() {
    let of = |key: TypeKind, value: TypeKind| {
        TypeKind::Map(Box::new(DataType::not_null(key)), Box::new(DataType::nullable(value)))
    };
    let flat = of(TypeKind::Int, TypeKind::Int);
    let (one, two, three) = ((1, Datum::Int32(10)), (2, Datum::Null), (3, Datum::Int32(30)));
    let all = map(&[one.clone(), two.clone(), three.clone()]);
    for (new, changes) in [
        (all.clone(), 0),
        (map(&[three.clone(), one.clone(), two.clone()]), 0),
        (map(&[one.clone(), two]), 2),
        (map(&[three, one, (2, Datum::Int32(0))]), 2),
        (map(&[]), 2),
        (Datum::Null, 2),
    ] {
        assert_eq!(changes_of_update(&flat, &all, &new), changes, "{new:?}");
        assert_eq!(changes_of_update(&flat, &new, &all), changes, "{new:?}");
    }
    // Maps in maps, and in arrays, whose order counts.
    let deep = of(TypeKind::Int, TypeKind::Array(Box::new(DataType::nullable(flat))));
    let inner = |keys: &[i32]| map(&keys.iter().map(|&key| (key, Datum::Int32(key))).collect::<Vec<_>>());
    let old = map(&[
        (1, Datum::Array(vec![inner(&[1, 2]), inner(&[3])])),
        (2, Datum::Array(Vec::new())),
    ]);
    let turned = map(&[
        (2, Datum::Array(Vec::new())),
        (1, Datum::Array(vec![inner(&[2, 1]), inner(&[3])])),
    ]);
    assert_eq!(changes_of_update(&deep, &old, &turned), 0);
    let other = map(&[
        (2, Datum::Array(Vec::new())),
        (1, Datum::Array(vec![inner(&[3]), inner(&[2, 1])])),
    ]);
    assert_eq!(changes_of_update(&deep, &old, &other), 2);
}

#[test]
fn changes_can_be_filtered() {
    let table = deduplicate();
    let (level0, old) = ([(0, "-D 1 a; +I 2 b; +I 3 c")], [(5, "+I 1 x; +I 2 y")]);
    let mut case = Case::new(&table, &level0, &old);
    case.settings.ignore_update_before = true;
    assert_eq!(case.lookup().unwrap().1, "-D 1 x; +U 2 b; +I 3 c");
    case.settings.ignore_delete = true;
    assert_eq!(case.lookup().unwrap().1, "+U 2 b; +I 3 c");
    case.settings.ignore_update_before = false;
    assert_eq!(case.lookup().unwrap().1, "-U 2 y; +U 2 b; +I 3 c");
}

#[test]
fn the_old_row_is_that_of_the_lowest_level() {
    let table = sum(&[]);
    // Several levels are merged: only the lowest counts, and nothing is looked up.
    let runs = [(3, "+I 1 1"), (2, "+I 1 1"), (1, "+I 1 2"), (0, "+I 1 2")];
    let case = Case::new(&table, &runs, &[(5, "+I 1 100")]);
    let played = case.play(&mut case.lookup_stage(), Cut::default()).unwrap();
    assert_eq!(
        (text(&played.rows), text(&played.changes)),
        ("+I 1 4".into(), "-U 1 2; +U 1 4".into())
    );
    assert!(played.asked.is_empty());
    // All rows of level 0 count, once.
    let level0 = [(0, "+I 1 1"), (0, "+I 1 2")];
    assert_eq!(
        Case::new(&table, &level0, &[(5, "+I 1 10")]).lookup(),
        given("+I 1 13", "-U 1 10; +U 1 13")
    );
    // The first level that has the key is the one that counts.
    let old = [(3, "+I 1 7"), (5, "+I 1 6")];
    assert_eq!(
        Case::new(&table, &[(0, "+I 1 1")], &old).lookup(),
        given("+I 1 8", "-U 1 7; +U 1 8")
    );
    // Keys without rows on level 0 stay as they are, and are not looked up.
    let high = [(5, "+I 1 9; +I 2 1"), (4, "+I 1 3"), (0, "+I 2 1")];
    assert_eq!(
        Case::new(&table, &high, &[]).lookup(),
        given("+I 1 3; +I 2 2", "-U 2 1; +U 2 2")
    );
}

#[test]
fn an_old_row_has_its_place_in_the_order_of_versions() {
    let columns = [("ts", TypeKind::Int), ("v", STRING)];
    let ascending = Table::new("deduplicate", &columns, &[("sequence.field", "ts")]);
    let descending = [("sequence.field", "ts"), ("sequence.field.sort-order", "descending")];
    let descending = Table::new("deduplicate", &columns, &descending);
    let (late, old) = ([(0, "+I 1 5 b")], [(5, "+I 1 10 a")]);
    let kept = given("+I 1 10 a", "-U 1 10 a; +U 1 10 a");
    assert_eq!(Case::new(&ascending, &late, &old).lookup(), kept);
    assert_eq!(Case::new(&ascending, &[old[0], late[0]], &[]).lookup(), kept);
    assert_eq!(
        Case::new(&ascending, &late, &old).row_deduplicate(&[]).lookup(),
        given("+I 1 10 a", "")
    );
    assert_eq!(
        Case::new(&descending, &late, &old).lookup(),
        given("+I 1 5 b", "-U 1 10 a; +U 1 5 b")
    );
    // Null is the lowest in both directions; of equal ones the later wins.
    let null = [(0, "+I 1 N n")];
    assert_eq!(Case::new(&ascending, &null, &old).lookup(), kept);
    assert_eq!(Case::new(&descending, &null, &old).lookup(), kept);
    let tie = [(0, "+I 1 10 b")];
    assert_eq!(
        Case::new(&ascending, &tie, &old).lookup(),
        given("+I 1 10 b", "-U 1 10 a; +U 1 10 b")
    );
    // Between two rows of level 0.
    let listed = [("sequence.field", "ts"), ("fields.v.aggregate-function", "listagg")];
    let listed = Table::new("aggregation", &columns, &listed);
    let level0 = [(0, "+I 1 20 c"), (0, "+I 1 5 a")];
    assert_eq!(
        Case::new(&listed, &level0, &[(4, "+I 1 10 b")]).lookup(),
        given("+I 1 20 a,b,c", "-U 1 10 b; +U 1 20 a,b,c")
    );
    // A delete that is newer by its sequence hides a late row.
    let deleted = [(4, "-D 1 10 a")];
    assert_eq!(Case::new(&ascending, &late, &deleted).lookup(), given("-D 1 10 a", ""));
}

#[test]
fn of_versions_that_nothing_tells_apart_the_deeper_one_is_older() {
    let table = deduplicate();
    // Both have sequence number 1: two writers that did not know of each other.
    let (old, new) = (run(&table, 5, 1, "+I 1 a"), run(&table, 0, 1, "+I 1 b"));
    let mut stage = Case::new(&table, &[], &[]).lookup_stage();
    let found = play(&table, &mut stage, from_ref(&new), from_ref(&old), Cut::default()).unwrap();
    let merged = play(&table, &mut stage, &[old, new], &[], Cut::default()).unwrap();
    for played in [found, merged] {
        assert_eq!(
            (text(&played.rows), text(&played.changes)),
            ("+I 1 b".into(), "-U 1 a; +U 1 b".into())
        );
    }
}

#[test]
fn the_engine_sees_lone_rows_of_level_0() {
    assert_eq!(
        Case::new(&sum(&[]), &[(0, "-D 1 5")], &[]).lookup(),
        given("+I 1 -5", "+I 1 -5")
    );
    assert_eq!(
        Case::new(&sum(&[]), &[(0, "-D 1 3")], &[(4, "+I 1 15")]).lookup(),
        given("+I 1 12", "-U 1 15; +U 1 12")
    );
    let table = Table::new("partial-update", &[("a", TypeKind::Int)], &[]);
    let error = Case::new(&table, &[(0, "-D 1 5")], &[]).lookup().unwrap_err();
    assert!(
        error.starts_with("merge engine partial-update cannot take a -D row"),
        "{error}"
    );
}

#[test]
fn what_comes_after_a_delete_begins_anew() {
    let columns = [("a", TypeKind::Int), ("b", TypeKind::Int)];
    let on_delete = [("partial-update.remove-record-on-delete", "true")];
    let partial = Table::new("partial-update", &columns, &on_delete);
    let groups = [
        ("fields.b.sequence-group", "a"),
        ("partial-update.remove-record-on-sequence-group", "b"),
    ];
    let groups = Table::new("partial-update", &columns, &groups);
    let aggregation = sum(&[("aggregation.remove-record-on-delete", "true")]);
    for (table, deleted, level0, merged) in [
        (&partial, "-D 1 5 7", "+I 1 N 9", "+I 1 N 9"),
        (&groups, "-D 1 5 7", "+I 1 6 8", "+I 1 6 8"),
        (&aggregation, "-D 1 10", "+I 1 5", "+I 1 5"),
    ] {
        let (level0, old) = ([(0, level0)], [(4, deleted)]);
        assert_eq!(Case::new(table, &level0, &old).lookup(), given(merged, merged));
        assert_eq!(
            Case::new(table, &[old[0], level0[0]], &[]).lookup(),
            given(merged, merged)
        );
        let old = [(4, deleted), (5, merged)];
        assert_eq!(Case::new(table, &level0, &old).lookup(), given(merged, merged));
    }
    // An engine that refuses deletes does not see an old one, which other options have left.
    let refusing = Table::new("partial-update", &columns, &[]);
    assert_eq!(
        Case::new(&refusing, &[(0, "+I 1 N 9")], &[(4, "-D 1 5 7")]).lookup(),
        given("+I 1 N 9", "+I 1 N 9")
    );
    let merging = [(4, "-D 1 5 7"), (0, "+I 1 N 9")];
    assert_eq!(
        Case::new(&refusing, &merging, &[]).lookup(),
        given("+I 1 N 9", "+I 1 N 9")
    );
}

#[test]
fn a_key_of_which_nothing_is_left_has_no_change() {
    let table = Table::new("deduplicate", &[("v", STRING)], &[("ignore-delete", "true")]);
    assert_eq!(Case::new(&table, &[(0, "-D 1 a")], &[]).lookup(), given("", ""));
    assert_eq!(
        Case::new(&table, &[(0, "-D 1 a; +I 2 c")], &[(5, "+I 1 b")]).lookup(),
        given("+I 1 b; +I 2 c", "-U 1 b; +U 1 b; +I 2 c")
    );
    let two = [(0, "-D 1 a; +I 2 c"), (0, "-D 1 a")];
    assert_eq!(Case::new(&table, &two, &[]).lookup(), given("+I 2 c", "+I 2 c"));
    assert_eq!(Case::new(&table, &two, &[]).full(), given("+I 2 c", "+I 2 c"));
}

#[test]
fn without_changelog_rows_are_merged_all_the_same() {
    let table = sum(&[]);
    let case = Case::new(&table, &[(0, "+I 1 5; +I 2 6")], &[(5, "+I 1 10")]);
    let engine = table.engine.as_ref();
    let mut stage = LookupChangelogMergeFunctionWrapper::new(engine, &table.schema, None).unwrap();
    for (need, rows) in [
        (LookupNeed::Value, "+I 1 15; +I 2 6"),
        (LookupNeed::PositionAndValue, "+I 1 15; +I 2 6"),
        // Only where it is: what it held does not matter.
        (LookupNeed::Position, "+I 1 5; +I 2 6"),
    ] {
        let cut = Cut { need, ..Cut::default() };
        let played = case.play(&mut stage, cut).unwrap();
        assert_eq!(
            (text(&played.rows), text(&played.changes)),
            (rows.into(), String::new())
        );
        assert_eq!(played.asked.len(), 2);
    }
}

#[test]
fn first_rows() {
    let table = Table::new("first-row", &[("v", STRING)], &[]);
    let first_row = |runs: &[(i32, &str)], below: &[(i32, &str)]| Case::new(&table, runs, below).first_row().unwrap();
    let given = |rows: &str, changes: &str, asked: &str| (rows.to_owned(), changes.to_owned(), asked.to_owned());
    // New, and known from a look-up.
    assert_eq!(
        first_row(&[(0, "+I 1 c; +I 3 d")], &[(5, "+I 1 a; +I 2 b")]),
        given("+I 3 d", "+I 3 d", "[Int32(1), Int32(3)]")
    );
    // Known from the merge: it stays, and is not asked for.
    assert_eq!(
        first_row(&[(5, "+I 1 a; +I 2 b"), (0, "+I 1 c; +I 3 d")], &[]),
        given("+I 1 a; +I 2 b; +I 3 d", "+I 3 d", "[Int32(3)]")
    );
    // Kinds stay as they were written.
    assert_eq!(
        first_row(&[(0, "+U 1 a"), (0, "+I 1 b")], &[]),
        given("+U 1 a", "+U 1 a", "[Int32(1)]")
    );
    assert_eq!(
        Case::new(&table, &[(0, "-D 1 a")], &[]).first_row().unwrap_err(),
        "merge engine first-row cannot take a -D row: ignore-delete = true lets it ignore -U and -D rows"
    );
}

#[test]
fn first_rows_without_deletes() {
    let table = Table::new("first-row", &[("v", STRING)], &[("ignore-delete", "true")]);
    let runs = [(0, "-D 1 a; -D 2 a"), (0, "+I 2 b; -U 3 a")];
    let case = Case::new(&table, &runs, &[]);
    let given = ("+I 2 b".to_owned(), "+I 2 b".to_owned(), "[Int32(2)]".to_owned());
    assert_eq!(case.first_row(), Ok(given));
    let error = FirstRowMergeFunctionWrapper::new(deduplicate().engine.as_ref(), &table.schema, None);
    assert!(error.is_err());
}

#[test]
fn top_row_and_merged_row_of_a_full_compaction() {
    let table = deduplicate();
    for (runs, rows, changes) in [
        // One row.
        (&[(5, "+I 1 a")][..], "+I 1 a", ""),
        (&[(0, "+I 1 a")], "+I 1 a", "+I 1 a"),
        (&[(3, "+U 1 a")], "+U 1 a", "+I 1 a"),
        (&[(0, "-D 1 a")], "", ""),
        // Several, none of them on the top level.
        (&[(0, "+I 1 a"), (0, "+U 1 b")], "+U 1 b", "+I 1 b"),
        (&[(4, "+I 1 a"), (0, "-D 1 b")], "", ""),
        // Several, one on the top level.
        (&[(5, "+I 1 a"), (0, "-D 1 b")], "", "-D 1 a"),
        (
            &[(5, "+I 1 a"), (3, "-D 1 b"), (0, "+I 1 c")],
            "+I 1 c",
            "-U 1 a; +U 1 c",
        ),
        (&[(5, "+I 1 a"), (0, "+I 1 a")], "+I 1 a", "-U 1 a; +U 1 a"),
        (
            &[(5, "+I 1 a; +I 2 b; +I 3 c"), (0, "+I 1 d; -D 2 b")],
            "+I 1 d; +I 3 c",
            "-U 1 a; +U 1 d; -D 2 b",
        ),
    ] {
        assert_eq!(Case::new(&table, runs, &[]).full(), given(rows, changes), "{runs:?}");
    }
    let same = [(5, "+I 1 a"), (0, "+I 1 a")];
    assert_eq!(
        Case::new(&table, &same, &[]).row_deduplicate(&[]).full(),
        given("+I 1 a", "")
    );
    // A lone row is not given to the engine, several are.
    assert_eq!(Case::new(&sum(&[]), &[(0, "-D 1 5")], &[]).full(), given("", ""));
    assert_eq!(
        Case::new(&sum(&[]), &[(5, "+I 1 15"), (0, "+I 1 1"), (0, "-D 1 2")], &[]).full(),
        given("+I 1 14", "-U 1 15; +U 1 14")
    );
    let twice = [(5, "+I 1 a"), (5, "+I 1 b")];
    let error = Case::new(&table, &twice, &[]).full().unwrap_err();
    assert!(error.contains("two rows on the top level 5"), "{error}");
}

#[test]
fn reads_of_lookup_tables_take_the_lowest_level() {
    let table = sum(&[]);
    let engine = LookupMergeFunction::wrap(Arc::clone(&table.engine));
    let read = |runs: &[(i32, &str)]| {
        let mut stage = ReducerMergeFunctionWrapper::new(engine.as_ref(), &table.schema).unwrap();
        assert!(stage.whole_keys());
        let played = Case::new(&table, runs, &[]).play(&mut stage, Cut::default()).unwrap();
        assert_eq!(played.changes, []);
        text(&played.rows)
    };
    assert_eq!(read(&[(5, "+I 1 10"), (4, "+I 1 15")]), "+I 1 15");
    assert_eq!(
        read(&[(5, "+I 1 10"), (4, "+I 1 15"), (0, "+I 1 1"), (0, "+I 1 2")]),
        "+I 1 18"
    );
    assert_eq!(read(&[(5, "+I 1 10"), (0, "-D 1 4")]), "+I 1 6");
    assert_eq!(read(&[(-1, "+I 1 10; +I 2 1"), (-1, "+I 1 1")]), "+I 1 11; +I 2 1");
    let promises = engine.promises();
    assert!(promises.idempotent && promises.whole_keys && !promises.deletes_need_older);
    // First-row merges no values, nothing changes for it.
    let first_row = Table::new("first-row", &[("v", STRING)], &[]).engine;
    assert!(Arc::ptr_eq(
        &first_row,
        &LookupMergeFunction::wrap(Arc::clone(&first_row))
    ));
}

#[test]
fn wrong_answers_are_refused() {
    use paimon_merge::changelog::{Hit, Hits, StageOutput};
    use paimon_merge::plan::{KeyGroups, RowRef};
    let table = deduplicate();
    let sources = [run(&table, 0, 1, "+I 1 a")];
    let groups = |open| KeyGroups {
        sources: &sources,
        rows: &[RowRef { batch: 0, row: 0 }],
        ends: &[1],
        open,
    };
    let mut stage = Case::new(&table, &[], &[]).lookup_stage();
    let mut merge = |open, found: Vec<Option<Hit>>, rows| {
        let hits = Hits {
            found,
            rows,
            files: Vec::new(),
        };
        let error = stage
            .merge(&groups(open), &hits, &mut StageOutput::default())
            .unwrap_err();
        assert_eq!(error.kind(), paimon_format::ErrorKind::Internal);
        error.to_string()
    };
    let there = |row| {
        Some(Hit {
            row: Some(row),
            position: None,
        })
    };
    for (error, expected) in [
        (
            merge(false, vec![], None),
            "a look-up gave fewer answers than it was asked for",
        ),
        (
            merge(false, vec![None, None], None),
            "a look-up gave more answers than it was asked for",
        ),
        (
            merge(false, vec![there(0)], None),
            "a look-up found a row that it did not give",
        ),
        (
            merge(false, vec![there(1)], Some(run(&table, 5, 1, "+I 1 a"))),
            "a look-up found a row that it did not give",
        ),
        (
            merge(true, vec![None], None),
            "a key was cut for a stage that needs it whole",
        ),
    ] {
        assert!(error.contains(expected), "{error}");
    }
}
