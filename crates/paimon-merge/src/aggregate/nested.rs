//! `nested_update` and `nested_partial_update`: rows in arrays, by their own keys.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use paimon_format::types::Datum;

use super::column::Site;
use super::function::{Accumulate, Folding};
use super::{AggregatedColumn, Aggregation, AggregatorFactory};
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
        Ok(Folding::new(column, function)?.into_aggregation())
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
        Ok(Folding::new(column, NestedPartialUpdate { key })?.into_aggregation())
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

/// Rows so far.
#[derive(Debug)]
enum Held {
    /// One value, as it was written.
    Plain(Datum),
    /// Several.
    Rows(KeyedRows),
}

impl Held {
    fn into_value(self) -> Datum {
        match self {
            Self::Plain(value) => value,
            Self::Rows(rows) => array_of(rows.rows.into_iter().flatten()),
        }
    }

    /// The rows, after `put` has put those of a plain value.
    fn rows(
        &mut self,
        mut put: impl FnMut(&mut KeyedRows, Vec<Datum>) -> Result<(), MergeError>,
    ) -> Result<&mut KeyedRows, MergeError> {
        if let Self::Plain(value) = self {
            let mut rows = KeyedRows::default();
            for row in rows_of(std::mem::replace(value, Datum::Null)) {
                put(&mut rows, row)?;
            }
            *self = Self::Rows(rows);
        }
        match self {
            Self::Rows(rows) => Ok(rows),
            Self::Plain(_) => Err(MergeError::internal("rows that were not opened")),
        }
    }
}

/// Rows, in the order in which they or their keys came; those without key are in no place.
#[derive(Debug, Default)]
struct KeyedRows {
    rows: Vec<Option<Vec<Datum>>>,
    places: BTreeMap<Vec<Datum>, usize>,
    count: usize,
}

impl KeyedRows {
    fn push(&mut self, row: Vec<Datum>) {
        self.rows.push(Some(row));
        self.count += 1;
    }

    fn get_mut(&mut self, key: &[Datum]) -> Option<&mut Vec<Datum>> {
        let place = self.places.get(key)?;
        self.rows.get_mut(*place)?.as_mut()
    }

    fn insert(&mut self, key: Vec<Datum>, row: Vec<Datum>) {
        self.places.insert(key, self.rows.len());
        self.push(row);
    }

    fn remove(&mut self, key: &[Datum]) {
        if let Some(place) = self.places.remove(key) {
            self.rows[place] = None;
            self.count -= 1;
        }
    }
}

impl NestedUpdate {
    /// Puts a row where its key is, or at the end while there are less than `limit`.
    fn put(&self, rows: &mut KeyedRows, row: Vec<Datum>, limit: usize) -> Result<(), MergeError> {
        let Some(key) = &self.key else {
            if rows.count < limit {
                rows.push(row);
            }
            return Ok(());
        };
        let Some(key) = key.get(&row)? else {
            return Ok(());
        };
        if let Some(held) = rows.get_mut(&key) {
            let order = pick(&row, &self.sequence).cmp(&pick(held, &self.sequence));
            if order != Ordering::Less {
                *held = row;
            }
        } else if rows.count < limit {
            rows.insert(key, row);
        }
        Ok(())
    }

    fn take_back(&self, acc: &mut Held, value: Datum) -> Result<(), MergeError> {
        if value.is_null() || matches!(acc, Held::Plain(Datum::Null)) {
            return Ok(());
        }
        let rows = acc.rows(|rows, row| self.put(rows, row, usize::MAX))?;
        match &self.key {
            Some(key) => {
                for row in rows_of(value) {
                    if let Some(key) = key.get(&row)? {
                        rows.remove(&key);
                    }
                }
            }
            None => {
                let gone: BTreeSet<Vec<Datum>> = rows_of(value).collect();
                rows.rows
                    .retain(|row| row.as_ref().is_some_and(|row| !gone.contains(row)));
                rows.count = rows.rows.len();
            }
        }
        Ok(())
    }
}

impl Accumulate for NestedUpdate {
    type State = Held;

    fn begin(&self, value: Datum) -> Held {
        Held::Plain(value)
    }

    fn add(&self, acc: &mut Held, value: Datum) -> Result<(), MergeError> {
        if value.is_null() {
            return Ok(());
        }
        let rows = acc.rows(|rows, row| self.put(rows, row, usize::MAX))?;
        rows_of(value).try_for_each(|row| self.put(rows, row, self.limit))
    }

    fn accepts_retract(&self) -> bool {
        true
    }

    fn retract(&self, acc: &mut Held, value: Datum) -> Option<Result<(), MergeError>> {
        Some(self.take_back(acc, value))
    }

    fn finish(&self, acc: Held) -> Datum {
        acc.into_value()
    }
}

#[derive(Debug)]
struct NestedPartialUpdate {
    key: NestedKey,
}

impl NestedPartialUpdate {
    fn put(&self, rows: &mut KeyedRows, row: Vec<Datum>) -> Result<(), MergeError> {
        let Some(key) = self.key.get(&row)? else {
            return Ok(());
        };
        match rows.get_mut(&key) {
            Some(held) => {
                for (held, field) in held.iter_mut().zip(row) {
                    if !field.is_null() {
                        *held = field;
                    }
                }
            }
            None => rows.insert(key, row),
        }
        Ok(())
    }
}

impl Accumulate for NestedPartialUpdate {
    type State = Held;

    fn begin(&self, value: Datum) -> Held {
        Held::Plain(value)
    }

    fn add(&self, acc: &mut Held, value: Datum) -> Result<(), MergeError> {
        if value.is_null() {
            return Ok(());
        }
        let rows = acc.rows(|rows, row| self.put(rows, row))?;
        rows_of(value).try_for_each(|row| self.put(rows, row))
    }

    fn finish(&self, acc: Held) -> Datum {
        acc.into_value()
    }
}
