//! `nested_update` and `nested_partial_update`: rows in arrays, by their own keys.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use paimon_format::types::Datum;

use super::column::Site;
use super::{AggregateFunction, AggregatedColumn, Aggregation, AggregatorFactory, FunctionAggregator};
use crate::MergeError;

/// `nested_update`: the rows of all arrays; with `nested-key`, one a key, the newest (or the one that `nested-sequence-field` says).
/// `count-limit` bounds how many there are; rows with a key that is there are replaced even then. Null rows are left out.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldNestedUpdateAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct NestedUpdateFactory;

/// `nested_partial_update`: one row a nested key, its fields the newest that are not null.
///
/// Source: `org.apache.paimon.mergetree.compact.aggregate.FieldNestedPartialUpdateAgg`.
#[derive(Clone, Copy, Debug)]
pub(super) struct NestedPartialUpdateFactory;

const NESTED_KEY: &str = "nested-key";
const NULL_STRATEGY: &str = "nested-key-null-strategy";
const SEQUENCE_FIELD: &str = "nested-sequence-field";
const COUNT_LIMIT: &str = "count-limit";

impl AggregatorFactory for NestedUpdateFactory {
    fn name(&self) -> &str {
        "nested_update"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        let fields = column.rows_of_array()?;
        let limit = match column.option(COUNT_LIMIT) {
            None => i32::MAX as usize,
            Some(text) => text
                .trim()
                .parse::<u32>()
                .map_err(|_| column.illegal(COUNT_LIMIT, text, "a number that is not negative"))?
                as usize,
        };
        let key = NestedKey::of(column)?;
        if key.is_none() {
            for suffix in [NULL_STRATEGY, SEQUENCE_FIELD] {
                if column.option(suffix).is_some() {
                    return Err(MergeError::Invalid(format!(
                        "option '{}' needs '{}'",
                        column.key(suffix),
                        column.key(NESTED_KEY)
                    )));
                }
            }
        }
        let function = NestedUpdate {
            key,
            sequence: column.positions(SEQUENCE_FIELD, fields)?,
            limit,
        };
        Ok(FunctionAggregator::new(column, function)?.into_aggregation())
    }
}

impl AggregatorFactory for NestedPartialUpdateFactory {
    fn name(&self) -> &str {
        "nested_partial_update"
    }

    fn create(&self, column: &AggregatedColumn<'_>) -> Result<Aggregation, MergeError> {
        column.rows_of_array()?;
        let key = NestedKey::of(column)?.ok_or_else(|| {
            MergeError::Invalid(format!(
                "column {}: aggregate function {} needs option '{}'",
                column.field.name,
                column.function,
                column.key(NESTED_KEY)
            ))
        })?;
        Ok(FunctionAggregator::new(column, NestedPartialUpdate { key })?.into_aggregation())
    }
}

/// What a null in a nested key means.
#[derive(Clone, Copy, Debug)]
enum NullStrategy {
    Merge,
    Ignore,
    Error,
}

/// The fields that tell rows apart.
#[derive(Debug)]
struct NestedKey {
    fields: Vec<usize>,
    nulls: NullStrategy,
    site: Site,
}

impl NestedKey {
    fn of(column: &AggregatedColumn<'_>) -> Result<Option<Self>, MergeError> {
        let fields = column.positions(NESTED_KEY, column.rows_of_array()?)?;
        if fields.is_empty() {
            return Ok(None);
        }
        let nulls = match column.option(NULL_STRATEGY).map(str::to_ascii_lowercase).as_deref() {
            None | Some("merge") => NullStrategy::Merge,
            Some("ignore") => NullStrategy::Ignore,
            Some("error") => NullStrategy::Error,
            Some(other) => return Err(column.illegal(NULL_STRATEGY, other, "merge, ignore or error")),
        };
        let site = column.site()?;
        Ok(Some(Self { fields, nulls, site }))
    }

    /// The key of a row; `None`: the row is left out.
    fn get(&self, row: &[Datum]) -> Result<Option<Vec<Datum>>, MergeError> {
        let key: Vec<Datum> = pick(row, &self.fields);
        match self.nulls {
            NullStrategy::Ignore if key.iter().any(Datum::is_null) => Ok(None),
            NullStrategy::Error if key.iter().any(Datum::is_null) => {
                Err(self.site.value("a nested key contains null values"))
            }
            _ => Ok(Some(key)),
        }
    }
}

