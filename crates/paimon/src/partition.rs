//! Partitions as values and as text.

use std::collections::BTreeMap;

use paimon_format::options::Options;
use paimon_format::predicate::{Predicate, Test};
use paimon_format::row::BinaryRow;
use paimon_format::types::{DataField, DataType, Datum};
use paimon_manifest::scan::BucketFiles;

use crate::error::{Error, Result};
use crate::options::BucketMode;

/// A partition of a table: a value for each partition column. The empty partition is that of a table without partition columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    row: BinaryRow,
    names: Vec<String>,
    texts: Vec<Option<String>>,
}

impl Partition {
    /// The partition of a row as manifests hold it.
    ///
    /// Errors: `Corrupt` or `Invalid` when the row does not have the partition columns.
    pub(crate) fn new(row: BinaryRow, fields: &[DataField]) -> Result<Self> {
        let types: Vec<_> = fields.iter().map(|field| field.data_type.clone()).collect();
        let values = row.to_datums(&types)?;
        Ok(Self {
            names: fields.iter().map(|field| field.name.clone()).collect(),
            texts: values
                .iter()
                .zip(&types)
                .map(|(value, data_type)| text(value, data_type))
                .collect(),
            row,
        })
    }

    /// The row that manifests and commit messages hold.
    pub fn row(&self) -> &BinaryRow {
        &self.row
    }

    /// Column names with the text of their values, in the order of the path. Null is `None`. The text is that of SQL (a DATE is
    /// `2024-01-01`), whatever the table's directories are called.
    pub fn values(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.names
            .iter()
            .map(String::as_str)
            .zip(self.texts.iter().map(Option::as_deref))
    }

    /// The same as a map.
    pub fn to_map(&self) -> BTreeMap<&str, Option<&str>> {
        self.values().collect()
    }
}

impl std::fmt::Display for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, (name, value)) in self.values().enumerate() {
            if number > 0 {
                f.write_str("/")?;
            }
            write!(f, "{name}={}", value.unwrap_or("null"))?;
        }
        Ok(())
    }
}

fn text(value: &Datum, data_type: &DataType) -> Option<String> {
    match value {
        Datum::Null => None,
        value => Some(value.to_text(data_type)),
    }
}

/// Which partitions and buckets an operation is about. Empty lists mean all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Values of some or all partition columns as text; a partition is selected when one of these fits. `None` is null.
    pub partitions: Vec<BTreeMap<String, Option<String>>>,
    /// Bucket numbers.
    pub buckets: Vec<i32>,
}

impl Selection {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// Adds the partitions that have these values; the text of a value is SQL's (`2024-01-01`).
    #[must_use]
    pub fn partition<K: Into<String>, V: Into<String>>(mut self, values: impl IntoIterator<Item = (K, V)>) -> Self {
        let values = values.into_iter().map(|(key, value)| (key.into(), Some(value.into())));
        self.partitions.push(values.collect());
        self
    }

    /// Adds a bucket.
    #[must_use]
    pub fn bucket(mut self, bucket: i32) -> Self {
        self.buckets.push(bucket);
        self
    }

    /// Errors: `Invalid` naming a column that is no partition column, or a value that is not of its type. Returns the selection
    /// with each value in the text that [`Partition::values`] has.
    pub(crate) fn resolve(&self, fields: &[DataField], default_name: &str) -> Result<Self> {
        let mut partitions = Vec::with_capacity(self.partitions.len());
        for spec in &self.partitions {
            let mut resolved = BTreeMap::new();
            for (name, value) in spec {
                let Some(field) = fields.iter().find(|field| field.name == *name) else {
                    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                    return Err(Error::invalid(format!(
                        "{name} is no partition column; the table has {}",
                        if names.is_empty() {
                            "none".to_owned()
                        } else {
                            names.join(", ")
                        }
                    )));
                };
                let value = match value.as_deref() {
                    None => None,
                    Some(value) if value == default_name => None,
                    Some(value) => {
                        let datum = Datum::parse(value, &field.data_type)
                            .map_err(|error| Error::invalid(format!("partition column {name}: {error}")))?;
                        text(&datum, &field.data_type)
                    }
                };
                resolved.insert(name.clone(), value);
            }
            partitions.push(resolved);
        }
        Ok(Self {
            partitions,
            buckets: self.buckets.clone(),
        })
    }

