//! What partial-update makes of the versions of one key, case by case.

use paimon_format::types::{RowKind, TypeKind};

use crate::table::{STRING, Table, refused};

const INT: TypeKind = TypeKind::Int;
const REMOVE_ON_DELETE: (&str, &str) = ("partial-update.remove-record-on-delete", "true");
const REMOVE_ON_G: (&str, &str) = ("partial-update.remove-record-on-sequence-group", "g");

fn plain(options: &[(&str, &str)]) -> Table {
    Table::new("partial-update", &[("a", INT), ("b", INT)], options)
}

/// `a` is in the group of `g`.
fn grouped(a: TypeKind, options: &[(&str, &str)]) -> Table {
    let mut all = vec![("fields.g.sequence-group", "a")];
    all.extend(options);
    Table::new("partial-update", &[("a", a), ("g", INT)], &all)
}

#[test]
fn without_groups_the_newest_value_that_is_not_null_wins() {
    let table = plain(&[]);
    table.check("+I 1 5 N; +I 1 N 7", "+I 1 5 7");
    table.check("+I 1 5 7; +U 1 N N", "+I 1 5 7");
    let table = plain(&[("fields.default-aggregate-function", "last_non_null_value")]);
    table.check("+I 1 5 N; +I 1 N 7", "+I 1 5 7");
}

#[test]
fn deletes_need_an_option() {
    let table = plain(&[]);
    let expected = "merge engine partial-update cannot take a -U row: set ignore-delete, \
                    partial-update.remove-record-on-delete, or sequence groups with \
                    partial-update.remove-record-on-sequence-group";
    assert_eq!(table.fails("+I 1 5 7; -U 1 5 7"), expected);
    assert!(table.fails("-D 1 5 7").contains("cannot take a -D row"));
    let lone = table.run(&table.rows("-D 1 5 7"), 1);
    assert_eq!(table.merge_passing(&[lone]).unwrap().kind(0), RowKind::Delete);
}

#[test]
fn a_delete_removes_the_record() {
    let table = plain(&[REMOVE_ON_DELETE]);
    table.check("+I 1 5 7; -D 1 5 7", "-D 1 5 7");
    table.check("+I 1 5 7; -U 1 5 7", "+I 1 5 7");
    table.check("-U 1 5 7; -U 1 6 8", "-D 1 5 7");
    table.check("+I 1 5 7; -D 1 N N; +I 1 N 9", "+I 1 N 9");
    // No later row inherits a delete's values; Java gives (1, 5, 9).
    table.check("+I 1 5 7; -D 1 5 7; +I 1 N 9", "+I 1 N 9");
    table.check("-D 1 5 7; +I 1 N 9", "+I 1 N 9");
    table.check("+I 1 5 7; -D 1 6 8; -U 1 6 8", "-D 1 6 8");
}

#[test]
fn ignored_deletes_leave_nothing() {
    let table = plain(&[("ignore-delete", "true")]);
    // Java gives (1, 5, 7).
    table.check("-D 1 5 N; +I 1 N 7", "+I 1 N 7");
    table.check("+I 1 5 N; -D 1 9 9; -U 1 8 8; +U 1 N 7", "+I 1 5 7");
    table.check("-D 1 5 N; -D 1 6 N", "-D 1 5 N");
}

#[test]
fn a_group_follows_its_sequence() {
    let table = grouped(INT, &[]);
    table.check("+I 1 10 2; +I 1 20 1", "+I 1 10 2");
    table.check("+I 1 10 2; +I 1 20 2", "+I 1 20 2");
    table.check("+I 1 10 2; +I 1 N 3", "+I 1 N 3");
    table.check("+I 1 10 2; +I 1 99 N", "+I 1 10 2");
    table.check("+I 1 10 2; -D 1 10 2", "+I 1 N 2");
    table.check("+I 1 10 2; -D 1 10 1", "+I 1 10 2");
    table.check("-D 1 10 2; -D 1 10 3", "-D 1 N 3");
}

