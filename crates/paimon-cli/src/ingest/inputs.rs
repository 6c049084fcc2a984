//! The inputs of a job, in order, from where an earlier run ended.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use paimon_cdc::Position;

use super::lines::Lines;
use crate::error::CliError;

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Files (or standard input) that make one stream together.
pub(crate) struct Inputs {
    names: std::vec::IntoIter<String>,
    standard_input: Box<dyn Read + Send>,
    resume_at: Option<Position>,
    max_line_bytes: usize,
}

/// One input, opened.
pub(super) struct Input {
    pub(super) name: Arc<str>,
    pub(super) lines: Lines,
    /// Lines before the first of `lines`.
    pub(super) passed_lines: u64,
}

impl Inputs {
    /// These inputs; those before the one of `resume_at` are left out, and that one begins behind it.
    ///
    /// Errors: `Usage` when the input of `resume_at` is not among them.
    pub(crate) fn new(
        names: Vec<String>,
        standard_input: Box<dyn Read + Send>,
        resume_at: Option<&Position>,
        max_line_bytes: usize,
    ) -> Result<Self, CliError> {
        let mut names = names;
        if let Some(position) = resume_at {
            let Some(first) = names.iter().position(|name| **name == *position.input) else {
                return Err(CliError::usage(format!(
                    "the last commit of this user ends in line {} of {}, which is not among the inputs",
                    position.line, position.input
                )));
            };
            names.drain(..first);
        }
        Ok(Self {
            names: names.into_iter(),
            standard_input,
            resume_at: resume_at.cloned(),
            max_line_bytes,
        })
    }

    /// Checks that a job of a name can go on after it was killed.
    ///
    /// Errors: `Usage` for standard input, and for an input that is there twice: its name would not tell which of them.
    pub(crate) fn check_resumable(names: &[String]) -> Result<(), CliError> {
        if names.iter().any(|name| name == STANDARD_INPUT) {
            return Err(CliError::usage(
                "--commit-user with standard input: it cannot be rewound, so a run that was killed could not go on; give a file",
            ));
        }
        let mut seen = HashSet::new();
        match names.iter().find(|name| !seen.insert(*name)) {
            None => Ok(()),
            Some(twice) => Err(CliError::usage(format!(
                "--commit-user with {twice} twice: a run that was killed could not tell from which of them to go on"
            ))),
        }
    }

    /// Opens the next input. Errors: `File`; `Usage` when it is not the one that an earlier run read.
    pub(super) fn next(&mut self) -> Result<Option<Input>, CliError> {
        let Some(name) = self.names.next() else {
            return Ok(None);
        };
        if name == STANDARD_INPUT {
            let reader = std::mem::replace(&mut self.standard_input, Box::new(std::io::empty()));
            return Ok(Some(Input {
                name: "standard input".into(),
                lines: Lines::new(reader, 0, self.max_line_bytes),
                passed_lines: 0,
            }));
        }
        let wrong = |error| CliError::file(&name, error);
        let mut file = File::open(&name).map_err(wrong)?;
        let (mut offset, mut passed_lines) = (0, 0);
        if let Some(position) = self.resume_at.take() {
            if !holds(&mut file, &position).map_err(wrong)? {
                return Err(CliError::usage(format!(
                    "{name}: it does not hold what the last commit of this user ends with (line {}, bytes {} to {}): it was replaced; give \
                     another --commit-user for another input",
                    position.line, position.start, position.end
                )));
            }
            file.seek(SeekFrom::Start(position.end)).map_err(wrong)?;
            (offset, passed_lines) = (position.end, position.line);
        }
        Ok(Some(Input {
            lines: Lines::new(Box::new(file), offset, self.max_line_bytes),
            passed_lines,
            name: name.into(),
        }))
    }
}

/// Whether the file has the record at its place.
fn holds(file: &mut File, position: &Position) -> std::io::Result<bool> {
    if file.metadata()?.len() < position.end {
        return Ok(false);
    }
    let Some(checksum) = position.checksum else {
        return Ok(true);
    };
    file.seek(SeekFrom::Start(position.start))?;
    let mut record = Vec::new();
    file.take(position.end.saturating_sub(position.start))
        .read_to_end(&mut record)?;
    let record = record.strip_suffix(b"\n").unwrap_or(&record);
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    Ok(crc32fast::hash(record) == checksum)
}
