//! Column statistics of a data file, by the table's modes.
//!
//! Source: `org.apache.paimon.statistics.SimpleColStatsCollector` and its kinds, `org.apache.paimon.stats.SimpleStatsConverter`.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::FormatError;
use crate::meta::SimpleStats;
use crate::row::BinaryRow;
use crate::types::{DataType, Datum};

/// Which statistics of a column are kept (`metadata.stats-mode`). As text and serde data: `none`, `counts`, `full`, `truncate(n)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum StatsMode {
    /// Nothing.
    None,
    /// How many values are null.
    Counts,
    /// Also the smallest and the largest value.
    Full,
    /// The same; strings are cut to so many code points, binary values to so many bytes, the largest rounded up.
    Truncate(u32),
}

impl StatsMode {
    /// From its text, upper or lower case. `Invalid` for any other text.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        let lower = text.trim().to_ascii_lowercase();
        match lower.as_str() {
            "none" => return Ok(Self::None),
            "counts" => return Ok(Self::Counts),
            "full" => return Ok(Self::Full),
            _ => {}
        }
        let length = lower.strip_prefix("truncate(").and_then(|rest| rest.strip_suffix(')'));
        match length.and_then(|length| length.parse().ok()) {
            Some(length @ 1..) => Ok(Self::Truncate(length)),
            _ => Err(FormatError::invalid(format!(
                "the statistics mode {text:?} is none of none, counts, full, truncate(n) with n > 0"
            ))),
        }
    }

    /// What the mode keeps of full statistics.
    pub fn keep(self, full: ColumnStats) -> ColumnStats {
        match self {
            Self::None => ColumnStats::default(),
            Self::Counts => ColumnStats { bounds: None, ..full },
            Self::Full => full,
            Self::Truncate(length) => ColumnStats {
                bounds: full.bounds.and_then(|(min, max)| {
                    let max = truncate_up(max, length as usize)?;
                    Some((truncate(min, length as usize), max))
                }),
                ..full
            },
        }
    }
}

impl fmt::Display for StatsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Counts => f.write_str("counts"),
            Self::Full => f.write_str("full"),
            Self::Truncate(length) => write!(f, "truncate({length})"),
        }
    }
}

impl From<StatsMode> for String {
    fn from(mode: StatsMode) -> Self {
        mode.to_string()
    }
}

impl TryFrom<String> for StatsMode {
    type Error = FormatError;

    fn try_from(text: String) -> Result<Self, FormatError> {
        Self::parse(&text)
    }
}

/// Statistics of one column of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStats {
    /// The smallest and the largest value; `None`: unknown, or all values are null.
    pub bounds: Option<(Datum, Datum)>,
    /// How many values are null; `None`: unknown.
    pub null_count: Option<i64>,
}

impl ColumnStats {
    /// Whether nothing is known: such columns are left out of dense statistics.
    pub fn is_none(&self) -> bool {
        self.bounds.is_none() && self.null_count.is_none()
    }
}

/// The statistics of columns of these types as rows.
pub fn simple_stats<'a>(
    columns: impl Iterator<Item = (&'a DataType, &'a ColumnStats)> + Clone,
) -> Result<SimpleStats, FormatError> {
    let types = columns
        .clone()
        .map(|(data_type, _)| DataType::nullable(data_type.kind.clone()));
    let types: Vec<DataType> = types.collect();
    let values = |pick: fn(&(Datum, Datum)) -> &Datum| {
        let values = columns
            .clone()
            .map(|(_, stats)| stats.bounds.as_ref().map_or(Datum::Null, |bounds| pick(bounds).clone()));
        BinaryRow::from_datums(&values.collect::<Vec<_>>(), &types)
    };
    Ok(SimpleStats {
        min_values: values(|bounds| &bounds.0)?,
        max_values: values(|bounds| &bounds.1)?,
        null_counts: columns.clone().map(|(_, stats)| stats.null_count).collect(),
    })
}

/// Grows bounds by further ones of the same column.
#[derive(Clone, Debug, Default)]
pub(crate) enum Bounds {
    /// No value yet.
    #[default]
    Empty,
    /// All values so far are within.
    Known(Datum, Datum),
    /// Some values' bounds are not known.
    Unknown,
}

impl Bounds {
    /// Values between `min` and `max` come in.
    pub(crate) fn widen(&mut self, min: Datum, max: Datum) {
        match self {
            Self::Empty => *self = Self::Known(min, max),
            Self::Known(low, high) => {
                if min.compare(low) == Ordering::Less {
                    *low = min;
                }
                if max.compare(high) == Ordering::Greater {
                    *high = max;
                }
            }
            Self::Unknown => {}
        }
    }

