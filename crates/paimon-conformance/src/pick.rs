//! `pick`: decisions of the reference's compaction picker.

use std::fs;
use std::path::PathBuf;

use paimon::lsm::testing::PickCase;

use crate::tally::{Outcome, Tally};

/// Replays every line of the files.
pub(crate) fn run(files: &[PathBuf], tally: &mut Tally) -> Result<(), String> {
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rule = PickCase::rule_of(&name);
        for (number, line) in text.lines().enumerate() {
            let outcome = match PickCase::parse(line) {
                Err(error) => Outcome::Failed(vec![error]),
                Ok(case) => {
                    let answers = case.replay(rule);
                    if answers == case.expected() {
                        Outcome::Passed
                    } else {
                        Outcome::Failed(vec![line.to_owned(), format!("picked {answers:?} under {rule:?}")])
                    }
                }
            };
            tally.add(&format!("{name}:{}", number + 1), outcome);
        }
    }
    Ok(())
}