fn pick(row: &[Datum], fields: &[usize]) -> Vec<Datum> {
    fields.iter().filter_map(|&field| row.get(field).cloned()).collect()
}

/// The rows of an array that are not null.
fn rows_of(array: Datum) -> impl Iterator<Item = Vec<Datum>> {
    let elements = match array {
        Datum::Array(elements) => elements,
        _ => Vec::new(),
    };
    elements.into_iter().filter_map(|element| match element {
        Datum::Row(row) => Some(row),
        _ => None,
    })
}

fn array_of(rows: impl IntoIterator<Item = Vec<Datum>>) -> Datum {
    Datum::Array(rows.into_iter().map(Datum::Row).collect())
}

#[derive(Debug)]
struct NestedUpdate {
    key: Option<NestedKey>,
    sequence: Vec<usize>,
    limit: usize,
}

/// Rows by key, in the order in which keys came.
#[derive(Default)]
struct KeyedRows {
    rows: Vec<Vec<Datum>>,
    places: BTreeMap<Vec<Datum>, usize>,
}

impl NestedUpdate {
    fn put(&self, rows: &mut KeyedRows, key: Vec<Datum>, row: Vec<Datum>, limit: usize) {
        match rows.places.get(&key) {
            Some(&place) => {
                let held = &mut rows.rows[place];
                let order = pick(&row, &self.sequence).cmp(&pick(held, &self.sequence));
                if order != Ordering::Less {
                    *held = row;
                }
            }
            None if rows.rows.len() < limit => {
                rows.places.insert(key, rows.rows.len());
                rows.rows.push(row);
            }
            None => {}
        }
    }

    fn keyed(&self, key: &NestedKey, acc: Datum) -> Result<KeyedRows, MergeError> {
        let mut rows = KeyedRows::default();
        for row in rows_of(acc) {
            if let Some(key) = key.get(&row)? {
                self.put(&mut rows, key, row, usize::MAX);
            }
        }
        Ok(rows)
    }
}

impl AggregateFunction for NestedUpdate {
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        if value.is_null() {
            return Ok(acc);
        }
        let Some(key) = &self.key else {
            let held = rows_of(acc).collect::<Vec<_>>();
            let room = self.limit.saturating_sub(held.len());
            return Ok(array_of(held.into_iter().chain(rows_of(value).take(room))));
        };
        let mut rows = self.keyed(key, acc)?;
        for row in rows_of(value) {
            if let Some(key) = key.get(&row)? {
                self.put(&mut rows, key, row, self.limit);
            }
        }
        Ok(array_of(rows.rows))
    }

    fn retract(&self, acc: Datum, value: Datum) -> Option<Result<Datum, MergeError>> {
        if acc.is_null() || value.is_null() {
            return Some(Ok(acc));
        }
        let Some(key) = &self.key else {
            let gone: BTreeSet<Vec<Datum>> = rows_of(value).collect();
            return Some(Ok(array_of(rows_of(acc).filter(|row| !gone.contains(row)))));
        };
        Some((|| {
            let mut gone = BTreeSet::new();
            for row in rows_of(value) {
                gone.extend(key.get(&row)?);
            }
            let mut left = Vec::new();
            for row in self.keyed(key, acc)?.rows {
                if key.get(&row)?.is_none_or(|key| !gone.contains(&key)) {
                    left.push(row);
                }
            }
            Ok(array_of(left))
        })())
    }
}

#[derive(Debug)]
struct NestedPartialUpdate {
    key: NestedKey,
}

impl AggregateFunction for NestedPartialUpdate {
    fn add(&self, acc: Datum, value: Datum) -> Result<Datum, MergeError> {
        if value.is_null() {
            return Ok(acc);
        }
        let mut rows = KeyedRows::default();
        for row in rows_of(acc).chain(rows_of(value)) {
            let Some(key) = self.key.get(&row)? else {
                continue;
            };
            match rows.places.get(&key) {
                Some(&place) => {
                    for (held, field) in rows.rows[place].iter_mut().zip(row) {
                        if !field.is_null() {
                            *held = field;
                        }
                    }
                }
                None => {
                    rows.places.insert(key, rows.rows.len());
                    rows.rows.push(row);
                }
            }
        }
        Ok(array_of(rows.rows))
    }
}