    pub(crate) fn into_option(self) -> Option<(Datum, Datum)> {
        match self {
            Self::Known(min, max) => Some((min, max)),
            Self::Empty | Self::Unknown => None,
        }
    }
}

/// A value not above the given one, cut to a length.
fn truncate(value: Datum, length: usize) -> Datum {
    match value {
        Datum::String(text) => Datum::String(text.chars().take(length).collect()),
        Datum::Bytes(mut bytes) => {
            bytes.truncate(length);
            Datum::Bytes(bytes)
        }
        other => other,
    }
}

/// A value not below the given one, of at most a length; `None` when there is none.
fn truncate_up(value: Datum, length: usize) -> Option<Datum> {
    match value {
        Datum::String(text) => {
            let mut cut: Vec<char> = text.chars().take(length).collect();
            if cut.iter().map(|c| c.len_utf8()).sum::<usize>() == text.len() {
                return Some(Datum::String(text));
            }
            while let Some(last) = cut.pop() {
                if let Some(next) = next_char(last) {
                    cut.push(next);
                    return Some(Datum::String(cut.into_iter().collect()));
                }
            }
            None
        }
        Datum::Bytes(mut bytes) => {
            if bytes.len() <= length {
                return Some(Datum::Bytes(bytes));
            }
            bytes.truncate(length);
            while let Some(last) = bytes.pop() {
                if last < u8::MAX {
                    bytes.push(last + 1);
                    return Some(Datum::Bytes(bytes));
                }
            }
            None
        }
        other => Some(other),
    }
}

/// The next code point. Java steps into the surrogates after U+D7FF, where UTF-8 has no text: the next one that it has is used.
fn next_char(c: char) -> Option<char> {
    match c {
        '\u{d7ff}' => Some('\u{e000}'),
        c => char::from_u32(u32::from(c) + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Datum {
        Datum::String(text.to_owned())
    }

    fn kept(mode: StatsMode, min: Datum, max: Datum) -> Option<(Datum, Datum)> {
        let full = ColumnStats {
            bounds: Some((min, max)),
            null_count: Some(3),
        };
        let kept = mode.keep(full);
        assert_eq!(kept.null_count, (mode != StatsMode::None).then_some(3));
        kept.bounds
    }

    #[test]
    fn texts_of_modes() {
        for mode in ["none", "counts", "full", "truncate(16)"] {
            assert_eq!(StatsMode::parse(mode).unwrap().to_string(), mode);
        }
        assert_eq!(StatsMode::parse("TRUNCATE(3)").unwrap(), StatsMode::Truncate(3));
        for wrong in ["", "truncate", "truncate(0)", "truncate(-1)", "some"] {
            let error = StatsMode::parse(wrong).unwrap_err().to_string();
            assert!(error.contains("truncate(n)"), "{error}");
        }
    }

    #[test]
    fn truncation_cuts_code_points_and_rounds_the_maximum_up() {
        let mode = StatsMode::Truncate(3);
        assert_eq!(kept(mode, text("äöüß"), text("äöüß")), Some((text("äöü"), text("äöý"))));
        assert_eq!(kept(mode, text("abc"), text("abc")), Some((text("abc"), text("abc"))));
        assert_eq!(
            kept(mode, text("a"), text("ab\u{10ffff}z")),
            Some((text("a"), text("ac")))
        );
        assert_eq!(kept(mode, text("a"), text(&"\u{10ffff}".repeat(4))), None);
        let bytes = |bytes: &[u8]| Datum::Bytes(bytes.to_vec());
        assert_eq!(
            kept(mode, bytes(&[1, 2, 3, 4]), bytes(&[1, 255, 255, 0])),
            Some((bytes(&[1, 2, 3]), bytes(&[2])))
        );
        assert_eq!(kept(mode, bytes(&[1]), bytes(&[255; 4])), None);
        assert_eq!(
            kept(mode, Datum::Int64(5), Datum::Int64(7)),
            Some((Datum::Int64(5), Datum::Int64(7)))
        );
    }

    #[test]
    fn counts_and_none_keep_no_bounds() {
        assert_eq!(kept(StatsMode::Counts, text("a"), text("b")), None);
        assert_eq!(kept(StatsMode::None, text("a"), text("b")), None);
        assert_eq!(
            kept(StatsMode::Full, text("a"), text("b")),
            Some((text("a"), text("b")))
        );
    }
}
