//! The benchmarks run: on a few rows, with every engine.

use std::process::Command;

#[test]
fn compactions_are_measured_with_every_engine() {
    let dir = std::env::temp_dir().join(format!("paimon-bench-{}", std::process::id()));
    for engine in ["deduplicate", "partial-update", "aggregation"] {
        let output = Command::new(env!("CARGO_BIN_EXE_compact"))
            .args([
                "ratio", "--rows", "3000", "--runs", "3", "--repeat", "1", "--engine", engine,
            ])
            .arg("--dir")
            .arg(&dir)
            .output();
        let output = output.map(|output| {
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
        });
        let output = output.unwrap_or_else(|error| error.to_string());
        assert!(
            output.contains("3 runs, ") && output.contains("ratio "),
            "{engine}: {output}"
        );
    }
    assert!(std::fs::remove_dir_all(&dir).is_ok());
}
