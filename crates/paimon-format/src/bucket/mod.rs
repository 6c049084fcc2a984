//! Which bucket a key belongs to, in tables with a fixed number of buckets.
//!
//! Buckets of a batch are computed at once, from the bucket key's columns. Source: `org.apache.paimon.bucket.BucketFunction`.

mod hive;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};

use crate::FormatError;
use crate::options::{OptionEnum, Options};
use crate::row::RowEncoder;
use crate::types::{DataType, TypeKind};

/// `bucket-function.type`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BucketFunctionType {
    /// Murmur hash of the key's binary row.
    #[default]
    Default,
    /// The number itself: one INT or BIGINT column.
    Mod,
    /// Hive's hash.
    Hive,
}

impl OptionEnum for BucketFunctionType {
    const VALUES: &'static [(&'static str, Self)] =
        &[("default", Self::Default), ("mod", Self::Mod), ("hive", Self::Hive)];
}

/// Maps bucket keys to buckets.
#[derive(Clone, Debug)]
pub struct BucketFunction {
    kind: BucketFunctionType,
    types: Vec<DataType>,
}

impl BucketFunction {
    /// For bucket keys with these columns.
    ///
    /// Errors: `Invalid` without columns, or for column types that the function does not take; the message names both.
    pub fn new(kind: BucketFunctionType, types: Vec<DataType>) -> Result<Self, FormatError> {
        match (kind, types.as_slice()) {
            (_, []) => return Err(FormatError::invalid("a bucket key without columns")),
            (BucketFunctionType::Default, _) => {}
            (BucketFunctionType::Mod, [one]) if matches!(one.kind, TypeKind::Int | TypeKind::BigInt) => {}
            (BucketFunctionType::Mod, types) => {
                return Err(FormatError::invalid(format!(
                    "option 'bucket-function.type' = 'mod' needs one bucket key column of type INT or BIGINT, not {}",
                    names(types)
                )));
            }
            (BucketFunctionType::Hive, types) => {
                if let Some(illegal) = types.iter().find(|data_type| !hive::is_supported(&data_type.kind)) {
                    return Err(FormatError::invalid(format!(
                        "option 'bucket-function.type' = 'hive' does not take bucket key columns of type {illegal}"
                    )));
                }
            }
        }
        Ok(Self { kind, types })
    }

    /// As `bucket-function.type` says. Errors as [`new`](Self::new), and `Invalid` for an unknown function.
    pub fn from_options(options: &Options, types: Vec<DataType>) -> Result<Self, FormatError> {
        let kind = options.parse_enum("bucket-function.type")?.unwrap_or_default();
        Self::new(kind, types)
    }

    /// The bucket of each row, in `0..buckets`.
    ///
    /// `key` are the bucket key's columns in `bucket-key` order. Errors: `Invalid` when a column has another type than the function
    /// was made for, or `buckets` is not positive. Cost: one pass, no object a row.
    pub fn buckets(&self, key: &[ArrayRef], buckets: i32) -> Result<Vec<i32>, FormatError> {
        if buckets <= 0 {
            return Err(FormatError::invalid(format!(
                "{buckets} buckets: a fixed number of buckets is positive"
            )));
        }
        match self.kind {
            BucketFunctionType::Default => {
                let mut hashes = RowEncoder::new(key, &self.types)?.hashes()?;
                for hash in &mut hashes {
                    *hash = (*hash % buckets).abs();
                }
                Ok(hashes)
            }
            BucketFunctionType::Mod => modulo(key, &self.types, buckets),
            BucketFunctionType::Hive => {
                let mut hashes = hive::hashes(key, &self.types)?;
                for hash in &mut hashes {
                    *hash = (*hash & i32::MAX) % buckets;
                }
                Ok(hashes)
            }
        }
    }
}

/// Nulls count as 0, as in Java.
fn modulo(key: &[ArrayRef], types: &[DataType], buckets: i32) -> Result<Vec<i32>, FormatError> {
    match (key, types) {
        ([column], [one]) if one.kind == TypeKind::Int => {
            if let Some(column) = column.as_primitive_opt::<Int32Type>() {
                let numbers = column.iter().map(Option::unwrap_or_default);
                return Ok(numbers.map(|number| number.rem_euclid(buckets)).collect());
            }
        }
        ([column], [one]) if one.kind == TypeKind::BigInt => {
            if let Some(column) = column.as_primitive_opt::<Int64Type>() {
                let numbers = column.iter().map(Option::unwrap_or_default);
                // The remainder is below an i32.
                return Ok(numbers
                    .map(|number| number.rem_euclid(i64::from(buckets)) as i32)
                    .collect());
            }
        }
        _ => {}
    }
    let found: Vec<String> = key.iter().map(|column| column.data_type().to_string()).collect();
    Err(FormatError::invalid(format!(
        "bucket key columns of type {} in place of {}",
        found.join(", "),
        names(types)
    )))
}

fn names(types: &[DataType]) -> String {
    let names: Vec<String> = types.iter().map(DataType::to_string).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests;