#[test]
fn a_group_removes_the_record() {
    let table = grouped(INT, &[REMOVE_ON_G]);
    table.check("+I 1 10 2; -D 1 11 3; -U 1 12 4", "+I 1 N 4");
    table.check("+I 1 10 2; -D 1 11 3", "-D 1 11 3");
    table.check("+I 1 10 2; -U 1 11 3", "+I 1 N 3");
    table.check("+I 1 10 2; -D 1 11 1", "+I 1 10 2");
    // No later row inherits a delete's values; Java gives (1, 11, 3).
    table.check("+I 1 10 2; -D 1 11 3; +I 1 12 N", "+I 1 N N");
    table.check("+I 1 10 2; -D 1 11 3; +I 1 12 1", "+I 1 12 1");
    // A late delete does not bring a removed row back.
    table.check("+I 1 10 2; -D 1 11 3; -D 1 12 1", "-D 1 11 3");
    table.check("-D 1 11 3; -D 1 12 1", "-D 1 11 3");
}

#[test]
fn functions_in_a_group_see_late_values() {
    let function = |name| ("fields.a.aggregate-function", name);
    let sum = grouped(INT, &[function("sum")]);
    sum.check("+I 1 10 2; +I 1 20 1", "+I 1 30 2");
    sum.check("+I 1 10 2; -D 1 4 1", "+I 1 6 2");
    // The row begins as a copy of the delete, which is then taken back.
    sum.check("-D 1 5 1; +I 1 7 2", "+I 1 7 2");
    let ignoring = grouped(STRING, &[function("listagg"), ("fields.a.ignore-retract", "true")]);
    ignoring.check("-D 1 t5 1; +I 1 t7 2", "+I 1 t5,t7 2");
    ignoring.check("+I 1 t5 1; -D 1 t6 2; +I 1 t7 3", "+I 1 t5,t7 3");
    let first = grouped(INT, &[function("first_value")]);
    first.check("+I 1 10 2; +I 1 20 1", "+I 1 20 2");
    first.check("+I 1 10 2; +I 1 20 3", "+I 1 10 3");
    let list = grouped(STRING, &[function("listagg")]);
    list.check("+I 1 b 2; +I 1 a 1; +I 1 c 3", "+I 1 a,b,c 3");
    let non_null = grouped(INT, &[function("last_non_null_value")]);
    non_null.check("+I 1 10 2; +I 1 20 1; +I 1 N 3", "+I 1 10 3");
}

#[test]
fn a_group_can_have_several_sequence_fields() {
    let columns = [("a", INT), ("g1", INT), ("g2", INT)];
    let table = Table::new("partial-update", &columns, &[("fields.g1,g2.sequence-group", "a")]);
    table.check("+I 1 10 1 1; +I 1 20 1 N", "+I 1 10 1 1");
    table.check("+I 1 10 1 N; +I 1 20 1 1", "+I 1 20 1 1");
    table.check("+I 1 10 1 5; +I 1 20 2 N", "+I 1 20 2 N");
    table.check("+I 1 10 1 5; +I 1 20 N 9", "+I 1 10 1 5");
}

#[test]
fn groups_go_on_independently() {
    let columns = [
        ("f1", INT),
        ("f2", INT),
        ("f3", INT),
        ("f4", INT),
        ("f5", INT),
        ("f6", INT),
    ];
    let groups = [
        ("fields.f3.sequence-group", "f1,f2"),
        ("fields.f6.sequence-group", "f4,f5"),
    ];
    let table = Table::new("partial-update", &columns, &groups);
    let mut rows = "+I 1 1 1 1 1 1 1; +I 1 2 2 2 2 2 N".to_owned();
    let mut then = |row: &str, expected: &str| {
        rows = format!("{rows}; {row}");
        table.check(&rows, expected);
        rows.clone()
    };
    then("", "+I 1 2 2 2 1 1 1");
    then("+I 1 3 3 1 3 3 3", "+I 1 2 2 2 3 3 3");
    let before = then("-D 1 1 1 3 1 1 N", "+I 1 N N 3 3 3 3");
    then("-D 1 1 1 3 1 1 4", "+I 1 N N 3 N N 4");
    then("+I 1 4 4 4 5 5 5", "+I 1 4 4 4 5 5 5");
    let mut removing = groups.to_vec();
    removing.push(("partial-update.remove-record-on-sequence-group", "f6"));
    let table = Table::new("partial-update", &columns, &removing);
    table.check(&format!("{before}; -D 1 1 1 3 1 1 4"), "-D 1 1 1 3 1 1 4");
}

