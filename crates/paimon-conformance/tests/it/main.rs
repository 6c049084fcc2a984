//! The runner itself: what passes passes, and what differs fails by name.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn run(command: &str, material: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_paimon-conformance"))
        .arg(command)
        .arg(material)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A copy of a scenario whose expectation went through `change`.
fn changed(scenario: &str, change: impl Fn(String) -> String) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["scenario.json", "expected.json"] {
        let text = fs::read_to_string(testdata(scenario).join(name)).unwrap();
        let text = if name == "expected.json" { change(text) } else { text };
        fs::write(copy.path().join(name), text).unwrap();
    }
    copy
}

#[test]
fn answers_of_the_reference_pass() {
    for (command, material, passed) in [
        ("pick", "pick/pick_seeds.jsonl", 8),
        ("hash", "golden/hash.jsonl", 385),
        ("golden", "golden/dedup_basic", 1),
        ("tables", "golden/dedup_basic", 1),
        ("tables", "golden/dv_lookup", 1),
        ("tables", "golden/first_row", 1),
        ("tables", "golden/seed_example2_sum_lookup", 1),
        ("tables", "golden/changelog_input", 1),
        ("tables", "golden/changelog_lookup", 1),
        ("tables", "golden/changelog_full_compaction", 1),
        ("tables", "spark/dedup_fixed_bucket", 2),
        ("tables", "spark/lookup_changelog", 4),
    ] {
        let output = run(command, &testdata(material));
        assert_eq!(
            text(&output),
            format!("{passed} passed, 0 failed, 0 skipped\n"),
            "{command} {material}"
        );
        assert!(output.status.success());
    }
}

#[test]
fn a_row_that_differs_fails() {
    let copy = changed("golden/dedup_basic", |text| {
        text.replace(r#"["+I", 2, "b2", 20]"#, r#"["+I", 2, "b2", 21]"#)
            .replace(r#"["+I",2,"b2",20]"#, r#"["+I",2,"b2",21]"#)
    });
    let output = run("golden", copy.path());
    assert!(
        text(&output).contains(r#"rows: missing 1 ([2,"b2",21]), too many 1 ([2,"b2",20])"#),
        "{}",
        text(&output)
    );
    assert!(text(&output).ends_with("0 passed, 1 failed, 0 skipped\n"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_file_that_differs_fails() {
    let copy = changed("golden/dedup_basic", |text| {
        text.replace(r#""fileSource":"COMPACT""#, r#""fileSource":"APPEND""#)
            .replace(r#""fileSource": "COMPACT""#, r#""fileSource": "APPEND""#)
    });
    let output = run("golden", copy.path());
    assert!(
        text(&output).contains(r#"fileSource is "COMPACT", not "APPEND""#),
        "{}",
        text(&output)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_pick_that_differs_fails() {
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join("pick.jsonl");
    let line = r#"{"mode":"universal","numLevels":6,"trigger":5,"sizeAmp":200,"sizeRatio":1,"runs":[[0,1]],"answers":[{"runs":1,"outputLevel":5,"fileRewrite":false}]}"#;
    fs::write(&file, line).unwrap();
    let output = run("pick", &file);
    assert!(
        text(&output).contains("picked [None] under Release1_4"),
        "{}",
        text(&output)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn nothing_at_all_is_a_failure() {
    let empty = tempfile::tempdir().unwrap();
    for command in ["golden", "tables"] {
        let output = run(command, empty.path());
        assert_eq!(text(&output), "0 passed, 0 failed, 0 skipped\n");
        assert_eq!(output.status.code(), Some(1));
    }
    assert_eq!(run("pick", &empty.path().join("none.jsonl")).status.code(), Some(2));
}
