//! What passed, what failed, what was skipped.

use std::collections::BTreeMap;
use std::fmt;

/// How one case ended.
pub(crate) enum Outcome {
    /// As expected.
    Passed,
    /// As expected by this engine, where the reference gives another answer.
    Deviated(String),
    /// Not as expected: what differs.
    Failed(Vec<String>),
    /// Not run, and why.
    Skipped(String),
}

/// Counts outcomes, printing those that need a word.
#[derive(Default)]
pub(crate) struct Tally {
    passed: usize,
    failed: usize,
    skipped: BTreeMap<String, Vec<String>>,
    deviations: usize,
}

/// Differences of one case that are printed; the rest is counted.
const SHOWN: usize = 12;

impl Tally {
    /// Counts one case.
    pub(crate) fn add(&mut self, name: &str, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Deviated(why) => {
                self.passed += 1;
                self.deviations += 1;
                println!("deviates {name}: {why}");
            }
            Outcome::Failed(differences) => {
                self.failed += 1;
                println!("FAILED {name}");
                for difference in differences.iter().take(SHOWN) {
                    println!("    {difference}");
                }
                if differences.len() > SHOWN {
                    println!("    … and {} more", differences.len() - SHOWN);
                }
            }
            Outcome::Skipped(why) => self.skipped.entry(why).or_default().push(name.to_owned()),
        }
    }

    /// Whether nothing failed and something ran.
    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (why, names) in &self.skipped {
            writeln!(f, "skipped {}, {why}: {}", names.len(), names.join(" "))?;
        }
        if self.deviations > 0 {
            writeln!(
                f,
                "{} of those that passed deviate from the reference, with a reason",
                self.deviations
            )?;
        }
        let skipped: usize = self.skipped.values().map(Vec::len).sum();
        write!(f, "{} passed, {} failed, {skipped} skipped", self.passed, self.failed)
    }
}
