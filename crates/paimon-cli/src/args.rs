//! Arguments that several commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use paimon::format::options::Options;
use paimon::{Selection, TimeTravel};

use crate::error::CliError;

/// The table and how to reach it.
#[derive(Args, Debug, Clone)]
pub(crate) struct TableArgs {
    /// Path or URL of the table's directory, for example ./warehouse/db.db/orders or s3://bucket/warehouse/db.db/orders
    #[arg(value_name = "TABLE")]
    pub(crate) table: String,
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

/// Options of table and storage.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct OptionArgs {
    /// An option of the table or its storage, in Paimon's keys; may be repeated
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    pub(crate) define: Vec<String>,
    /// A file of options: lines `key=value` (# starts a comment), or one JSON object; -D goes before it
    #[arg(long, value_name = "FILE")]
    pub(crate) options_file: Option<PathBuf>,
}

impl OptionArgs {
    /// All options, those of the command line before those of the file.
    ///
    /// Errors: `File` when the file cannot be read, `Usage` when it or a `-D` is not `key=value`.
    pub(crate) fn options(&self) -> Result<Options, CliError> {
        let mut options = match &self.options_file {
            None => Options::new(),
            Some(path) => {
                let name = path.display();
                let text = std::fs::read_to_string(path).map_err(|error| CliError::file(name, error))?;
                parse_options_file(&text)
                    .map_err(|message| CliError::usage(format!("{}: {message}", path.display())))?
            }
        };
        for define in &self.define {
            let (key, value) =
                key_value(define).map_err(|message| CliError::usage(format!("-D {define}: {message}")))?;
            options.set(key, value);
        }
        Ok(options)
    }
}

fn parse_options_file(text: &str) -> Result<Options, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("not an object of strings: {error}"));
    }
    let mut options = Options::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = key_value(line).map_err(|message| format!("line {}: {message}", number + 1))?;
        options.set(key, value);
    }
    Ok(options)
}

/// `key=value`, blanks around both taken away.
pub(crate) fn key_value(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim(), value.trim())),
        _ => Err(format!("expected key=value, found {text:?}")),
    }
}

/// Which part of a table a command is about.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct PartArgs {
    /// Only this partition: `key=value,key2=value2`, or some of the keys; may be repeated
    #[arg(long, value_name = "SPEC")]
    pub(crate) partition: Vec<String>,
    /// Only this bucket; may be repeated
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) bucket: Vec<i32>,
}

impl PartArgs {
    /// As the library wants it.
    ///
    /// Errors: `Usage` naming the part that is not `key=value`.
    pub(crate) fn selection(&self) -> Result<Selection, CliError> {
        let mut selection = partitions(&self.partition)?;
        for bucket in &self.bucket {
            selection = selection.bucket(*bucket);
        }
        Ok(selection)
    }
}

/// The partitions of these specs; all without one.
///
/// Errors: `Usage` naming the part that is not `key=value`.
pub(crate) fn partitions(specs: &[String]) -> Result<Selection, CliError> {
    let mut selection = Selection::all();
    for spec in specs {
        selection = selection.partition(partition_spec(spec)?);
    }
    Ok(selection)
}

/// `key=value,key2=value2`. A comma or backslash inside a value is written `\,` or `\\`.
fn partition_spec(spec: &str) -> Result<Vec<(String, String)>, CliError> {
    let mut parts = vec![String::new()];
    let mut chars = spec.chars();
    while let Some(char) = chars.next() {
        let last = parts.len() - 1;
        let Some(part) = parts.get_mut(last) else { break };
        match char {
            '\\' => part.extend(chars.next()),
            ',' => parts.push(String::new()),
            other => part.push(other),
        }
    }
    parts
        .iter()
        .map(|part| match part.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
            _ => Err(CliError::usage(format!(
                "--partition {spec}: expected key=value, found {part:?}"
            ))),
        })
        .collect()
}

/// What a command that only looks looks at.
#[derive(Args, Debug, Clone)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) travel: TravelArgs,
}

/// Which snapshot a command looks at.
#[derive(Args, Debug, Clone, Default)]
#[group(multiple = false)]
pub(crate) struct TravelArgs {
    /// The snapshot with this id
    #[arg(long, value_name = "ID")]
    pub(crate) snapshot: Option<i64>,
    /// The snapshot that this tag names
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Option<String>,
    /// The newest snapshot that was there at this instant: milliseconds since the epoch, or `2026-03-02T08:00:00Z`
    #[arg(long, value_name = "INSTANT")]
    pub(crate) timestamp: Option<String>,
}

impl TravelArgs {
    /// The snapshot wanted; `None`: what the table's options say, which is the latest unless they say otherwise.
    ///
    /// Errors: `Usage` for an instant that is none.
    pub(crate) fn time_travel(&self) -> Result<Option<TimeTravel>, CliError> {
        if let Some(id) = self.snapshot {
            return Ok(Some(TimeTravel::SnapshotId(id)));
        }
        if let Some(name) = &self.tag {
            return Ok(Some(TimeTravel::Tag(name.clone())));
        }
        self.timestamp
            .as_deref()
            .map(|text| Ok(TimeTravel::TimestampMillis(instant_ms("--timestamp", text)?)))
            .transpose()
    }
}

/// Milliseconds since the epoch. Errors: `Usage`, naming the argument.
pub(crate) fn instant_ms(argument: &str, text: &str) -> Result<i64, CliError> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    let instant: jiff::Timestamp = text.parse().map_err(|_| {
        CliError::usage(format!(
            "{argument} {text}: expected milliseconds since the epoch, or an instant such as 2026-03-02T08:00:00Z"
        ))
    })?;
    Ok(instant.as_millisecond())
}

/// An amount of bytes: `512mb`, `1 gb`, `1048576`.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    paimon::format::options::parse_memory_size(text).map_err(|expected| format!("expected {expected}"))
}

/// A time: `10 s`, `1 h`, `500 ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    paimon::format::options::parse_duration(text).map_err(|expected| format!("expected {expected}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_values_may_hold_commas() {
        assert_eq!(
            partition_spec(r"dt=2024-01-01, hh=a\,b=c").unwrap(),
            [
                ("dt".to_owned(), "2024-01-01".to_owned()),
                ("hh".to_owned(), "a,b=c".to_owned())
            ]
        );
        assert_eq!(
            partition_spec("dt").unwrap_err().to_string(),
            "--partition dt: expected key=value, found \"dt\""
        );
    }

    #[test]
    fn an_options_file_is_lines_or_an_object() {
        let lines = parse_options_file("# c\n bucket = 4 \n\nfile.format=parquet").unwrap();
        let object = parse_options_file(r#" {"bucket": "4", "file.format": "parquet"}"#).unwrap();
        assert_eq!(lines, object);
        assert_eq!(
            parse_options_file("bucket").unwrap_err(),
            "line 1: expected key=value, found \"bucket\""
        );
    }
}
