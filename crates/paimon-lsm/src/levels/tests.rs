use std::sync::Arc;

use paimon_format::ErrorKind;
use paimon_format::meta::DataFileMeta;

use super::*;
use crate::testing::{int_keys, keyed_file};

/// A level-0 file with sequence numbers and a time of creation.
fn flushed(name: &str, (min, max): (i64, i64), creation_time_ms: i64) -> Arc<DataFileMeta> {
    Arc::new(DataFileMeta {
        min_sequence_number: min,
        max_sequence_number: max,
        creation_time_ms: Some(creation_time_ms),
        ..keyed_file(name, 0, (0, 9), 10)
    })
}

fn on_level(name: &str, level: i32, range: (i32, i32)) -> Arc<DataFileMeta> {
    Arc::new(keyed_file(name, level, range, 100))
}

fn restore(files: Vec<Arc<DataFileMeta>>) -> Levels {
    Levels::restore(int_keys().unwrap(), files, 6).unwrap()
}

fn names(files: &[Arc<DataFileMeta>]) -> Vec<&str> {
    files.iter().map(|file| file.file_name.as_str()).collect()
}

#[test]
fn level_0_is_newest_first() {
    let files = [
        flushed("old", (0, 49), 1),
        flushed("new", (100, 149), 3),
        flushed("middle", (50, 99), 2),
    ];
    assert_eq!(names(restore(files.to_vec()).level0()), ["new", "middle", "old"]);
}

#[test]
fn ties_of_writers_that_count_from_the_same_start() {
    // By the smaller first number, whatever the order in which they come.
    let z = flushed("z-file", (98, 100), 1000);
    let a = flushed("a-file", (99, 100), 1001);
    for files in [[&z, &a], [&a, &z]] {
        let levels = restore(files.map(Arc::clone).to_vec());
        assert_eq!(names(levels.level0()), ["z-file", "a-file"]);
    }
    // Then by time, then by name; none is lost.
    let files = vec![
        flushed("d", (98, 100), 1001),
        flushed("c", (98, 100), 1001),
        flushed("e", (98, 100), 1000),
    ];
    assert_eq!(names(restore(files).level0()), ["e", "c", "d"]);
}

#[test]
fn a_file_above_the_configured_levels_enlarges_the_tree() {
    let levels = restore(vec![on_level("high", 8, (0, 9))]);
    assert_eq!((levels.number_of_levels(), levels.max_level()), (9, 8));
    assert_eq!(restore(Vec::new()).number_of_levels(), 6);
    let highest = restore(vec![on_level("high", i32::MAX, (0, 9))]);
    assert_eq!(highest.number_of_levels(), i32::MAX);
}

#[test]
fn what_a_tree_knows() {
    let levels = restore(vec![
        on_level("x", 3, (5, 9)),
        flushed("b", (10, 19), 2),
        on_level("w", 3, (0, 4)),
        flushed("a", (0, 9), 1),
        on_level("y", 5, (0, 100)),
    ]);
    assert_eq!(levels.number_of_sorted_runs(), 4);
    assert_eq!(levels.non_empty_highest_level(), Some(5));
    assert_eq!(levels.total_file_size(), 320);
    assert_eq!(names(&levels.all_files()), ["b", "a", "w", "x", "y"]);
    let runs = levels.level_sorted_runs();
    let shape: Vec<(i32, usize)> = runs.iter().map(|run| (run.level, run.run.files().len())).collect();
    assert_eq!(shape, [(0, 1), (0, 1), (3, 2), (5, 1)]);
    assert_eq!(
        restore(vec![flushed("a", (0, 9), 1)]).non_empty_highest_level(),
        Some(0)
    );
    assert_eq!(restore(Vec::new()).non_empty_highest_level(), None);
}

#[test]
fn an_update_moves_files_and_names_those_that_are_gone() {
    let (a, b) = (flushed("a", (0, 9), 1), flushed("b", (10, 19), 2));
    let mut levels = restore(vec![Arc::clone(&a), Arc::clone(&b), on_level("y", 5, (100, 200))]);
    let view = levels.view();
    // b is upgraded, a is merged into c.
    let upgraded = Arc::new(b.upgrade(4));
    let dropped = levels
        .update(&[a, Arc::clone(&b)], &[upgraded, on_level("c", 4, (20, 30))])
        .unwrap();
    assert_eq!(dropped.into_iter().collect::<Vec<_>>(), ["a"]);
    insta::assert_snapshot!(levels.view(), @r"
    L4      110 B  b (1, seq 10..19)  c (1, seq 0..0)
    L5      100 B  y (1, seq 0..0)
    ");
    insta::assert_snapshot!(view, @r"
    L0       10 B  b (1, seq 10..19)
    L0       10 B  a (1, seq 0..9)
    L5      100 B  y (1, seq 0..0)
    ");
    assert_eq!(view.run_of_level(5).map(|run| run.run.files().len()), Some(1));
    assert_eq!(view.run_of_level(4), None);
}

#[test]
fn a_level_that_becomes_empty_is_no_run() {
    let only = on_level("only", 3, (0, 9));
    let mut levels = restore(vec![Arc::clone(&only)]);
    levels.update(&[only], &[]).unwrap();
    assert_eq!(levels.number_of_sorted_runs(), 0);
    insta::assert_snapshot!(levels.view(), @"empty");
}

#[test]
fn broken_trees_are_refused() {
    let error = |files: Vec<Arc<DataFileMeta>>| {
        let error = Levels::restore(int_keys().unwrap(), files, 6).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        error.to_string()
    };
    assert_eq!(
        error(vec![on_level("a", 2, (0, 9)), on_level("b", 2, (9, 12))]),
        "the levels of the bucket are broken: files a and b of level 2 overlap in their keys"
    );
    assert_eq!(
        error(vec![flushed("a", (0, 9), 1), flushed("a", (0, 9), 1)]),
        "the levels of the bucket are broken: a: is on level 0 twice"
    );
    assert_eq!(
        error(vec![on_level("a", -1, (0, 9))]),
        "the levels of the bucket are broken: a: level -1 is not among 0 to 5"
    );
    assert_eq!(
        error(vec![on_level("a", 1, (9, 0))]),
        "the levels of the bucket are broken: a: its smallest key is larger than its largest"
    );
    let unreadable = Arc::new(crate::testing::file("a", 1, 1));
    assert!(
        error(vec![unreadable]).starts_with("the levels of the bucket are broken: a: its key bounds are unreadable")
    );
    let error = Levels::restore(int_keys().unwrap(), Vec::new(), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.to_string(), "the number of levels must be at least 2, not 1");
}

#[test]
fn a_failed_update_changes_nothing() {
    let a = on_level("a", 2, (0, 9));
    let mut levels = restore(vec![Arc::clone(&a), flushed("f", (0, 9), 1)]);
    let before = levels.view().to_string();
    let overlapping = [on_level("b", 3, (0, 9)), on_level("c", 2, (5, 6))];
    levels.update(&[flushed("f", (0, 9), 1)], &overlapping).unwrap_err();
    assert_eq!(levels.view().to_string(), before);
}
