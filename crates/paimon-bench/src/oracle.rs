//! The Java side: `bench` of the oracle, which measures itself.

use std::path::PathBuf;
use std::process::Command;

use crate::Result;
use crate::flags::Flags;

/// Java's tables, and the program that makes and measures them.
#[derive(Debug)]
pub struct Oracle {
    script: String,
    warehouse: PathBuf,
}

/// A line that Java printed: flat JSON.
pub type Line = serde_json::Value;

impl Oracle {
    /// `--oracle` is the script; tables are in `java` below `--dir`.
    pub fn new(flags: &Flags) -> Self {
        Self {
            script: flags.text("oracle").unwrap_or("testdata/oracle/run.sh").to_owned(),
            warehouse: flags.dir().join("java"),
        }
    }

    /// The directory of a table.
    pub fn table(&self, name: &str) -> PathBuf {
        self.warehouse.join("default.db").join(name)
    }

    /// The directory of a table, which is made first if it is not there.
    pub fn made(&self, name: &str, flags: &[(&str, &str)]) -> Result<PathBuf> {
        let table = self.table(name);
        if !table.exists() {
            self.bench("gen", name, flags)?;
        }
        Ok(table)
    }

    /// What `bench WHAT` on a table printed. Errors: what Java said when it failed.
    pub fn bench(&self, what: &str, table: &str, flags: &[(&str, &str)]) -> Result<Vec<Line>> {
        let mut command = Command::new("bash");
        command
            .args([&self.script, "bench", what])
            .arg(&self.warehouse)
            .arg(table);
        for (flag, value) in flags {
            command.arg(format!("--{flag}")).arg(value);
        }
        let output = command.output()?;
        if !output.status.success() {
            return Err(format!("bench {what}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let lines = String::from_utf8(output.stdout)?;
        Ok(lines
            .lines()
            .map(serde_json::from_str)
            .collect::<std::result::Result<_, _>>()?)
    }
}

/// A number of a line. Errors: when it is not there.
pub fn number(line: &Line, name: &str) -> Result<f64> {
    let value = line.get(name).and_then(Line::as_f64);
    Ok(value.ok_or_else(|| format!("no {name} in {line}"))?)
}
