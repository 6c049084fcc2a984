//! The command line of a benchmark: a word, then `--flag value` pairs.

use std::collections::HashMap;
use std::env;
use std::path::PathBuf;

use crate::Result;

/// What stands on the command line.
#[derive(Clone, Debug)]
pub struct Flags {
    command: Option<String>,
    flags: HashMap<String, String>,
}

impl Flags {
    /// Of this process.
    pub fn of_process() -> Self {
        let mut words = env::args().skip(1).peekable();
        let command = words.next_if(|word| !word.starts_with("--"));
        let mut flags = HashMap::new();
        while let (Some(flag), Some(value)) = (words.next(), words.next()) {
            flags.insert(flag.trim_start_matches("--").to_owned(), value);
        }
        Self { command, flags }
    }

    /// The first word; this default without one.
    pub fn command<'a>(&'a self, default: &'a str) -> &'a str {
        self.command.as_deref().unwrap_or(default)
    }

    /// The value of a flag, if it is there.
    pub fn text(&self, flag: &str) -> Option<&str> {
        self.flags.get(flag).map(String::as_str)
    }

    /// All flags with their values, in no order.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.flags.iter().map(|(flag, value)| (flag.as_str(), value.as_str()))
    }

    /// A flag that is a number. Errors: when it is none.
    pub fn number(&self, flag: &str, default: u64) -> Result<u64> {
        match self.text(flag) {
            Some(text) => Ok(text.parse().map_err(|_| format!("--{flag}: {text:?} is no number"))?),
            None => Ok(default),
        }
    }

    /// `--dir`: where tables are made and kept for the next run.
    pub fn dir(&self) -> PathBuf {
        self.text("dir")
            .map_or_else(|| env::temp_dir().join("paimon-bench"), PathBuf::from)
    }
}
