//! Paimon's syntax of option values. A parser's error says what was expected.
//!
//! Sources: `org.apache.paimon.options.OptionsUtils`, `MemorySize`, `StructuredOptionsSplitter`, `org.apache.paimon.utils.TimeUtils`.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

const MEMORY_UNITS: [(&[&str], u64); 6] = [
    (&[""], 1),
    (&["b", "bytes"], 1),
    (&["k", "kb", "kibibytes"], 1 << 10),
    (&["m", "mb", "mebibytes"], 1 << 20),
    (&["g", "gb", "gibibytes"], 1 << 30),
    (&["t", "tb", "tebibytes"], 1 << 40),
];

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Units and their nanoseconds.
const TIME_UNITS: [(&[&str], u64); 8] = [
    (&["d", "day", "days"], 86_400 * NANOS_PER_SECOND),
    (&["h", "hour", "hours"], 3_600 * NANOS_PER_SECOND),
    (&["min", "m", "minute", "minutes"], 60 * NANOS_PER_SECOND),
    (&["s", "sec", "secs", "second", "seconds"], NANOS_PER_SECOND),
    (&["ms", "milli", "millis", "millisecond", "milliseconds"], 1_000_000),
    (&["µs", "micro", "micros", "microsecond", "microseconds"], 1_000),
    (&["ns", "nano", "nanos", "nanosecond", "nanoseconds"], 1),
    (&[""], 1_000_000),
];

/// An enum whose values are option values.
pub trait OptionEnum: Copy + 'static {
    /// Names as in Java, and values.
    const VALUES: &'static [(&'static str, Self)];
}

/// `true` or `false`, in any case.
pub fn parse_bool(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

pub(super) fn parse_int(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| "a 32-bit integer".to_owned())
}

pub(super) fn parse_long(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| "a 64-bit integer".to_owned())
}

pub(super) fn parse_double(text: &str) -> Result<f64, String> {
    text.trim().parse().map_err(|_| "a number".to_owned())
}

pub(super) fn parse_enum<E: OptionEnum>(text: &str) -> Result<E, String> {
    E::VALUES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text))
        .map(|(_, value)| *value)
        .ok_or_else(|| one_of(E::VALUES.iter().map(|(name, _)| *name)))
}

/// "one of a, b, c".
pub(super) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    format!("one of {}", names.collect::<Vec<_>>().join(", "))
}

/// Bytes: `64 mb`, `8kb`, `4096`; a kilobyte has 1024 bytes.
pub fn parse_memory_size(text: &str) -> Result<u64, String> {
    with_unit(text, &MEMORY_UNITS)
        .filter(|bytes| i64::try_from(*bytes).is_ok())
        .ok_or_else(|| "a memory size such as '64 mb', with unit b, kb, mb, gb, tb or none (bytes)".to_owned())
}

/// Time: `10 s`, `1h`, `1 d`, `100 ms`; milliseconds without a unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, nanos) = number_and_unit(text, &TIME_UNITS)
        .ok_or_else(|| "a time such as '10 s', with unit d, h, min, s, ms, µs, ns or none (ms)".to_owned())?;
    let (seconds, nanos) = match nanos / NANOS_PER_SECOND {
        0 => {
            let per_second = NANOS_PER_SECOND / nanos;
            (number / per_second, number % per_second * nanos)
        }
        seconds => (
            number
                .checked_mul(seconds)
                .ok_or_else(|| "a time that 64 bits of seconds can hold".to_owned())?,
            0,
        ),
    };
    // Below a second.
    Ok(Duration::new(seconds, nanos as u32))
}

fn with_unit(text: &str, units: &[(&[&str], u64)]) -> Option<u64> {
    let (number, factor) = number_and_unit(text, units)?;
    number.checked_mul(factor)
}

/// A number that a Java long can hold, and the factor of its unit.
fn number_and_unit(text: &str, units: &[(&[&str], u64)]) -> Option<(u64, u64)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok().filter(|number| i64::try_from(*number).is_ok())?;
    let unit = unit.trim().to_lowercase();
    let (_, factor) = units.iter().find(|(names, _)| names.contains(&unit.as_str()))?;
    Some((number, *factor))
}

/// A map: `k:v,k2:v2`. Keys and values may be quoted with `'` or `"`; a doubled quote stands for itself.
pub fn parse_map(text: &str) -> Result<BTreeMap<String, String>, String> {
    let expected = || "a map such as 'key:value,key2:value2'".to_owned();
    let mut map = BTreeMap::new();
    for entry in split_quoted(text, ',').ok_or_else(expected)? {
        let pair = split_quoted(&entry, ':').ok_or_else(expected)?;
        let [key, value] = <[String; 2]>::try_from(pair).map_err(|_| expected())?;
        if map.insert(key, value).is_some() {
            return Err("a map with each key once".to_owned());
        }
    }
    Ok(map)
}

/// The parts between delimiters, quotes taken off; `None` when quotes are not closed or do not enclose a whole part.
fn split_quoted(text: &str, delimiter: char) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut chars = text.chars().peekable();
    let mut after_delimiter = false;
    while let Some(&next) = chars.peek() {
        if next.is_whitespace() {
            chars.next();
        } else if next == delimiter {
            chars.next();
            // Java drops an empty part at either end, but not between two delimiters.
            if after_delimiter {
                parts.push(String::new());
            }
            after_delimiter = true;
            continue;
        } else {
            parts.push(part(&mut chars, delimiter)?);
            after_delimiter = false;
        }
    }
    Some(parts)
}

fn part(chars: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<String> {
    let mut part = String::new();
    let Some(quote) = chars.next_if(|c| matches!(c, '\'' | '"')) else {
        while let Some(c) = chars.next_if(|c| *c != delimiter) {
            part.push(c);
        }
        return Some(part.trim().to_owned());
    };
    loop {
        let c = chars.next()?;
        if c != quote {
            part.push(c);
        } else if chars.next_if_eq(&quote).is_some() {
            part.push(quote);
        } else {
            break;
        }
    }
    while chars.next_if(|c| c.is_whitespace()).is_some() {}
    chars.peek().is_none_or(|c| *c == delimiter).then_some(part)
}
