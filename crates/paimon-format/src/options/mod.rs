//! A table's options: strings as stored in the schema file, with typed getters, and the catalogue of all options that are known.
//!
//! | File | What it holds |
//! |---|---|
//! | `values` | Paimon's syntax of values: memory sizes, durations, maps |
//! | `catalog` | every known option: type, default, and what this engine does with it |
//! | `check` | refuses what this engine would do otherwise than Java |
//! | `sequence` | where sequence numbers come from, which several layers must know |

mod catalog;
mod check;
mod sequence;
mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::FormatError;

pub use catalog::{CATALOG, KnownOption, Section, Treatment, Uses, ValueType};
pub use check::{TableUse, check_options, unknown_options};
pub use sequence::SequenceSettings;
pub use values::{OptionEnum, parse_bool, parse_duration, parse_map, parse_memory_size};

/// Table options as stored: keys are Paimon's, values are text.
///
/// The typed getters give `None` when an option is not set (the caller knows its default), look up the older names of an option
/// when it is not set itself, and fail with `Invalid`, naming key, value and what was expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// No options.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text of an option, if it is set under this very key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Sets an option.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.0.insert(key.into(), value.into());
    }

    /// Unsets an option.
    pub fn remove(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    /// All options, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Key and text of an option, under its own key or the first of its older ones that is set.
    pub fn lookup<'a>(&'a self, key: &'a str) -> Option<(&'a str, &'a str)> {
        let fallbacks = catalog::find(key).map_or(&[][..], |known| known.fallback_keys);
        std::iter::once(key)
            .chain(fallbacks.iter().copied())
            .find_map(|key| self.get(key).map(|value| (key, value)))
    }

    /// An option's text.
    pub fn string(&self, key: &str) -> Option<String> {
        self.lookup(key).map(|(_, value)| value.to_owned())
    }

    /// `true` or `false`, in any case.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, FormatError> {
        self.parse(key, parse_bool)
    }

    /// A 32-bit number.
    pub fn int(&self, key: &str) -> Result<Option<i32>, FormatError> {
        self.parse(key, values::parse_int)
    }

    /// A 64-bit number.
    pub fn long(&self, key: &str) -> Result<Option<i64>, FormatError> {
        self.parse(key, values::parse_long)
    }

    /// A fraction.
    pub fn double(&self, key: &str) -> Result<Option<f64>, FormatError> {
        self.parse(key, values::parse_double)
    }

    /// Bytes: `64 mb`, `8kb`, `4096`.
    pub fn memory_size(&self, key: &str) -> Result<Option<u64>, FormatError> {
        self.parse(key, parse_memory_size)
    }

    /// Time: `10 s`, `1h`, `1 d`, `100 ms`, `100` (milliseconds).
    pub fn duration(&self, key: &str) -> Result<Option<Duration>, FormatError> {
        self.parse(key, parse_duration)
    }

    /// A map: `k:v,k2:v2`, in the order of the keys; entries may also stand alone as `<key>.k = v`, unless the option itself is set.
    pub fn map(&self, key: &str) -> Result<Option<BTreeMap<String, String>>, FormatError> {
        if let Some(map) = self.parse(key, parse_map)? {
            return Ok(Some(map));
        }
        let prefix = format!("{key}.");
        let map: BTreeMap<_, _> = self
            .iter()
            .filter_map(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.to_owned())))
            .collect();
        Ok((!map.is_empty()).then_some(map))
    }

    /// A list: items between commas, blanks around them left out.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        let (_, value) = self.lookup(key)?;
        Some(value.split(',').map(|item| item.trim().to_owned()).collect())
    }

    /// One of an enum's names, in any case.
    pub fn parse_enum<E: OptionEnum>(&self, key: &str) -> Result<Option<E>, FormatError> {
        self.parse(key, values::parse_enum)
    }

    /// Parses an option's text; `parse` gives what was expected when it fails.
    fn parse<T>(&self, key: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<Option<T>, FormatError> {
        self.lookup(key)
            .map(|(key, value)| parse(value).map_err(|expected| illegal(key, value, &expected)))
            .transpose()
    }
}

/// The error of an option with a value that is none.
fn illegal(key: &str, value: &str, expected: &str) -> FormatError {
    FormatError::invalid(format!("option '{key}' = '{value}': expected {expected}"))
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Options {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(iter: I) -> Self {
        Self(
            iter.into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests;