#[test]
fn columns_beside_a_group_ignore_deletes() {
    let columns = [("a", INT), ("g", INT), ("x", INT)];
    let table = Table::new("partial-update", &columns, &[("fields.g.sequence-group", "a")]);
    table.check("+I 1 10 1 3; -D 1 10 2 7", "+I 1 N 2 3");
    table.check("-D 1 10 2 7; +I 1 11 1 N", "+I 1 N 2 N");
    table.check("-D 1 10 2 7; -D 1 11 1 8", "-D 1 N 2 7");
}

#[test]
fn a_value_must_be_there_where_the_column_says_so() {
    let columns = [("a!", INT), ("g", INT)];
    let table = Table::new("partial-update", &columns, &[("fields.g.sequence-group", "a")]);
    table.check("-D 1 10 2; -D 1 11 3", "-D 1 11 3");
    // Not null, as in Java, which fails to write it.
    table.check("+I 1 10 1; -U 1 11 3", "+I 1 11 3");
    table.check("+I 1 10 1; -U 1 11 3; -U 1 12 N", "+I 1 12 3");
    table.check("+I 1 10 1; -U 1 11 3; +U 1 12 3", "+I 1 12 3");
}

#[test]
fn a_late_delete_leaves_what_cannot_be_taken_back() {
    let max = ("fields.a.aggregate-function", "max");
    let table = grouped(INT, &[REMOVE_ON_G, max]);
    table.check("+I 1 10 5; -D 1 10 3", "+I 1 10 5");
    table.check("+I 1 10 5; -D 1 10 3; +I 1 20 4; -D 1 20 6", "-D 1 20 6");
    table.check("+I 1 10 5; -D 1 10 3; +I 1 20 4", "+I 1 20 5");
    let sum = grouped(INT, &[REMOVE_ON_G, ("fields.a.aggregate-function", "sum")]);
    sum.check("+I 1 10 5; -D 1 4 3", "+I 1 6 5");
    // Without a group that removes, it was refused.
    assert_eq!(
        grouped(INT, &[max]).fails("+I 1 10 5; -D 1 10 3"),
        "column a: aggregate function max does not support retraction; fields.a.ignore-retract = true lets it ignore -U and -D rows"
    );
}

#[test]
fn a_projection_reads_what_decides() {
    let columns = [("a", INT), ("ga", INT), ("b", INT), ("gb", INT), ("x", INT)];
    let groups = [("fields.ga.sequence-group", "a"), ("fields.gb.sequence-group", "b")];
    let table = Table::new("partial-update", &columns, &groups);
    assert_eq!(table.engine.needs(&[1]), [1, 2]);
    assert_eq!(table.engine.needs(&[0, 5]), [0, 5]);
    assert!(!table.engine.promises().deletes_need_older);
    let mut removing = groups.to_vec();
    removing.push(("partial-update.remove-record-on-sequence-group", "gb"));
    let table = Table::new("partial-update", &columns, &removing);
    assert_eq!(table.engine.needs(&[0, 5]), [0, 4, 5]);
    assert_eq!(table.engine.needs(&[1]), [1, 2, 4]);
    assert!(table.engine.promises().deletes_need_older);
}

#[test]
fn illegal_options_are_refused_by_name() {
    let columns = [("a", INT), ("b", INT), ("g", INT), ("h", INT)];
    let message = |options: &[(&str, &str)]| refused("partial-update", &columns, options);
    let group = ("fields.g.sequence-group", "a");
    let cases: &[&[(&str, &str)]] = &[
        &[("fields.y.sequence-group", "a")],
        &[("fields.g.sequence-group", "y")],
        &[("fields.g.sequence-group", "k")],
        &[("fields.k.sequence-group", "a")],
        &[group, ("fields.h.sequence-group", "b,a")],
        &[("fields.default-aggregate-function", "sum")],
        &[group, ("fields.b.aggregate-function", "sum")],
        &[group, ("fields.a.aggregate-function", "median")],
        &[("ignore-delete", "true"), REMOVE_ON_DELETE],
        &[group, ("ignore-delete", "true"), REMOVE_ON_G],
        &[group, REMOVE_ON_DELETE],
        &[group, ("partial-update.remove-record-on-sequence-group", "a")],
        &[("partial-update.remove-record-on-delete", "maybe")],
    ];
    let messages: Vec<String> = cases.iter().map(|options| message(options)).collect();
    insta::assert_snapshot!(messages.join("\n"));
}
