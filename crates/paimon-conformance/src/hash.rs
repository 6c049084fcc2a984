//! `hash`: binary rows, hashes and buckets of the reference.

use std::fs;
use std::path::PathBuf;

use paimon::format::FormatError;
use paimon::format::bucket::{BucketFunction, BucketFunctionType};
use paimon::format::row::BinaryRow;
use paimon::format::types::{DataField, DataType, Datum, array_from_datums};
use serde::Deserialize;
use serde_json::Value;

use crate::tally::{Outcome, Tally};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HashCase {
    types: Vec<DataType>,
    row: Vec<Value>,
    binary_row: String,
    hash: i32,
    #[serde(default)]
    function: BucketFunctionName,
    #[serde(default)]
    buckets: Vec<(i32, i32)>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BucketFunctionName {
    #[default]
    Default,
    Mod,
    Hive,
}

/// Replays every line of the files.
pub(crate) fn run(files: &[PathBuf], tally: &mut Tally) -> Result<(), String> {
    for file in files {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        for (number, line) in text.lines().enumerate() {
            let outcome = match serde_json::from_str::<HashCase>(line) {
                Err(error) => Outcome::Failed(vec![line.to_owned(), error.to_string()]),
                Ok(case) => match case.differences() {
                    Err(error) => Outcome::Failed(vec![line.to_owned(), error.to_string()]),
                    Ok(differences) if differences.is_empty() => Outcome::Passed,
                    Ok(differences) => Outcome::Failed([vec![line.to_owned()], differences].concat()),
                },
            };
            tally.add(&format!("{name}:{}", number + 1), outcome);
        }
    }
    Ok(())
}

impl HashCase {
    fn differences(&self) -> Result<Vec<String>, FormatError> {
        let mut differences = Vec::new();
        let values = self.row.iter().zip(&self.types);
        let values = values
            .map(|(json, data_type)| Datum::from_json(json, data_type))
            .collect::<Result<Vec<_>, _>>()?;
        let row = BinaryRow::from_datums(&values, &self.types)?;
        let hex: String = row.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        if hex != self.binary_row {
            differences.push(format!("binary row {hex}"));
        }
        if row.hash_code() != self.hash {
            differences.push(format!("hash {}", row.hash_code()));
        }
        if self.buckets.is_empty() {
            return Ok(differences);
        }
        let function = BucketFunction::new(self.function.into(), self.types.clone())?;
        let columns = values
            .iter()
            .zip(&self.types)
            .enumerate()
            .map(|(number, (value, data_type))| {
                let field = DataField::new(0, format!("f{number}"), data_type.clone());
                array_from_datums(&field, [value])
            })
            .collect::<Result<Vec<_>, _>>()?;
        for &(count, expected) in &self.buckets {
            let buckets = function.buckets(&columns, count)?;
            if buckets != [expected] {
                differences.push(format!("bucket {buckets:?} of {count}, not {expected}"));
            }
        }
        Ok(differences)
    }
}

impl From<BucketFunctionName> for BucketFunctionType {
    fn from(name: BucketFunctionName) -> Self {
        match name {
            BucketFunctionName::Default => Self::Default,
            BucketFunctionName::Mod => Self::Mod,
            BucketFunctionName::Hive => Self::Hive,
        }
    }
}