    /// Refuses buckets that the table does not have, as far as that can be known: `found` are numbers and counts of buckets with files.
    ///
    /// Errors: `Invalid`, naming the bucket and those that there are.
    pub(crate) fn check_buckets(&self, options: &Options, found: &[BucketFiles]) -> Result<()> {
        let is_there = |number: i32| found.iter().any(|files| files.bucket == number);
        let Some(&missing) = self.buckets.iter().find(|&&number| !is_there(number)) else {
            return Ok(());
        };
        let highest = match BucketMode::from_options(options) {
            Ok(BucketMode::Fixed(count)) => found.iter().map(|files| files.total_buckets).fold(count, i32::max) - 1,
            _ => found.iter().map(|files| files.bucket).max().unwrap_or(-1),
        };
        if (0..=highest).contains(&missing) {
            return Ok(());
        }
        Err(Error::invalid(match highest {
            ..0 => format!("there is no bucket {missing}: the table has none yet"),
            0 => format!("there is no bucket {missing}: the table has bucket 0 alone"),
            _ => format!("there is no bucket {missing}: the table has 0 to {highest}"),
        }))
    }

    /// The selected partitions as a filter on partition columns; `None`: all. Errors: as [`resolve`](Self::resolve).
    pub(crate) fn predicate(&self, fields: &[DataField], default_name: &str) -> Result<Option<Predicate>> {
        let mut specs = Vec::with_capacity(self.partitions.len());
        for spec in self.resolve(fields, default_name)?.partitions {
            let mut tests = Vec::with_capacity(spec.len());
            for (name, value) in spec {
                let field = fields.iter().find(|field| field.name == name);
                let test = match (value, field) {
                    (Some(value), Some(field)) => Test::Equal(Datum::parse(&value, &field.data_type)?),
                    _ => Test::IsNull,
                };
                tests.push(Predicate::column(name, test));
            }
            specs.push(Predicate::And(tests));
        }
        Ok((!specs.is_empty()).then_some(Predicate::Or(specs)))
    }

    /// Whether a bucket is selected. Needs a resolved selection.
    pub(crate) fn contains(&self, partition: &Partition, bucket: i32) -> bool {
        let fits = |spec: &BTreeMap<String, Option<String>>| {
            partition
                .values()
                .all(|(name, value)| spec.get(name).is_none_or(|wanted| wanted.as_deref() == value))
        };
        (self.buckets.is_empty() || self.buckets.contains(&bucket))
            && (self.partitions.is_empty() || self.partitions.iter().any(fits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_a_filter_on_partition_columns() {
        let fields = [
            DataField::new(0, "p", "STRING".parse().unwrap()),
            DataField::new(1, "d", "DATE".parse().unwrap()),
        ];
        let predicate = |selection: Selection| {
            let predicate = selection.predicate(&fields, "none").unwrap();
            predicate.map(|predicate| predicate.to_string())
        };
        assert_eq!(predicate(Selection::all()), None);
        let selection = Selection::all()
            .partition([("p", "a"), ("d", "2024-01-01")])
            .partition([("p", "none")]);
        assert_eq!(
            predicate(selection).unwrap(),
            "(`d` = 2024-01-01 AND `p` = 'a') OR (`p` IS NULL)"
        );
        let wrong = Selection::all()
            .partition([("d", "x")])
            .predicate(&fields, "none")
            .unwrap_err();
        assert_eq!(wrong.to_string(), "partition column d: \"x\" is no value of DATE");
    }
}
