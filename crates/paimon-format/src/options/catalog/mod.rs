//! Every option of a primary-key table that Java Paimon knows: its type, its default, and what this engine does with it.

mod commit;
mod compaction;
mod files;
mod layout;
mod merge;
mod others;
mod read;

use std::fmt;

/// The catalogue, in sections.
pub const CATALOG: &[Section] = &[
    layout::SECTION,
    files::SECTION,
    merge::SECTION,
    compaction::SECTION,
    commit::SECTION,
    read::SECTION,
    others::SECTION,
];

/// Options that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// A heading.
    pub title: &'static str,
    /// Its options.
    pub options: &'static [KnownOption],
}

/// One option, or a family of options whose keys differ in a part.
#[derive(Clone, Copy, Debug)]
pub struct KnownOption {
    /// The key. `<…>` stands for any text without a dot at its end or in the middle, `*` for any text at the end.
    pub key: &'static str,
    /// Older names of the option, which count when the option itself is not set.
    pub fallback_keys: &'static [&'static str],
    /// What values it has.
    pub value_type: ValueType,
    /// Its default; `None`: there is none, or it depends on other options (see the note).
    pub default: Option<&'static str>,
    /// What this engine does with it.
    pub treatment: Treatment,
    /// A remark for people.
    pub note: &'static str,
}

/// What values an option has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// `true`, `false`
    Bool,
    /// A 32-bit number.
    Int,
    /// A 64-bit number.
    Long,
    /// A fraction.
    Double,
    /// Bytes: `64 mb`.
    MemorySize,
    /// Time: `10 s`.
    Duration,
    /// Text.
    String,
    /// Texts between commas.
    List,
    /// `k:v,k2:v2`
    Map,
    /// One of these names, in any case.
    Enum(&'static [&'static str]),
}

/// What this engine does with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// As Java does.
    Honoured,
    /// It belongs to another engine, or only steers how work is done. Neither rows nor the meaning of files depend on it. Kept.
    Other,
    /// It belongs to what this engine does not do, or has an effect only beside a value that is refused; the note says which. Kept.
    NoEffect,
    /// Only these values are accepted for these uses of a table; none at all: the option must not be set.
    Accepts(&'static [&'static str], Uses),
    /// These values are refused for these uses of a table.
    Refuses(&'static [&'static str], Uses),
}

/// For which uses of a table a value is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// Reading only.
    Read,
    /// Writing and compacting only.
    Write,
    /// Any.
    Both,
}

impl KnownOption {
    const fn new(
        key: &'static str,
        value_type: ValueType,
        default: Option<&'static str>,
        treatment: Treatment,
        note: &'static str,
    ) -> Self {
        Self {
            key,
            fallback_keys: &[],
            value_type,
            default,
            treatment,
            note,
        }
    }

    /// Adds older names.
    const fn or(self, fallback_keys: &'static [&'static str]) -> Self {
        Self { fallback_keys, ..self }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Long => f.write_str("long"),
            Self::Double => f.write_str("double"),
            Self::MemorySize => f.write_str("memory size"),
            Self::Duration => f.write_str("duration"),
            Self::String => f.write_str("text"),
            Self::List => f.write_str("list"),
            Self::Map => f.write_str("map"),
            Self::Enum(names) => f.write_str(&names.join(", ")),
        }
    }
}

impl fmt::Display for Treatment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = |uses: &Uses| match uses {
            Uses::Read => "reading refused",
            Uses::Write => "writing refused",
            Uses::Both => "refused",
        };
        match self {
            Self::Honoured => f.write_str("honoured"),
            Self::Other => f.write_str("another engine's"),
            Self::NoEffect => f.write_str("no effect"),
            Self::Accepts([], uses) => f.write_str(refused(uses)),
            Self::Accepts(names, uses) => write!(f, "{} unless `{}`", refused(uses), names.join("`, `")),
            Self::Refuses(names, uses) => write!(f, "{} if `{}`", refused(uses), names.join("`, `")),
        }
    }
}

/// The option of a key. An exact key wins over a pattern; a fallback key finds its option.
pub(super) fn find(key: &str) -> Option<&'static KnownOption> {
    let all = || CATALOG.iter().flat_map(|section| section.options);
    all()
        .find(|known| known.key == key || known.fallback_keys.contains(&key))
        .or_else(|| all().find(|known| matches(known.key, key)))
}

/// Whether a key fits a pattern with `<…>` or `*`.
fn matches(pattern: &str, key: &str) -> bool {
    let Some(start) = pattern.find(['<', '*']) else {
        return pattern == key;
    };
    let (before, rest) = pattern.split_at(start);
    let Some(key) = key.strip_prefix(before) else {
        return false;
    };
    let after = rest.split_once('>').map_or("", |(_, after)| after);
    if after.is_empty() {
        return !key.is_empty();
    }
    // The text may hold dots; the shortest that lets the rest fit is as good as any.
    key.char_indices()
        .skip(1)
        .any(|(end, _)| key.get(end..).is_some_and(|key| matches(after, key)))
}
