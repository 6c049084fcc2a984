//! `expected*.json`: what was there after each step, and how what is there now differs from it.

use std::fs;
use std::path::Path;

use paimon::format::types::DataType;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::rows::{ChangesByKey, Columns, canonical_values, multiset_difference, values_of};

/// Files that may stand beside a scenario: the first one there wins.
const FILES: [&str; 4] = [
    "expected-ours.json",
    "expected-right.json",
    "expected-2.0.0.json",
    "expected.json",
];

/// What was there after each step.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Expectation {
    /// Why the reference answers differently.
    pub(crate) deviation: Option<String>,
    /// The tree's shape hangs on a few bytes of file size: only rows and changes are compared.
    #[serde(default)]
    pub(crate) size_sensitive: bool,
    /// One entry a step; a refused creation is one entry alone.
    pub(crate) steps: Vec<ExpectedStep>,
}

/// What one step did. A missing member is not compared.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExpectedStep {
    /// The step's name.
    pub(crate) op: String,
    /// What it threw.
    pub(crate) error: Option<ExpectedError>,
    /// It may throw or not.
    #[serde(default)]
    pub(crate) may_fail: bool,
    /// Snapshots it made, in the form of [`crate::observe`].
    #[serde(default)]
    pub(crate) snapshots: Vec<Map<String, Value>>,
    /// Rows of a read.
    pub(crate) rows: Option<Vec<Value>>,
}

/// An error: only its kind is compared, where it is told.
#[derive(Clone, Deserialize)]
pub(crate) struct ExpectedError {
    /// `overflow` or `invalid-options`.
    pub(crate) kind: Option<String>,
}

impl Expectation {
    /// The expectation that counts for a scenario's folder.
    pub(crate) fn load(folder: &Path) -> Result<Self, String> {
        let paths = FILES.iter().map(|name| folder.join(name));
        let Some(path) = paths.into_iter().find(|path| path.exists()) else {
            return Err(format!("{}: no expected.json", folder.display()));
        };
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// How a table is compared.
pub(crate) struct Comparison<'a> {
    /// The columns of rows.
    pub(crate) columns: &'a Columns,
    /// The types of the partition columns.
    pub(crate) partition: &'a [DataType],
    /// The types of the trimmed primary key.
    pub(crate) key: &'a [DataType],
    /// Whether files, levels and counts are compared too.
    pub(crate) layout: bool,
    /// Whether changes are compared.
    pub(crate) changelog: bool,
}

/// Members of a snapshot that hang on the tree's shape.
const LAYOUT: [&str; 4] = ["buckets", "totalRecordCount", "deltaRecordCount", "hasIndexManifest"];

impl Comparison<'_> {
    /// How a snapshot differs from what was expected. `actual` has all members.
    pub(crate) fn snapshot(&self, expected: &Map<String, Value>, actual: &Map<String, Value>) -> Vec<String> {
        let mut differences = Vec::new();
        let id = actual.get("id").unwrap_or(&Value::Null);
        for (name, value) in expected {
            let there = actual.get(name).unwrap_or(&Value::Null);
            let outcome = match name.as_str() {
                "rows" => self.rows(value, there),
                "changelog" if self.changelog => self.changelog(value, there),
                "changelog" | "readError" => Ok(None),
                "changelogRecordCount" | "hasChangelogManifest" if !self.changelog => Ok(None),
                layout if !self.layout && LAYOUT.contains(&layout) => Ok(None),
                "buckets" => self.buckets(value, there).map(|found| {
                    differences.extend(found.into_iter().map(|found| format!("snapshot {id}: {found}")));
                    None
                }),
                _ if value == there => Ok(None),
                _ => Ok(Some(format!("{name} is {there}, not {value}"))),
            };
            match outcome {
                Ok(None) => {}
                Ok(Some(difference)) | Err(difference) => differences.push(format!("snapshot {id}: {difference}")),
            }
        }
        differences
    }

    /// How read rows differ; kinds of batch reads do not count.
    pub(crate) fn rows(&self, expected: &Value, actual: &Value) -> Result<Option<String>, String> {
        let expected = self.columns.multiset(values_of(expected)?, true)?;
        let actual = self.columns.multiset(values_of(actual)?, true)?;
        Ok(multiset_difference("rows", &expected, &actual))
    }

    /// How changes differ: those of each key in their order.
    fn changelog(&self, expected: &Value, actual: &Value) -> Result<Option<String>, String> {
        let expected = self.columns.changes_by_key(values_of(expected)?)?;
        let actual = self.columns.changes_by_key(values_of(actual)?)?;
        Ok(changes_difference(&expected, &actual))
    }

