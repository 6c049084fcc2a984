//! What first-row and deduplicate make of the versions of one key, case by case.

use paimon_format::types::TypeKind;

use crate::table::{STRING, Table, refused};

#[test]
fn the_first_row_stays() {
    let table = Table::new("first-row", &[("v", STRING)], &[]);
    table.check("+I 1 a; +I 1 b", "+I 1 a");
    table.check("+U 1 a; +I 1 b; +I 1 c; +I 1 d", "+U 1 a");
    assert_eq!(
        table.fails("-D 1 a"),
        "merge engine first-row cannot take a -D row: ignore-delete = true lets it ignore -U and -D rows"
    );
    let table = Table::new("first-row", &[("v", STRING)], &[("ignore-delete", "true")]);
    table.check("-D 1 a; +I 1 b", "+I 1 b");
    table.check("-D 1 a; -U 1 a; -D 1 b", "");
    assert!(table.engine.promises().existence_only);
}

#[test]
fn first_row_refuses_what_it_has_no_use_for() {
    let message = |option| refused("first-row", &[("v", TypeKind::Int)], &[option]);
    assert_eq!(
        message(("sequence.field", "v")),
        "option 'sequence.field': merge engine first-row has no use for it"
    );
    assert_eq!(
        message(("changelog-producer", "full-compaction")),
        "option 'changelog-producer' = 'full-compaction': merge engine first-row knows none and lookup"
    );
    assert_eq!(
        message(("deletion-vectors.enabled", "true")),
        "option 'deletion-vectors.enabled': merge engine first-row deletes no old rows"
    );
}

#[test]
fn the_last_row_wins() {
    let table = Table::new("deduplicate", &[("v", STRING)], &[]);
    table.check("+I 1 a; +U 1 b", "+U 1 b");
    table.check("+I 1 a; -D 1 a", "-D 1 a");
    table.check("+I 1 a; -U 1 a; +U 1 c", "+U 1 c");
    let table = Table::new("deduplicate", &[("v", STRING)], &[("ignore-delete", "true")]);
    table.check("+I 1 a; -D 1 z", "+I 1 a");
    table.check("-D 1 a", "");
    let columns = [("v", TypeKind::Int), ("w", STRING)];
    let table = Table::new("deduplicate", &columns, &[("sequence.field", "v")]);
    table.check("+I 1 9 x; +I 1 5 y", "+I 1 9 x");
    table.check("+I 1 7 x; +I 1 7 y", "+I 1 7 y");
    let descending = [("sequence.field", "v"), ("sequence.field.sort-order", "descending")];
    let table = Table::new("deduplicate", &columns, &descending);
    table.check("+I 1 9 x; +I 1 5 y", "+I 1 5 y");
    table.check("+I 1 N x; +I 1 5 y", "+I 1 5 y");
}