    /// How changes differ that were recorded in no order.
    pub(crate) fn unordered_changelog(&self, expected: &Value, actual: &Value) -> Result<Option<String>, String> {
        let sorted = |changes: &Value| -> Result<ChangesByKey, String> {
            let mut changes = self.columns.changes_by_key(values_of(changes)?)?;
            changes.values_mut().for_each(|changes| changes.sort_unstable());
            Ok(changes)
        };
        Ok(changes_difference(&sorted(expected)?, &sorted(actual)?))
    }

    fn buckets(&self, expected: &Value, actual: &Value) -> Result<Vec<String>, String> {
        let mut differences = Vec::new();
        let identity = |bucket: &Value| -> Result<String, String> {
            let partition = canonical_values(values_of(&bucket["partition"])?, self.partition)?;
            Ok(format!("{}/bucket-{}", Value::Array(partition), bucket["bucket"]))
        };
        let mut left = Vec::new();
        for bucket in values_of(actual)? {
            left.push((identity(bucket)?, bucket));
        }
        for bucket in values_of(expected)? {
            let name = identity(bucket)?;
            let Some(position) = left.iter().position(|(other, _)| *other == name) else {
                differences.push(format!("{name} is not there"));
                continue;
            };
            let (_, actual) = left.swap_remove(position);
            if bucket["totalBuckets"] != actual["totalBuckets"] {
                let (expected, actual) = (&bucket["totalBuckets"], &actual["totalBuckets"]);
                differences.push(format!("{name}: totalBuckets {actual}, not {expected}"));
            }
            if bucket.get("hashIndex") != actual.get("hashIndex") {
                let text = |index: Option<&Value>| index.map_or("no key hashes".to_owned(), Value::to_string);
                let (expected, actual) = (text(bucket.get("hashIndex")), text(actual.get("hashIndex")));
                differences.push(format!("{name}: hashIndex {actual}, not {expected}"));
            }
            for list in ["files", "changelogFiles"] {
                if list == "changelogFiles" && !self.changelog {
                    continue;
                }
                if let Some(files) = bucket.get(list) {
                    let none = Value::Array(Vec::new());
                    let there = actual.get(list).unwrap_or(&none);
                    differences.extend(
                        self.files(files, there)?
                            .into_iter()
                            .map(|found| format!("{name}: {list} {found}")),
                    );
                }
            }
        }
        // A bucket may be listed for what is left out here; one with files is wrong.
        for (name, bucket) in left {
            if bucket["files"].as_array().is_some_and(|files| !files.is_empty()) {
                differences.push(format!("{name} has files"));
            }
        }
        Ok(differences)
    }

    fn files(&self, expected: &Value, actual: &Value) -> Result<Vec<String>, String> {
        let (expected, actual) = (values_of(expected)?, values_of(actual)?);
        let levels = |files: &[Value]| {
            files
                .iter()
                .map(|file| format!("{}:{}", file["level"], file["rowCount"]))
                .collect::<Vec<_>>()
        };
        if levels(expected) != levels(actual) {
            return Ok(vec![format!(
                "level:rows {}, expected {}",
                levels(actual).join(" "),
                levels(expected).join(" ")
            )]);
        }
        let mut differences = Vec::new();
        for (number, (expected, actual)) in expected.iter().zip(actual).enumerate() {
            let members = expected.as_object().ok_or("a file that is no object")?;
            if let (None, Some(deleted)) = (members.get("deleted"), actual.get("deleted")) {
                differences.push(format!("{number}: rows {deleted} are deleted"));
            }
            for (name, value) in members {
                let there = &actual[name];
                let same = match name.as_str() {
                    // Another Parquet writer makes other sizes.
                    "fileSize" => true,
                    "minKey" | "maxKey" => {
                        canonical_values(values_of(value)?, self.key)? == canonical_values(values_of(there)?, self.key)?
                    }
                    "records" => self.records(value)? == self.records(there)?,
                    _ => value == there,
                };
                if !same {
                    differences.push(format!("{number}: {name} is {there}, not {value}"));
                }
            }
        }
        Ok(differences)
    }

    /// Stored records `[sequence, kind, value…]` in one form.
    fn records(&self, records: &Value) -> Result<Vec<String>, String> {
        let records = values_of(records)?.iter().map(|record| match values_of(record)? {
            [sequence, kind, values @ ..] => {
                let values = self.columns.canonical(values)?;
                Ok(format!("{sequence} {kind} {}", Value::Array(values)))
            }
            _ => Err(format!("{record} is no record")),
        });
        records.collect()
    }
}

/// The first key whose changes differ.
fn changes_difference(expected: &ChangesByKey, actual: &ChangesByKey) -> Option<String> {
    let keys = expected.keys().chain(actual.keys());
    let different = keys.into_iter().find(|key| expected.get(*key) != actual.get(*key));
    different.map(|key| {
        let show = |changes: Option<&Vec<String>>| changes.map_or("nothing".to_owned(), |changes| changes.join(" "));
        format!(
            "changelog of key {key}: {}, expected {}",
            show(actual.get(key)),
            show(expected.get(key))
        )
    })
}
